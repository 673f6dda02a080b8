package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Essential is a field without which an event makes no sense.
type Essential struct {
	Zero  string   // the Go expression that is true if an event e lacks the field
	Paths []string // the places of the field; one is enough
}

// MayLack reports whether a required property is an amount, and an event without the amount can be
// handled: the field is optional in Go, because a 0 that was not sent would be wrong.
func (s *Spec) MayLack(owner *openapi3.Schema, name string) bool {
	plain, nullable := WithoutNull(owner.Properties[name])
	format, _ := s.FormatOf(plain.Value)
	return format.Amount && !nullable && slices.Contains(owner.Required, name) && !s.isNeverLacked(owner, name)
}

// essentials returns the essential fields of an event. The spec has passed the linter.
func (s *Spec) essentials(event *openapi3.Schema) []Essential {
	var out []Essential
	for _, paths := range essentialPaths(event) {
		var zeros []string
		for _, path := range paths {
			zero, _ := s.zeroOf(event, path)
			zeros = append(zeros, zero)
		}
		out = append(out, Essential{strings.Join(zeros, " &&\n"), paths})
	}
	return out
}

const essentialName = "x-essential" // paths to the fields without which an event makes no sense

// essentialPaths returns the paths in x-essential of an event's schema. One path of each list is
// enough.
func essentialPaths(event *openapi3.Schema) (out []Paths) {
	list, _ := event.Extensions[essentialName].([]any)
	for _, v := range list {
		out = append(out, pathsOf(v))
	}
	return out
}

// zeroOf returns the Go expression that is true if an event e has nothing at a path.
func (s *Spec) zeroOf(event *openapi3.Schema, path string) (string, error) {
	at, err := s.follow(event, path)
	if err != nil {
		return "", fmt.Errorf("%s %w", essentialName, err)
	}
	value := "e" + strings.Join(at.value, "")
	goType, _ := s.FormatOf(at.plain.Value)
	switch {
	case len(at.plain.Value.Enum) > 0 || TypeOf(at.plain.Value) == "string":
		return value + at.or(`""`) + ` == ""`, nil
	case TypeOf(at.plain.Value) == "number":
		return value + at.or(goType.Go+"{}") + ".IsZero()", nil
	case TypeOf(at.plain.Value) == "integer":
		return value + at.or("0") + " == 0", nil
	}
	return "", fmt.Errorf("%s %s ends neither in a text nor in a number; give the path to an id, an amount or a status", essentialName, path)
}

// zero is the Go expression for an empty object or string.
func zero(r *openapi3.SchemaRef) string {
	if r.Ref == "" {
		return `""`
	}
	return SchemaName(r.Ref) + "{}"
}

// place is the value at the end of a path.
type place struct {
	plain    *openapi3.SchemaRef
	marked   []string // the path, with a question mark behind each optional name
	value    []string // the Go expression, from the event on
	optional bool     // its Go type is a value.Optional
	always   bool     // nothing on the way is optional
	free     bool     // it is in an object of which no property is listed
}

func (p place) or(zero string) string {
	if !p.optional {
		return ""
	}
	return ".Or(" + zero + ")"
}

// follow walks from an event's schema along a path.
func (s *Spec) follow(event *openapi3.Schema, path string) (place, error) {
	p := place{plain: &openapi3.SchemaRef{Value: event}, always: true}
	for name := range strings.SplitSeq(path, ".") {
		if p.optional {
			p.value = append(p.value, p.or(zero(p.plain)))
		}
		owner := p.plain.Value
		if owner.Properties[name] == nil && IsEvent(owner) {
			owner = s.Envelope()
		}
		property, required := s.Property(owner, name)
		if property == nil {
			_, isScalar := s.FormatOf(p.plain.Value)
			p.free = p.marked != nil && (IsHandWritten(p.plain.Value) || !isScalar && len(p.plain.Value.Properties) == 0 && p.plain.Value.Items == nil)
			if IsHandWritten(p.plain.Value) {
				return p, fmt.Errorf("%s: what has %q is kept as JSON, into which no path leads; correct the path", path, name)
			}
			return p, fmt.Errorf("%s: the schema has no property %q; correct the path", path, name)
		}
		var nullable bool
		p.plain, nullable = WithoutNull(property)
		p.plain = &openapi3.SchemaRef{Ref: p.plain.Ref, Value: s.Resolved(p.plain)}
		p.always = p.always && required && !nullable
		p.optional = !required || nullable || s.MayLack(owner, name)
		p.value = append(p.value, "."+FieldName(property))
		if p.optional {
			name += "?"
		}
		p.marked = append(p.marked, name)
	}
	return p, nil
}

// isNeverLacked reports whether a property of a schema is essential for every event
// that has the schema, wherever the event has it.
func (s *Spec) isNeverLacked(owner *openapi3.Schema, name string) bool {
	held := false
	for _, ref := range s.Schemas() {
		var needs []string
		for _, paths := range essentialPaths(ref.Value) {
			if len(paths) == 1 {
				needs = append(needs, paths[0])
			}
		}
		if !IsEvent(ref.Value) && needs == nil || !s.holds(ref, owner) {
			continue
		}
		if held = true; s.lacks(ref.Value, needs, owner, name) {
			return false
		}
	}
	return held
}

// lacks reports whether a path that is not among needs leads from a schema to a property.
func (s *Spec) lacks(from *openapi3.Schema, needs []string, owner *openapi3.Schema, name string) bool {
	if from == owner && !slices.Contains(needs, name) {
		return true
	}
	if IsEvent(from) && from != owner && s.lacks(s.Envelope(), needs, owner, name) {
		return true
	}
	for property, ref := range from.Properties {
		if !s.holds(ref, owner) {
			continue
		}
		plain, _ := WithoutNull(ref)
		var rest []string
		for _, path := range needs {
			if inner, ok := strings.CutPrefix(path, property+"."); ok {
				rest = append(rest, inner)
			}
		}
		if rest == nil || plain.Ref == "" || s.lacks(s.Resolved(plain), rest, owner, name) {
			return true // paths do not lead through arrays
		}
	}
	return false
}

// holds reports whether a value has a schema in it, at any depth.
func (s *Spec) holds(ref *openapi3.SchemaRef, wanted *openapi3.Schema) bool {
	within := make(map[*openapi3.Schema]bool)
	s.reach(ref, within)
	return within[wanted]
}

// checkEssentials checks x-essential. A field that has one place must be required and not null, and
// so must the objects around the field.
func (l *linter) checkEssentials(at *openapi3.Origin, path string, event *openapi3.Schema) {
	for _, paths := range essentialPaths(event) {
		for _, p := range paths {
			if _, err := l.zeroOf(event, p); err != nil {
				l.report(at, path, "%v", err)
			} else if end, _ := l.follow(event, p); len(paths) == 1 && !end.always {
				l.report(at, path, "%s %s: it is not always there; add it, and what leads to it, to required, and make it not null", essentialName, p)
			}
		}
	}
}
