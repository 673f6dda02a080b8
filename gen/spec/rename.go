package spec

import (
	"go/token"

	"github.com/getkin/kin-openapi/openapi3"
)

// goNames gives components, in memory, the names that they have in Go, and puts a
// component in place of its other names.
func (s *Spec) goNames() {
	names := make(map[string]string)
	for _, name := range InOrder(s.Schemas(), SchemaOrigin) {
		ref, goName := s.Schemas()[name], GoName(name)
		switch {
		case ref.Ref != "":
			names[name] = SchemaName(ref.Ref)
			delete(s.Schemas(), name)
		case name != goName && token.IsIdentifier(goName) && s.Schemas()[goName] == nil && !IsHandWritten(ref.Value):
			names[name] = goName
			delete(s.Schemas(), name)
			s.Schemas()[goName] = ref
		}
	}
	if len(names) == 0 {
		return
	}
	seen := make(map[*openapi3.SchemaRef]bool)
	for _, ref := range s.Schemas() {
		rename(ref, names, seen)
	}
	for _, o := range append(s.Posts(), s.Operations()...) {
		for _, ref := range o.Schemas() {
			rename(ref, names, seen)
		}
	}
}

func rename(ref *openapi3.SchemaRef, names map[string]string, seen map[*openapi3.SchemaRef]bool) {
	if ref == nil || ref.Value == nil || seen[ref] {
		return
	}
	seen[ref] = true
	for range names { // another name of another name
		if to, ok := names[SchemaName(ref.Ref)]; ok && ref.Ref != "" {
			ref.Ref = SchemaPrefix + to
		}
	}
	for _, inner := range inside(ref.Value) {
		rename(inner, names, seen)
	}
}
