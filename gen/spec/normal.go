package spec

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

const (
	RawType      = "json.RawMessage" // RawType is the type of a value that is kept as the JSON that was sent
	PointerName  = "x-pointer"       // PointerName marks, in memory: a property that leads back to the object it is in
	openEnumName = "x-open-enum"     // in memory: any other text is a value, too
	joinName     = "x-join"          // in memory: the objects of the union are one, with the fields of all
)

// normalize brings the document, in memory, into the form that the generator reads: objects and
// enums are components with names of Go, everything else is where it is used, and nothing is an
// allOf (but for the envelope of an event), a const or a union. A value without a type in Go is
// JSON that is kept as it was sent.
func (s *Spec) normalize() {
	if s.Doc.Components == nil {
		s.Doc.Components = &openapi3.Components{}
	}
	n := &normal{
		Spec: s, from: s.Doc.Components.Schemas, names: make(map[string]string),
		done: make(map[string]*openapi3.SchemaRef), named: make(map[*openapi3.SchemaRef]bool), making: make(map[string]string),
	}
	s.Doc.Components.Schemas = make(openapi3.Schemas)
	n.nameComponents()
	n.webhooks()
	for _, o := range append(operations(s.questions), s.Operations()...) {
		n.operation(o)
	}
	for _, name := range []string{EnvelopeName, EventTypeName} {
		if n.ownEnvelope() && n.from[name] != nil {
			n.component(name)
		}
	}
	s.addEnvelope()
	used := s.Reachable(append(s.Posts(), s.Operations()...))
	maps.DeleteFunc(s.Schemas(), func(name string, ref *openapi3.SchemaRef) bool { // such as the names of an event that its body lists
		return name != EnvelopeName && name != EventTypeName && !used[ref.Value]
	})
	s.markCircles()
	s.nameFields()
}

// normal makes a document's components anew.
type normal struct {
	*Spec
	from  openapi3.Schemas
	names map[string]string              // of the components, in Go
	done  map[string]*openapi3.SchemaRef // what stands for a component where it is used
	named map[*openapi3.SchemaRef]bool   // references to bodies that were made here

	making map[string]string // the types without a name that are being made, by their parts
}

// ownEnvelope reports whether the document has a schema Envelope that says which property names the
// event.
func (n *normal) ownEnvelope() bool {
	envelope := n.from[EnvelopeName]
	return envelope != nil && n.Provider.Event.Type == ""
}

// operation gives the JSON that an operation takes and answers its types.
func (n *normal) operation(o Operation) {
	name := GoName(o.OperationID)
	if o.RequestBody != nil && o.RequestBody.Value != nil {
		n.content(name+"Request", o.RequestBody.Value.Content)
	}
	answers := o.Responses.Map()
	for _, status := range slices.Sorted(maps.Keys(answers)) {
		n.content(name+"Answer", answers[status].Value.Content)
	}
}

// content does so once: operations share bodies and answers.
func (n *normal) content(name string, content openapi3.Content) {
	schema := jsonOf(content)
	if schema == nil || n.named[schema] || schema.Ref == "" && TypeOf(schema.Value) == "object" && len(schema.Value.Properties) == 0 {
		return // an empty object needs no name
	}
	body, _ := n.body(name, schema)
	for _, media := range content {
		media.Schema = body
	}
	n.named[body] = true
}

// component returns what stands for a component where it is used.
func (n *normal) component(name string) *openapi3.SchemaRef {
	if ref := n.done[name]; ref != nil {
		return ref
	}
	n.done[name] = &openapi3.SchemaRef{Value: raw(&openapi3.Schema{})} // in a list of lists of itself
	of := n.from[name]
	s := n.flat(of, name)
	switch goName := n.names[name]; {
	case s.ref != "" && (len(of.Value.AllOf) == 0 || !s.isName()):
		n.done[name] = orNull(n.component(s.ref), s)
	case s.isName() || IsHandWritten(s.of) && s.of.Extensions[goTypeName] != RawType:
		return n.addType(name, goName, of, s)
	default:
		n.done[name] = n.value(goName, s)
	}
	return n.done[name]
}

// addType makes a Go type of a component; first, since its fields may lead back to it.
func (n *normal) addType(name, goName string, of *openapi3.SchemaRef, s shape) *openapi3.SchemaRef {
	v := *s.of
	v.Extensions = s.extensions()
	if len(v.Properties) > 0 || IsEvent(&v) {
		v.Type = &openapi3.Types{"object"}
	}
	n.done[name] = orNull(&openapi3.SchemaRef{Ref: SchemaPrefix + goName, Value: &v}, shape{of: &v, null: s.null})
	n.Schemas()[goName] = &openapi3.SchemaRef{Value: &v, Origin: SchemaOrigin(of)}
	for _, property := range InOrder(v.Properties, SchemaOrigin) {
		if !IsHandWritten(&v) {
			v.Properties[property] = n.use(goName+GoName(property), v.Properties[property])
		}
	}
	return n.done[name]
}

// use returns what stands for a schema at a place that gives it a name, if it has none.
func (n *normal) use(name string, ref *openapi3.SchemaRef) *openapi3.SchemaRef {
	s := n.flat(ref)
	var out openapi3.SchemaRef
	switch {
	case s.ref != "":
		out = *orNull(n.component(s.ref), s)
	case s.isName() && n.making[parts(ref)] != "": // its parts contain themselves, and so does it
		out = *n.done["#"+n.making[parts(ref)]]
	case s.isName():
		name = n.free(name, s.of.Extensions)
		n.making[parts(ref)] = name
		out = *n.addType("#"+name, name, ref, s)
		delete(n.making, parts(ref))
	default:
		out = *n.value(name, s)
	}
	out.Origin = SchemaOrigin(ref)
	return &out
}

