package spec

import (
	"go/token"

	"github.com/getkin/kin-openapi/openapi3"
)

const (
	eventNamesName = "x-event-names" // in memory: the names that the body's schema pins down
	OpenEnumName   = "x-open-enum"   // in memory: the enum is the first of anyOf
)

// simplify takes out, in memory, the parts of a spec for the generators of other
// languages only: that a webhook's body has its own name in it, and that an
// enum has more values than it lists. For Go both would be types of their own.
func (s *Spec) simplify() {
	for _, item := range s.Doc.Webhooks {
		if item.Post != nil {
			s.widen(item.Post)
			s.inherit(item.Post)
		}
	}
	seen := make(map[*openapi3.Schema]bool)
	for _, ref := range s.Schemas() {
		closeEnums(ref, seen)
	}
}

// widen makes {$ref: an event} of a webhook's schema that is
//
//	allOf: [{$ref: an event}, {properties: {event: {const: its name}}}]
func (s *Spec) widen(post *openapi3.Operation) {
	body := BodySchema(post)
	if body == nil || body.Ref != "" || len(body.Value.AllOf) != 2 || body.Value.AllOf[0].Ref == "" {
		return
	}
	own := body.Value.AllOf[1].Value
	if body.Value.AllOf[1].Ref != "" || len(own.Properties) != 1 {
		return
	}
	for name, p := range own.Properties {
		names := p.Value.Enum
		if p.Value.Const != nil {
			names = []any{p.Value.Const}
		}
		post.Extensions = With(post.Extensions, eventNamesName, eventNames{name, names})
	}
	post.RequestBody.Value.Content["application/json"].Schema = body.Value.AllOf[0]
}

// eventNames are the names that the schema of a webhook's body pins down.
type eventNames struct {
	property string
	names    []any
}

// inherit gives a webhook the extensions that the schema of its event has for all of its webhooks.
func (s *Spec) inherit(post *openapi3.Operation) {
	body := BodySchema(post)
	if body == nil || s.Schemas()[SchemaName(body.Ref)] == nil {
		return
	}
	event := s.Schemas()[SchemaName(body.Ref)].Value
	if post.ExternalDocs == nil {
		post.ExternalDocs = event.ExternalDocs
	}
	for _, name := range []string{EntityKeyName, eventIDName, eventTimeName, testName} {
		if value, ok := event.Extensions[name]; ok {
			post.Extensions = With(post.Extensions, name, value) // With leaves the webhook's own
		}
	}
}

// closeEnums makes an enum of each schema that is
//
//	anyOf: [{type: string, enum: […]}, {type: string}]
func closeEnums(ref *openapi3.SchemaRef, seen map[*openapi3.Schema]bool) {
	if ref == nil || ref.Value == nil || seen[ref.Value] {
		return
	}
	s := ref.Value
	seen[s] = true
	if isOpenEnum(s) {
		s.Type, s.Enum, s.AnyOf = s.AnyOf[0].Value.Type, s.AnyOf[0].Value.Enum, nil
		s.Extensions = With(s.Extensions, OpenEnumName, true)
	}
	for _, inner := range inside(s) {
		closeEnums(inner, seen)
	}
}

func isOpenEnum(s *openapi3.Schema) bool {
	if len(s.AnyOf) != 2 || s.AnyOf[0].Ref != "" || s.AnyOf[1].Ref != "" {
		return false
	}
	known, text := s.AnyOf[0].Value, s.AnyOf[1].Value
	return len(known.Enum) > 0 && TypeOf(known) == "string" && TypeOf(text) == "string" && len(text.Enum) == 0 && text.Format == ""
}

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
