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

// shape is what JSON has to look like to fit a Go type.
type shape struct {
	kind   string // of JSON: object, array, string, number, bool; "" for any
	typ    reflect.Type
	asked  bool // typ has a way of its own to decode, and is asked
	enum   bool // typ knows its values; event types have a finding of their own
	fields map[string]field
	elem   *shape
}

type field struct {
	index    []int
	shape    *shape
	required bool // always sent, and never null
}

// plan is the shape of an event's struct, and what makes checking it quick.
type plan struct {
	*shape
	required map[string]bool // the names of all required fields, at any depth
	objects  []string        // the required objects right in the event, such as payment
}

var plans sync.Map // reflect.Type: *plan

func planOf(t reflect.Type) *plan {
	if p, ok := plans.Load(t); ok {
		return p.(*plan)
	}
	shapes := make(map[reflect.Type]*shape)
	p := &plan{shape: shapeOf(t, shapes), required: make(map[string]bool)}
	for _, s := range shapes {
		for name, f := range s.fields {
			p.required[name] = p.required[name] || f.required
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.fields)) {
		if f := p.fields[name]; f.required && f.shape.kind == "object" {
			p.objects = append(p.objects, name)
		}
	}
	kept, _ := plans.LoadOrStore(t, p)
	return kept.(*plan)
}

// shapeOf keeps in made what it makes, for types that hold themselves.
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

// describe fills in what encoding/json would do with the type.
func (s *shape) describe(made map[reflect.Type]*shape) {
	switch t := s.typ; t.Kind() {
	case reflect.String:
		s.kind = "string"
	case reflect.Bool:
		s.kind = "bool"
	case reflect.Struct:
		s.kind, s.fields = "object", make(map[string]field)
		s.addFields(t, nil, made)
	case reflect.Slice, reflect.Array:
		s.kind = "array"
		elem, _ := unwrapped(t.Elem())
		s.elem = shapeOf(elem, made)
	case reflect.Map:
		s.kind = "object" // free of form: its keys are somebody's data as much as its values
	case reflect.Interface:
	default:
		s.kind, s.asked = "number", true
	}
}

func (s *shape) addFields(t reflect.Type, index []int, made map[reflect.Type]*shape) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		at := append(index[:len(index):len(index)], f.Index...)
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			s.addFields(f.Type, at, made)
		case f.IsExported() && name != "-":
			if name == "" {
				name = f.Name
			}
			plain, optional := unwrapped(f.Type)
			s.fields[name] = field{at, shapeOf(plain, made), !optional && !strings.Contains(options, "omit")}
		}
	}
}

// unwrapped is what a pointer or an optional.Value may hold.
func unwrapped(t reflect.Type) (plain reflect.Type, optional bool) {
	switch get, ok := t.MethodByName("Get"); {
	case t.Kind() == reflect.Pointer:
		plain, _ = unwrapped(t.Elem())
	case ok && t.Implements(reflect.TypeFor[interface{ IsNull() bool }]()) && get.Type.NumOut() == 2:
		plain, _ = unwrapped(get.Type.Out(0))
	default:
		return t, false
	}
	return plain, true
}

// writtenAs is the kind of JSON that a type's zero value is written as: how
// else would one know what a type reads that decodes itself.
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

func (s *shape) requiresFields() bool {
	for _, f := range s.fields {
		if f.required {
			return true
		}
	}
	return false
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
