package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// KeyPaths reads x-entity-key: a path, a list of paths, or "" for an event
// that is about nothing.
func KeyPaths(post *openapi3.Operation) ([]string, error) {
	value, ok := post.Extensions[EntityKeyName]
	if !ok {
		return nil, nil
	}
	switch value := value.(type) {
	case string:
		if value == "" {
			return nil, nil
		}
		return []string{value}, nil
	case []any:
		if paths, ok := StringsOf(value); ok {
			return paths, nil
		}
	}
	return nil, fmt.Errorf("%s is neither a path nor a list of paths; write payment.id, for example", EntityKeyName)
}

// StringsOf reads an extension that is a list of strings, at least one, none
// of them empty.
func StringsOf(extension any) (list []string, ok bool) {
	values, _ := extension.([]any)
	for _, v := range values {
		s, _ := v.(string)
		list = append(list, s)
	}
	return list, len(list) > 0 && !slices.Contains(list, "")
}

// keyOf is the Go expression for the key of a webhook's event e.
func (s *Spec) keyOf(post *openapi3.Operation) string {
	paths, _ := KeyPaths(post)
	var values []string
	for _, path := range paths {
		value, _ := s.keyValue(BodySchema(post).Value, path)
		values = append(values, value)
	}
	switch len(values) {
	case 0:
		return `""`
	case 1:
		return values[0]
	}
	return "cmp.Or(" + strings.Join(values, ", ") + ")"
}

// keyValue walks from an event's schema along a path and returns the Go
// expression for the string at its end.
func (s *Spec) keyValue(from *openapi3.Schema, path string) (string, error) {
	at, err := s.follow(from, path)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s %w", EntityKeyName, err)
	case !s.isText(at.plain):
		return "", fmt.Errorf("%s %s does not end in a string; give the path to an id", EntityKeyName, path)
	}
	value := "e" + strings.Join(at.value, "") + at.or(`""`)
	if f, _ := s.FormatOf(at.plain.Value); f.Go != "string" {
		value = "string(" + value + ")"
	}
	return value, nil
}

// zero is the Go expression for an empty object or string.
func zero(r *openapi3.SchemaRef) string {
	if r.Ref == "" {
		return `""`
	}
	return SchemaName(r.Ref) + "{}"
}

// isText reports whether a value is an id: a text, maybe sent as a number.
func (s *Spec) isText(r *openapi3.SchemaRef) bool {
	f, ok := s.FormatOf(r.Value)
	return ok && r.Ref == "" && TypeOf(r.Value) == "string" && (f.Go == "string" || f.Number)
}

// Property finds a property of a schema or, for an event, of its envelope.
func (s *Spec) Property(of *openapi3.Schema, name string) (property *openapi3.SchemaRef, required bool) {
	if p := of.Properties[name]; p != nil {
		return p, slices.Contains(of.Required, name)
	}
	if IsEvent(of) {
		return s.Property(s.Schemas()[EnvelopeName].Value, name)
	}
	return nil, false
}
