package drift

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

// walker compares decoded JSON with a shape, and reports each difference.
type walker struct {
	report func(path string, kind Kind)
}

func (w walker) value(path string, s *shape, v any) {
	switch kind := kindOf(v); {
	case s.kind == "":
		return
	case kind == "":
		w.report(path, UnexpectedNull)
	case !s.takes(kind, v):
		w.report(path, ChangedType)
	case kind != s.kind:
		return
	case s.enum && !known(s.typ, v.(string)):
		w.report(path, UnknownValue)
	case s.fields != nil:
		w.object(path, s, v.(map[string]any))
	case s.elem != nil:
		for _, element := range v.([]any) {
			w.value(path+"[]", s.elem, element)
		}
	}
}

func (w walker) object(path string, s *shape, v map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(v)) {
		f, ok := s.field(name)
		switch {
		case !ok:
			w.report(Join(path, name), UnknownField)
		case v[name] != nil || f.required:
			w.value(Join(path, name), f.shape, v[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.fields)) {
		if _, ok := lookUp(v, name); !ok && s.fields[name].required {
			w.report(Join(path, name), MissingRequired)
		}
	}
}

// takes reports whether the type expects JSON of that kind. A type of numbers does
// not expect a string, although this module's read a number in one. A type of texts
// that also decodes a number expects either.
func (s *shape) takes(kind string, v any) bool {
	if kind != s.kind && (s.kind != "string" || kind != "number") {
		return false
	}
	return kind == s.kind && !s.asked || s.asked && fits(s.typ, v)
}

// fits asks a type whether it can be decoded from v.
func fits(t reflect.Type, v any) bool {
	text, err := json.Marshal(v)
	return err == nil && json.Unmarshal(text, reflect.New(t).Interface()) == nil
}

func known(enum reflect.Type, value string) bool {
	v := reflect.ValueOf(value).Convert(enum)
	return v.Interface().(interface{ Known() bool }).Known()
}
