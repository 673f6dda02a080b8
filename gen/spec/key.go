package spec

import (
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// KeyPaths are those of x-entity-key; none for an event that is about nothing.
func KeyPaths(post *openapi3.Operation) Paths { return pathsOf(post.Extensions[EntityKeyName]) }

// pathsOf are those of an extension that is a path, several, or "".
func pathsOf(extension any) Paths {
	if path, ok := extension.(string); ok && path != "" {
		return Paths{path}
	}
	return StringsOf(extension)
}

// StringsOf is an extension that is a list of texts; nil if it is none.
func StringsOf(extension any) (list []string) {
	values, _ := extension.([]any)
	for _, v := range values {
		s, _ := v.(string)
		list = append(list, s)
	}
	return list
}

// checkKeyPath checks that a path leads from an event's schema to an id.
func (l *linter) checkKeyPath(at *openapi3.Origin, path string, event *openapi3.Schema, key string) {
	switch end, err := l.follow(event, key); {
	case err != nil:
		l.report(at, path, "%s %v", EntityKeyName, err)
	case !l.isText(end.plain):
		l.report(at, path, "%s %s does not end in a string; give the path to an id", EntityKeyName, key)
	}
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
