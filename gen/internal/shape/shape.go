// Package shape compares decoded JSON with the form that it is expected to have. Package
// drift takes the form of a Go type, and the generator that of a schema.
package shape

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Shape is a form of JSON.
type Shape struct {
	Kind   string                  // object, array, string, number, bool; "" for any value
	Fits   func(v any) bool        // decides about a value of the Kind, or a number in place of a string; nil: the Kind decides
	Known  func(value string) bool // reports whether an enum has a value; nil if the Shape is no enum
	Fields map[string]Field        // of an object; nil if it may have any
	Elem   *Shape                  // of an array
}

// Field is a field of an object.
type Field struct {
	Shape    *Shape
	Required bool // always sent, and never null
}

// Compare calls report for each difference of v, which is at path, with its kind as package
// drift names it. v was decoded with [json.Decoder.UseNumber].
func (s *Shape) Compare(path string, v any, report func(path, kind string)) {
	switch kind := KindOf(v); {
	case s.Kind == "":
		return
	case kind == "":
		report(path, "unexpected_null")
	case !s.takes(kind, v):
		report(path, "changed_type")
	case kind != s.Kind:
		return
	case s.Known != nil && !s.Known(v.(string)):
		report(path, "unknown_value")
	case s.Fields != nil:
		s.compareFields(path, v.(map[string]any), report)
	case s.Elem != nil:
		for _, element := range v.([]any) {
			s.Elem.Compare(path+"[]", element, report)
		}
	}
}

// takes reports whether the form allows a value. A number does not fit a Shape of strings, unless
// Fits allows it; a string never fits a Shape of numbers.
func (s *Shape) takes(kind string, v any) bool {
	if s.Fits == nil {
		return kind == s.Kind
	}
	return (kind == s.Kind || s.Kind == "string" && kind == "number") && s.Fits(v)
}

func (s *Shape) compareFields(path string, object map[string]any, report func(path, kind string)) {
	for _, name := range slices.Sorted(maps.Keys(object)) {
		f, ok := LookUp(s.Fields, name)
		switch {
		case !ok:
			report(Join(path, name), "unknown_field")
		case object[name] != nil || f.Required:
			f.Shape.Compare(Join(path, name), object[name], report)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Fields)) {
		if _, ok := LookUp(object, name); !ok && s.Fields[name].Required {
			report(Join(path, name), "missing_required")
		}
	}
}

// KindOf returns the kind of JSON of a decoded value; "" for null.
func KindOf(v any) string {
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

// LookUp finds a field as encoding/json does: by its name, or in another case.
func LookUp[V any](fields map[string]V, name string) (v V, ok bool) {
	if v, ok = fields[name]; ok {
		return v, true
	}
	for other, v := range fields {
		if strings.EqualFold(other, name) {
			return v, true
		}
	}
	return v, false
}

// Join returns the path of a field of the object at path.
func Join(path, name string) string { return strings.TrimPrefix(path+"."+Name(name), ".") }

// Name returns a name that a provider sent, or "*" if it might hold somebody's data: an id, a
// document or an address that is used as the key of an object.
func Name(sent string) string {
	digits := 0
	for _, c := range sent {
		switch {
		case '0' <= c && c <= '9':
			digits++
		case c != '_' && c != '-' && c != '.' && (c < 'A' || c > 'z' || 'Z' < c && c < 'a'):
			return "*"
		}
	}
	if sent == "" || len(sent) > 80 || digits > 3 {
		return "*"
	}
	return sent
}
