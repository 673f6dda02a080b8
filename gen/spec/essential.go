package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

const essentialName = "x-essential" // paths to what an event is nothing without

// Essential is something that an event is nothing without.
type Essential struct {
	Zero  string   // the Go expression for whether the struct of an event e lacks it
	Paths []string // where it may be
}

// essentialPaths reads x-essential of an event's schema: a list of paths, or of
// lists of paths of which one is enough.
func essentialPaths(event *openapi3.Schema) ([][]string, error) {
	value, ok := event.Extensions[essentialName]
	if !ok {
		return nil, nil
	}
	var out [][]string
	list, _ := value.([]any)
	for _, v := range list {
		paths, ok := StringsOf(v)
		if path, is := v.(string); is && path != "" {
			paths, ok = []string{path}, true
		}
		if !ok {
			list = nil
			break
		}
		out = append(out, paths)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s is no list of paths; write [payment.id, payment.value], for example", essentialName)
	}
	return out, nil
}

// essentials are the Go expressions for what an event is nothing without. The
// spec has passed the linter.
func (s *Spec) essentials(event *openapi3.Schema) []Essential {
	groups, _ := essentialPaths(event)
	var out []Essential
	for _, paths := range groups {
		var zeros []string
		for _, path := range paths {
			zero, _ := s.zeroOf(event, path)
			zeros = append(zeros, zero)
		}
		out = append(out, Essential{strings.Join(zeros, " &&\n"), paths})
	}
	return out
}

// zeroOf is the Go expression for whether an event e has nothing at a path.
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

// place is where a path ends.
type place struct {
	owner    *openapi3.Schema
	name     string
	plain    *openapi3.SchemaRef
	value    []string // the Go expression, from the event on
	optional bool     // its Go type is an optional.Value
	always   bool     // nothing on the way is optional
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
		p.owner, p.name = p.plain.Value, name
		property, required := s.Property(p.owner, name)
		if property == nil {
			return p, fmt.Errorf("%s: the schema has no property %q; correct the path", path, name)
		}
		var nullable bool
		p.plain, nullable = WithoutNull(property)
		if p.plain.Ref != "" {
			p.plain = &openapi3.SchemaRef{Ref: p.plain.Ref, Value: s.Schemas()[SchemaName(p.plain.Ref)].Value} // not a copy
		}
		p.optional = !required || nullable
		p.always = p.always && !p.optional
		p.value = append(p.value, "."+GoName(name))
	}
	return p, nil
}

// MayLack tells whether a required property is an amount that no event depends
// on: if it is missing or null, its event is handled, and 0 would be a lie.
func (s *Spec) MayLack(owner *openapi3.Schema, name string) bool {
	plain, nullable := WithoutNull(owner.Properties[name])
	format, _ := s.FormatOf(plain.Value)
	return format.Amount && !nullable && slices.Contains(owner.Required, name) && !s.isEssential(owner, name)
}

// IsEssential tells whether a property of a schema is something that an event is
// nothing without, or leads to it.
func (s *Spec) IsEssential(schema, property string) bool {
	return s.isEssential(s.Schemas()[schema].Value, property)
}

func (s *Spec) isEssential(owner *openapi3.Schema, name string) bool {
	for _, ref := range s.Schemas() {
		groups, _ := essentialPaths(ref.Value)
		for _, paths := range groups {
			if len(paths) == 1 && s.leadsTo(ref.Value, paths[0], owner, name) {
				return true
			}
		}
	}
	return false
}

// leadsTo tells whether a path from an event goes through a property.
func (s *Spec) leadsTo(event *openapi3.Schema, path string, owner *openapi3.Schema, name string) bool {
	names := strings.Split(path, ".")
	for end := range names {
		at, err := s.follow(event, strings.Join(names[:end+1], "."))
		if err == nil && at.owner == owner && at.name == name {
			return true
		}
	}
	return false
}

// checkEssentials checks x-essential. What an event is nothing without has to be
// there always, as the spec has it, unless it may be in several places.
func (l *linter) checkEssentials(at *openapi3.Origin, path string, event *openapi3.Schema) {
	groups, err := essentialPaths(event)
	if err != nil {
		l.report(at, path, "%v", err)
	}
	for _, paths := range groups {
		for _, p := range paths {
			if _, err := l.zeroOf(event, p); err != nil {
				l.report(at, path, "%v", err)
			} else if end, _ := l.follow(event, p); len(paths) == 1 && !end.always {
				l.report(at, path, "%s %s: it is not always there; add it, and what leads to it, to required, and make it not null", essentialName, p)
			}
		}
	}
}
