package drift

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	"github.com/paghooks/paghooks/internal/shape"
)

var shapes sync.Map // of event structs, reflect.Type: *shape.Shape

// eventShape returns the JSON that fits an event struct.
func eventShape(t reflect.Type) *shape.Shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape.Shape)
	}
	kept, _ := shapes.LoadOrStore(t, shapeOf(t, make(map[reflect.Type]*shape.Shape)))
	return kept.(*shape.Shape)
}

// shapeOf adds the shapes that it makes to made, for types that contain themselves.
func shapeOf(t reflect.Type, made map[reflect.Type]*shape.Shape) *shape.Shape {
	if s := made[t]; s != nil {
		return s
	}
	s := new(shape.Shape)
	made[t] = s
	// The event type has a finding of its own.
	if t.Implements(reflect.TypeFor[interface{ Known() bool }]()) && t.Kind() == reflect.String && t.Name() != "EventType" {
		s.Known = func(value string) bool {
			return reflect.ValueOf(value).Convert(t).Interface().(interface{ Known() bool }).Known()
		}
	}
	switch pointer := reflect.PointerTo(t); {
	case pointer.Implements(reflect.TypeFor[json.Unmarshaler]()):
		s.Kind, s.Fits = writtenAs(t), decodesInto(t)
	case pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		s.Kind, s.Fits = "string", decodesInto(t)
	default:
		describe(s, t, made)
	}
	return s
}

// describe sets s to the JSON that encoding/json decodes into a type without a method for it.
func describe(s *shape.Shape, t reflect.Type, made map[reflect.Type]*shape.Shape) {
	switch t.Kind() {
	case reflect.String:
		s.Kind = "string"
	case reflect.Bool:
		s.Kind = "bool"
	case reflect.Struct:
		s.Kind, s.Fields = "object", make(map[string]shape.Field)
		addFields(s.Fields, t, made)
	case reflect.Slice, reflect.Array:
		s.Kind, s.Elem = "array", shapeOf(unwrapped(t.Elem()), made)
	case reflect.Map:
		s.Kind = "object" // free of form: its keys are somebody's data as much as its values
	case reflect.Interface:
	default:
		s.Kind, s.Fits = "number", decodesInto(t)
	}
}

func addFields(fields map[string]shape.Field, t reflect.Type, made map[reflect.Type]*shape.Shape) {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			addFields(fields, f.Type, made)
		case f.IsExported() && name != "-":
			if name == "" {
				name = f.Name
			}
			fields[name] = shape.Field{Shape: shapeOf(unwrapped(f.Type), made), Required: !strings.Contains(options, "omit")}
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

// writtenAs returns the kind of JSON that the zero value of a type is written as. Nothing else
// shows which kind a type with its own UnmarshalJSON decodes.
func writtenAs(t reflect.Type) string {
	text, err := json.Marshal(reflect.Zero(t).Interface())
	var v any
	if err != nil || json.Unmarshal(text, &v) != nil {
		return ""
	}
	return shape.KindOf(v)
}

// decodesInto returns a function that reports whether a value can be decoded into a type.
func decodesInto(t reflect.Type) func(v any) bool {
	return func(v any) bool {
		text, err := json.Marshal(v)
		return err == nil && json.Unmarshal(text, reflect.New(t).Interface()) == nil
	}
}