// parts names a schema by the schemas that it has all of, or one of.
func parts(ref *openapi3.SchemaRef) string {
	var names []string
	v := ref.Value
	for _, part := range slices.Concat(v.AllOf, v.OneOf, v.AnyOf) {
		names = append(names, parts(part))
	}
	switch {
	case ref.Ref != "":
		return ref.Ref
	case len(names) == 0 || len(v.Properties) > 0:
		return fmt.Sprintf("%p", v)
	}
	return fmt.Sprintf("%d(%s)", len(v.AllOf), strings.Join(names, " "))
}

// value returns a schema that has no name in Go.
func (n *normal) value(name string, s shape) *openapi3.SchemaRef {
	v := *s.of
	switch {
	case IsHandWritten(&v):
	case s.raw || TypeOf(&v) == "" || TypeOf(&v) == "object":
		return &openapi3.SchemaRef{Value: raw(&v)}
	case v.Items != nil:
		if v.Items = n.use(name+"Item", v.Items); IsPersonal(v.Items) {
			v.Extensions = With(v.Extensions, personalName, true)
		}
	}
	if s.null {
		v.Type = &openapi3.Types{TypeOf(&v), "null"}
	}
	return &openapi3.SchemaRef{Value: &v}
}

// raw makes the schema of JSON that is kept as it was sent.
func raw(v *openapi3.Schema) *openapi3.Schema {
	v.Properties, v.Items, v.Enum, v.Required = nil, nil, nil, nil
	v.Extensions = merged(map[string]any{goTypeName: RawType}, v.Extensions)
	return v
}

// orNull returns a reference with the words beside it, and null if it may be.
func orNull(ref *openapi3.SchemaRef, s shape) *openapi3.SchemaRef {
	plain, null := WithoutNull(ref)
	out := *plain
	v := *plain.Value
	describe(&v, &openapi3.Schema{Description: s.of.Description, Example: s.of.Example, Examples: s.of.Examples})
	out.Value = &v
	if out.Ref == "" {
		v.Extensions = merged(s.beside, v.Extensions)
		if (null || s.null) && TypeOf(&v) != "" {
			v.Type = &openapi3.Types{TypeOf(&v), "null"}
		}
		return &out
	}
	out.Extensions = s.beside
	if !null && !s.null {
		return &out
	}
	words := v.Description
	if words == plain.Value.Description {
		words = ""
	}
	return &openapi3.SchemaRef{Extensions: s.beside, Value: &openapi3.Schema{
		Description: words, Extensions: s.beside,
		OneOf: openapi3.SchemaRefs{&out, {Value: &openapi3.Schema{Type: &openapi3.Types{"null"}}}},
	}}
}

// addEnvelope adds the envelope, where the document has none, and gives it to the
// bodies of the webhooks: the one property that names the event.
func (s *Spec) addEnvelope() {
	field := s.Provider.Event.Type
	if s.Schemas()[EnvelopeName] != nil || field == "" {
		return
	}
	eventType := func(description string) *openapi3.Schema {
		return &openapi3.Schema{Type: &openapi3.Types{"string"}, Description: description, Extensions: map[string]any{goTypeName: EventTypeName}}
	}
	s.Schemas()[EventTypeName] = &openapi3.SchemaRef{Value: eventType("The name of an event.")}
	s.Schemas()[EnvelopeName] = &openapi3.SchemaRef{Value: &openapi3.Schema{
		Type: &openapi3.Types{"object"}, Description: "The part that all events have in common.", Required: []string{field},
		Properties: openapi3.Schemas{field: {
			Ref: SchemaPrefix + EventTypeName, Value: eventType("The event type; it may be newer than this package."),
		}},
	}}
	s.typeIsNowhere = true
	for _, item := range s.Doc.Webhooks {
		if item.Post == nil || BodySchema(item.Post) == nil {
			continue // refused
		}
		v := s.Schemas()[SchemaName(BodySchema(item.Post).Ref)].Value
		if IsEvent(v) {
			continue
		}
		if v.Properties[field] != nil {
			s.typeIsNowhere = false
		}
		v.AllOf = openapi3.SchemaRefs{{Ref: SchemaPrefix + EnvelopeName, Value: s.Envelope()}}
		delete(v.Properties, field)
		v.Required = slices.DeleteFunc(slices.Clone(v.Required), func(name string) bool { return name == field })
	}
}

// markCircles makes pointers of the properties that lead back to the object that
// they are in.
func (s *Spec) markCircles() {
	for _, name := range InOrder(s.Schemas(), SchemaOrigin) {
		of := s.Schemas()[name].Value
		for _, property := range InOrder(of.Properties, SchemaOrigin) {
			ref := of.Properties[property]
			if s.leadsBack(s.Resolved(ref), of, make(map[*openapi3.Schema]bool)) {
				ref.Extensions = With(ref.Extensions, PointerName, true)
			}
		}
	}
}

// leadsBack reports whether a schema is another, or holds it outside of arrays and
// of pointers.
func (s *Spec) leadsBack(from, to *openapi3.Schema, seen map[*openapi3.Schema]bool) bool {
	if seen[from] || IsHandWritten(from) {
		return false
	}
	seen[from] = true
	return from == to || slices.ContainsFunc(slices.Collect(maps.Values(from.Properties)), func(p *openapi3.SchemaRef) bool {
		return !IsPointer(p) && s.leadsBack(s.Resolved(p), to, seen)
	})
}

// IsPointer reports whether a property leads back to the object that it is in.
func IsPointer(ref *openapi3.SchemaRef) bool { return ref.Extensions[PointerName] != nil }
