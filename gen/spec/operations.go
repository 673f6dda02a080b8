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

// Posts lists the operations of the webhooks, in the order of the spec.
func (s *Spec) Posts() []Operation { return operations(s.Doc.Webhooks) }

// Operations lists what is under paths, in the order of the spec.
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

// HasID tells whether the path has the id of what the operation is about.
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
