package spec

import (
	"fmt"
	"slices"
	"strings"

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

// eventNames are the names that the schema of a webhook's body pins down.
type eventNames struct {
	property string
	names    []any
}

// checkEventNames checks that they are the webhook's own, and its aliases.
func (l *linter) checkEventNames(path, webhook string, post *openapi3.Operation) {
	pinned, ok := post.Extensions[eventNamesName].(eventNames)
	if !ok {
		return
	}
	want := []any{webhook}
	for _, other := range aliasesOf(post) {
		want = append(want, other)
	}
	envelope := l.Schemas()[EnvelopeName]
	if envelope == nil {
		return // reported
	}
	if p := envelope.Value.Properties[pinned.property]; p == nil || SchemaName(p.Ref) != EventTypeName || !slices.Equal(pinned.names, want) {
		l.report(post.Origin, path+".requestBody", "the schema pins %s down to %s; pin the envelope's event type, and to %s",
			pinned.property, list(pinned.names), list(want))
	}
}

func list(values []any) string { return strings.Trim(fmt.Sprint(values), "[]") }

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
