package spec

import (
	"maps"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

const (
	RawType     = "json.RawMessage" // RawType is the type of a value that is kept as the JSON that was sent
	PointerName = "x-pointer"       // PointerName marks, in memory: a property that leads back to the object it is in
)

// ordinary brings an ordinary OpenAPI document, in memory, into the form that the generator reads:
// named components, one envelope, and scalars inline. A document that was written for the generator
// has that form.
func (s *Spec) ordinary() {
	if s.Doc.Components == nil {
		s.Doc.Components = &openapi3.Components{}
	}
	if s.Doc.Components.Schemas == nil {
		s.Doc.Components.Schemas = make(openapi3.Schemas)
	}
	s.nameBodies()
	s.mergeSchemas()
	for _, name := range InOrder(s.Schemas(), SchemaOrigin) {
		s.nameInline(name, s.Schemas()[name].Value)
	}
	s.dissolveScalars()
	s.addEnvelope()
	for _, item := range s.Doc.Webhooks {
		if item.Post == nil {
			continue
		}
		if body := BodySchema(item.Post); body != nil && s.Schemas()[SchemaName(body.Ref)] != nil {
			body.Value = s.Schemas()[SchemaName(body.Ref)].Value // it may have been merged
		}
	}
	s.markCircles()
}

// nameBodies makes components of the bodies that webhooks define inline.
func (s *Spec) nameBodies() {
	for _, name := range InOrder(s.Doc.Webhooks, ItemOrigin) {
		post := s.Doc.Webhooks[name].Post
		if post == nil || post.RequestBody == nil || post.RequestBody.Value == nil {
			continue
		}
		if body := BodySchema(post); body != nil && body.Ref == "" && isObjectSchema(body.Value) {
			s.hoist(GoName(name)+"Event", body)
		}
	}
}

// hoist makes a component of an inline schema, and the schema a reference to it.
func (s *Spec) hoist(name string, ref *openapi3.SchemaRef) {
	for s.Schemas()[name] != nil {
		name += "Value"
	}
	origin := SchemaOrigin(ref)
	s.Schemas()[name] = &openapi3.SchemaRef{Value: ref.Value, Origin: origin}
	ref.Ref, ref.Origin = SchemaPrefix+name, origin
}

// mergeSchemas merges the allOf of each component, and updates the references to the component.
func (s *Spec) mergeSchemas() {
	before := make(map[string]*openapi3.Schema)
	for _, name := range InOrder(s.Schemas(), SchemaOrigin) {
		ref := s.Schemas()[name]
		if merged := s.plain(ref.Value); merged != ref.Value {
			before[name], ref.Value = ref.Value, merged
		}
	}
	for _, ref := range s.Schemas() {
		for _, inner := range inside(ref.Value) {
			s.referAnew(inner, before)
		}
	}
}

func (s *Spec) referAnew(ref *openapi3.SchemaRef, before map[string]*openapi3.Schema) {
	old := before[SchemaName(ref.Ref)]
	switch {
	case ref.Value == nil, ref.Ref != "" && old == nil:
	case ref.Ref == "":
		for _, inner := range inside(ref.Value) {
			s.referAnew(inner, before)
		}
	case ref.Value.Description == old.Description:
		ref.Value = s.Schemas()[SchemaName(ref.Ref)].Value
	default:
		ref.Value = described(s.Schemas()[SchemaName(ref.Ref)].Value, ref.Value.Description)
	}
}

// plain returns a schema with its allOf merged, unless the allOf has the envelope only.
func (s *Spec) plain(of *openapi3.Schema) *openapi3.Schema {
	return s.merged(of, make(map[*openapi3.Schema]bool))
}

func (s *Spec) merged(of *openapi3.Schema, seen map[*openapi3.Schema]bool) *openapi3.Schema {
	if of == nil || seen[of] || len(of.AllOf) == 0 || len(of.AllOf) == 1 && IsEvent(of) {
		return of
	}
	seen[of] = true
	out := *of
	out.AllOf, out.Properties, out.Required = nil, make(openapi3.Schemas), slices.Clone(of.Required)
	for _, part := range of.AllOf {
		if part.Ref == SchemaPrefix+EnvelopeName {
			out.AllOf = append(out.AllOf, part)
			continue
		}
		merged := s.merged(part.Value, seen)
		maps.Copy(out.Properties, merged.Properties)
		out.Required = append(out.Required, merged.Required...)
		if out.Type == nil {
			out.Type = merged.Type
		}
		if out.Description == "" {
			out.Description = merged.Description
		}
	}
	maps.Copy(out.Properties, of.Properties)
	return &out
}

// nameInline makes components of the objects and enums that are defined inside of a component. A
// schema without a Go type is marked as JSON that is kept as it was sent.
func (s *Spec) nameInline(owner string, of *openapi3.Schema) {
	if of == nil || IsHandWritten(of) {
		return
	}
	for _, name := range InOrder(of.Properties, SchemaOrigin) {
		s.nameProperty(owner+GoName(name), of.Properties[name])
	}
}

func (s *Spec) nameProperty(name string, ref *openapi3.SchemaRef) {
	if ref == nil || ref.Ref != "" || ref.Value == nil {
		return
	}
	v := ref.Value
	if v.Nullable && v.Type != nil && !slices.Contains(*v.Type, "null") {
		v.Type = &openapi3.Types{TypeOf(v), "null"}
	}
	if alone := slices.Concat(UnionOf(v), v.AllOf); len(alone) == 1 && len(v.Properties) == 0 && alone[0].Ref != "" {
		ref.Ref, ref.Value = alone[0].Ref, described(alone[0].Value, v.Description)
		return
	}
	if union := UnionOf(v); len(union) == 2 && slices.ContainsFunc(union, isNull) && !slices.ContainsFunc(union, isReference) {
		other := union[0]
		if isNull(other) {
			other = union[1]
		}
		*v = *described(other.Value, v.Description)
		v.Type = &openapi3.Types{TypeOf(v), "null"}
	}
	_, nullable := WithoutNull(ref)
	switch merged := s.plain(v); {
	case IsHandWritten(v):
	case isObjectSchema(merged), len(v.Enum) > 0 && TypeOf(v) == "string":
		component := &openapi3.SchemaRef{Value: merged, Origin: SchemaOrigin(ref)}
		s.hoist(name, component)
		if nullable {
			merged.Type = &openapi3.Types{TypeOf(merged)}
			ref.Value = &openapi3.Schema{Description: v.Description, Origin: v.Origin, OneOf: openapi3.SchemaRefs{
				component, {Value: &openapi3.Schema{Type: &openapi3.Types{"null"}}},
			}}
		} else {
			ref.Ref, ref.Value = component.Ref, merged
		}
		s.nameInline(SchemaName(component.Ref), merged) // last: the merged schemas may lead back here
	case TypeOf(v) == "array" && v.Items != nil:
		s.nameProperty(name+"Item", v.Items)
	case len(v.Enum) > 0:
		v.Enum = nil // an enum of numbers becomes a number
	case isRaw(ref):
		v.Extensions = With(v.Extensions, goTypeName, RawType)
	}
}

// isObjectSchema reports whether a schema is that of an object with properties.
func isObjectSchema(s *openapi3.Schema) bool { return len(s.Properties) > 0 || len(s.AllOf) > 1 }

// isRaw reports whether Go has no type for a value: a union, anything at all, an
// object of which no property is known.
func isRaw(ref *openapi3.SchemaRef) bool {
	v := ref.Value
	if plain, nullable := WithoutNull(ref); nullable && plain.Ref != "" {
		return false
	}
	return len(UnionOf(v)) > 0 || TypeOf(v) == "" || TypeOf(v) == "object"
}

func described(s *openapi3.Schema, description string) *openapi3.Schema {
	out := *s
	if description != "" {
		out.Description = description
	}
	return &out
}

// dissolveScalars puts components that are neither objects nor enums where they
// are used: Go needs no name for them. An object of which no property is known is
// among them, unless it is a whole body: its JSON is kept.
func (s *Spec) dissolveScalars() {
	whole := make(map[string]bool)
	for _, o := range append(s.Posts(), s.Operations()...) {
		for _, ref := range o.Schemas() {
			whole[SchemaName(ref.Ref)] = true
		}
	}
	scalar := make(map[string]*openapi3.Schema)
	for name, ref := range s.Schemas() {
		v := ref.Value
		if whole[name] || name == EventTypeName || name == EnvelopeName || IsHandWritten(v) || isObjectSchema(v) || IsEvent(v) || len(v.Enum) > 0 {
			continue
		}
		scalar[name] = v
		delete(s.Schemas(), name)
	}
	if len(scalar) == 0 {
		return
	}
	for _, ref := range s.Schemas() {
		for _, p := range ref.Value.Properties {
			dissolve(p, scalar)
		}
	}
}

func dissolve(ref *openapi3.SchemaRef, scalar map[string]*openapi3.Schema) {
	if v := scalar[SchemaName(ref.Ref)]; ref.Ref != "" && v != nil {
		ref.Ref, ref.Value = "", described(v, ref.Value.Description)
	}
	if ref.Ref == "" && isRaw(ref) && !IsHandWritten(ref.Value) {
		ref.Value.Extensions = With(ref.Value.Extensions, goTypeName, RawType)
	}
	if ref.Value != nil && ref.Ref == "" && ref.Value.Items != nil {
		dissolve(ref.Value.Items, scalar)
	}
}

// addEnvelope adds the envelope, where the document has none, and gives it to the
// bodies of the webhooks: the one property that names the event.
func (s *Spec) addEnvelope() {
	field := s.Provider.Event.Type
	if s.Schemas()[EnvelopeName] != nil || field == "" {
		return
	}
	s.Schemas()[EventTypeName] = &openapi3.SchemaRef{Value: &openapi3.Schema{
		Type: &openapi3.Types{"string"}, Description: "The name of an event.",
		Extensions: map[string]any{goTypeName: EventTypeName},
	}}
	s.Schemas()[EnvelopeName] = &openapi3.SchemaRef{Value: &openapi3.Schema{
		Type: &openapi3.Types{"object"}, Description: "The part that all events have in common.", Required: []string{field},
		Properties: openapi3.Schemas{field: {
			Ref: SchemaPrefix + EventTypeName,
			Value: &openapi3.Schema{
				Type: &openapi3.Types{"string"}, Description: "The event type; it may be newer than this package.",
				Extensions: map[string]any{goTypeName: EventTypeName},
			},
		}},
	}}
	s.typeIsNowhere = true
	for _, item := range s.Doc.Webhooks {
		if item.Post == nil || BodySchema(item.Post) == nil {
			continue // refused
		}
		body := BodySchema(item.Post)
		component := s.Schemas()[SchemaName(body.Ref)]
		if component == nil || IsEvent(component.Value) {
			continue
		}
		v := component.Value
		if v.Properties[field] != nil || item.Post.Extensions[eventNamesName] != nil {
			s.typeIsNowhere = false
		}
		v.Type = &openapi3.Types{"object"}
		v.AllOf = openapi3.SchemaRefs{{Ref: SchemaPrefix + EnvelopeName, Value: s.Envelope()}}
		delete(v.Properties, field)
		v.Required = slices.DeleteFunc(slices.Clone(v.Required), func(name string) bool { return name == field })
		body.Value = v
	}
}

// markCircles makes pointers of the properties that lead back to the object that
// they are in.
func (s *Spec) markCircles() {
	for _, name := range InOrder(s.Schemas(), SchemaOrigin) {
		of := s.Schemas()[name].Value
		for _, property := range InOrder(of.Properties, SchemaOrigin) {
			ref := of.Properties[property]
			plain, _ := WithoutNull(ref)
			component := s.Schemas()[SchemaName(plain.Ref)]
			if component == nil || IsHandWritten(component.Value) || ref.Extensions[PointerName] != nil {
				continue
			}
			if s.leadsBack(component.Value, of, make(map[*openapi3.Schema]bool)) {
				ref.Extensions = With(ref.Extensions, PointerName, true)
			}
		}
	}
}

// leadsBack reports whether a schema is another, or holds it outside of arrays and
// of pointers.
func (s *Spec) leadsBack(from, to *openapi3.Schema, seen map[*openapi3.Schema]bool) bool {
	if from == to {
		return true
	}
	seen[from] = true
	for _, p := range from.Properties {
		plain, _ := WithoutNull(p)
		next := s.Schemas()[SchemaName(plain.Ref)]
		if next == nil || IsHandWritten(next.Value) || seen[next.Value] || p.Extensions[PointerName] != nil {
			continue
		}
		if s.leadsBack(next.Value, to, seen) {
			return true
		}
	}
	return false
}

// IsPointer reports whether a property leads back to the object that it is in.
func IsPointer(ref *openapi3.SchemaRef) bool { return ref.Extensions[PointerName] != nil }
