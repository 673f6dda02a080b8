package spec

import (
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Operation is a webhook, or an operation of the provider's API.
type Operation struct {
	*openapi3.Operation

	Query  []*openapi3.Parameter
	Method string // PUT
	Path   string // /webhooks/{id}; PAYMENT_RECEIVED for a webhook
}

// Posts lists the operations of the webhooks, in the order of the spec, and those
// that are no events behind the others.
func (s *Spec) Posts() []Operation {
	return append(operations(s.Doc.Webhooks), operations(s.questions)...)
}

const isEventName = "x-event" // false: the webhook is no event, and the provider waits for the answer

// setAside takes the webhooks that are no events out of the document: what they
// post and are answered becomes Go types, and nothing else.
func (s *Spec) setAside() {
	s.questions = make(map[string]*openapi3.PathItem)
	for name, item := range s.Doc.Webhooks {
		if item.Post != nil && item.Post.Extensions[isEventName] == false {
			s.questions[name] = item
			delete(s.Doc.Webhooks, name)
		}
	}
}

// Operations lists the operations under paths, in the order of the spec.
func (s *Spec) Operations() []Operation { return operations(s.Doc.Paths.Map()) }

func operations(items map[string]*openapi3.PathItem) (out []Operation) {
	for _, path := range InOrder(items, ItemOrigin) {
		byMethod := items[path].Operations()
		for _, method := range InOrder(byMethod, operationOrigin) {
			o := Operation{Operation: byMethod[method], Method: method, Path: path}
			for _, p := range slices.Concat(items[path].Parameters, o.Parameters) {
				if p.Value.In == openapi3.ParameterInQuery {
					o.Query = append(o.Query, p.Value)
				}
			}
			out = append(out, o)
		}
	}
	return out
}

// HasID reports whether the path has the id of the operation's object.
func (o Operation) HasID() bool { return strings.Contains(o.Path, "{id}") }

// Answer is the schema of the JSON that a success is answered with; nil if there
// is none.
func (o Operation) Answer() *openapi3.SchemaRef {
	for status, answer := range o.Responses.Map() {
		if strings.HasPrefix(status, "2") && answer.Value != nil {
			return jsonOf(answer.Value.Content)
		}
	}
	return nil
}

// Schemas are those of the JSON that an operation takes and answers.
func (o Operation) Schemas() []*openapi3.SchemaRef {
	out := []*openapi3.SchemaRef{BodySchema(o.Operation)}
	answers := o.Responses.Map()
	for _, status := range slices.Sorted(maps.Keys(answers)) {
		out = append(out, jsonOf(answers[status].Value.Content))
	}
	return slices.DeleteFunc(out, func(s *openapi3.SchemaRef) bool { return s == nil })
}

// BodySchema is the schema of the JSON that a webhook posts, or an operation
// takes; nil if it has none.
func BodySchema(o *openapi3.Operation) *openapi3.SchemaRef {
	if o.RequestBody == nil || o.RequestBody.Value == nil {
		return nil
	}
	return jsonOf(o.RequestBody.Value.Content)
}

func jsonOf(content openapi3.Content) *openapi3.SchemaRef {
	if media := content["application/json"]; media != nil {
		return media.Schema
	}
	return nil
}

// Reachable are the components that operations refer to, and what those refer to.
func (s *Spec) Reachable(from []Operation) map[*openapi3.Schema]bool {
	out := make(map[*openapi3.Schema]bool)
	var walk func(ref *openapi3.SchemaRef)
	walk = func(ref *openapi3.SchemaRef) {
		schema := ref.Value
		if component := s.Schemas()[SchemaName(ref.Ref)]; ref.Ref != "" && component != nil {
			schema = component.Value // ref.Value may be a copy
		}
		if schema == nil || out[schema] {
			return
		}
		out[schema] = true
		for _, inner := range inside(schema) {
			walk(inner)
		}
	}
	for _, o := range from {
		for _, ref := range o.Schemas() {
			walk(ref)
		}
	}
	return out
}

// HasClient reports whether the paths become methods of a Client, which is written
// by hand then.
func (s *Spec) HasClient() bool {
	return s.Doc.Paths.Len() > 0 && (!s.HasProvider || s.Provider.Reserved["Client"] != "")
}

// dropAPI takes out all that the provider's whole document has beside its webhooks.
func (s *Spec) dropAPI() {
	if s.HasClient() || !s.HasProvider || s.Doc.Components == nil {
		return
	}
	s.Doc.Paths = openapi3.NewPaths()
	s.Doc.Components.RequestBodies, s.Doc.Components.Responses = nil, nil
	used := s.Reachable(s.Posts())
	for name, ref := range s.Schemas() {
		if name != EnvelopeName && name != EventTypeName && !used[ref.Value] && !IsEvent(ref.Value) {
			delete(s.Schemas(), name)
		}
	}
}
