package drift

import (
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// shape is the form of JSON that fits a Go type.
type shape struct {
	kind   string // of JSON: object, array, string, number, bool; "" for any
	typ    reflect.Type
	asked  bool // typ has a way of its own to decode, and is asked
	enum   bool // typ knows its values; event types have a finding of their own
	fields map[string]field
	elem   *shape
}

type field struct {
	shape    *shape
	required bool // always sent, and never null
}

var shapes sync.Map // of event structs, reflect.Type: *shape

func eventShape(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	kept, _ := shapes.LoadOrStore(t, shapeOf(t, make(map[reflect.Type]*shape)))
	return kept.(*shape)
}

// shapeOf keeps in made the shapes that it makes, for types that hold themselves.
func shapeOf(t reflect.Type, made map[reflect.Type]*shape) *shape {
	if s := made[t]; s != nil {
		return s
	}
	s := &shape{typ: t}
	made[t] = s
	s.enum = t.Implements(reflect.TypeFor[interface{ Known() bool }]()) && t.Kind() == reflect.String && t.Name() != "EventType"
	switch pointer := reflect.PointerTo(t); {
	case pointer.Implements(reflect.TypeFor[json.Unmarshaler]()):
		s.kind, s.asked = writtenAs(t), true
	case pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		s.kind, s.asked = "string", true
	default:
		s.describe(made)
	}
	return s
}

// describe fills in how encoding/json treats the type.
func (s *shape) describe(made map[reflect.Type]*shape) {
	switch t := s.typ; t.Kind() {
	case reflect.String:
		s.kind = "string"
	case reflect.Bool:
		s.kind = "bool"
	case reflect.Struct:
		s.kind, s.fields = "object", make(map[string]field)
		s.addFields(t, made)
	case reflect.Slice, reflect.Array:
		s.kind = "array"
		s.elem = shapeOf(unwrapped(t.Elem()), made)
	case reflect.Map:
		s.kind = "object" // free of form: its keys are somebody's data as much as its values
	case reflect.Interface:
	default:
		s.kind, s.asked = "number", true
	}
}

func (s *shape) addFields(t reflect.Type, made map[reflect.Type]*shape) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			s.addFields(f.Type, made)
		case f.IsExported() && name != "-":
			if name == "" {
				name = f.Name
			}
			s.fields[name] = field{shapeOf(unwrapped(f.Type), made), !strings.Contains(options, "omit")}
		}
	}
}

// unwrapped returns the type that a pointer or an optional.Value may hold.
func unwrapped(t reflect.Type) reflect.Type {
	switch get, ok := t.MethodByName("Get"); {
	case t.Kind() == reflect.Pointer:
		return unwrapped(t.Elem())
	case ok && t.Implements(reflect.TypeFor[interface{ IsNull() bool }]()) && get.Type.NumOut() == 2:
		return unwrapped(get.Type.Out(0))
	}
	return t
}

// writtenAs is the kind of JSON that a type's zero value is written as: how
// else would one know the JSON of a type that decodes itself.
func writtenAs(t reflect.Type) string {
	text, err := json.Marshal(reflect.Zero(t).Interface())
	var v any
	if err != nil || json.Unmarshal(text, &v) != nil {
		return ""
	}
	return kindOf(v)
}

// kindOf is the kind of JSON of a decoded value; "" for null.
func kindOf(v any) string {
	switch v.(type) {
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case json.Number, float64:
		return "number"
	case bool:
		return "bool"
	}
	return ""
}

// field finds a field as encoding/json does: by its name, or else in another
// case.
func (s *shape) field(name string) (f field, ok bool) {
	if f, ok = s.fields[name]; ok {
		return f, true
	}
	for known, f := range s.fields {
		if strings.EqualFold(known, name) {
			return f, true
		}
	}
	return field{}, false
}

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
