package spec

import (
	"maps"
	"slices"

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
		done: make(map[string]*openapi3.SchemaRef), named: make(map[*openapi3.SchemaRef]bool),
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
	for name, ref := range s.Schemas() { // such as the names of an event that its body lists
		if name != EnvelopeName && name != EventTypeName && !used[ref.Value] {
			delete(s.Schemas(), name)
		}
	}
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
}

// ownEnvelope reports whether the document has a schema Envelope that says which property names the
// event.
func (n *normal) ownEnvelope() bool {
	envelope := n.from[EnvelopeName]
	return envelope != nil && n.Provider.Event.Type == ""
}

// shape is a schema without allOf, union and const.
type shape struct {
	of      *openapi3.Schema
	ref     string         // the component that it is, maybe with other words
	beside  map[string]any // the extensions beside that reference
	null    bool           // it may be null
	nothing bool           // it is nothing but null
	raw     bool           // Go has no type for it
}

// extensions are those beside a reference, and those of what it refers to.
func (s shape) extensions() map[string]any { return merged(s.beside, s.of.Extensions) }

// merged returns the extensions of both; of an extension of both, that of the first. What is essential to one of
// them is.
func merged(a, b map[string]any) map[string]any {
	out := maps.Clone(b)
	if out == nil {
		out = make(map[string]any)
	}
	maps.Copy(out, a)
	if one, ok := a[essentialName].([]any); ok {
		other, _ := b[essentialName].([]any)
		out[essentialName] = slices.Concat(one, other)
	}
	return out
}

// isName reports whether the Go type of a shape has a name.
func (s shape) isName() bool {
	return !s.raw && !IsHandWritten(s.of) && (len(s.of.Properties) > 0 || IsEvent(s.of) || len(s.of.Enum) > 0)
}

// flat returns the shape of a schema. seen are the components around it.
func (n *normal) flat(ref *openapi3.SchemaRef, seen ...string) shape {
	if name := SchemaName(ref.Ref); ref.Ref != "" && n.from[name] != nil {
		if slices.Contains(seen, name) {
			return shape{of: &openapi3.Schema{}}
		}
		of := n.from[name]
		out := n.flat(of, append(slices.Clip(seen), name)...)
		if out.ref == "" || of.Ref == "" && len(of.Value.AllOf) > 0 {
			v := *out.of
			v.Extensions = out.extensions()
			out.of, out.ref, out.beside = &v, name, nil
		}
		return out
	}
	if IsHandWritten(ref.Value) {
		return shape{of: ref.Value, null: slices.Contains(ref.Value.Type.Slice(), "null")}
	}
	out := n.alone(ref.Value)
	join := len(out.of.Properties) > 0 || len(ref.Value.AllOf) > 0 || ref.Value.Extensions[joinName] != nil || ref.Value.Discriminator != nil
	for _, part := range ref.Value.AllOf {
		if part.Ref == SchemaPrefix+EnvelopeName && n.ownEnvelope() {
			out.of.AllOf = append(out.of.AllOf, part)
			continue
		}
		out = n.and(out, n.flat(part, seen...))
	}
	for _, part := range []*openapi3.SchemaRef{ref.Value.Then, ref.Value.Else} {
		if part != nil {
			s := n.flat(part, seen...)
			v := *s.of
			v.Required, s.of, s.ref = nil, &v, ""
			out = n.and(out, s)
		}
	}
	for _, union := range []openapi3.SchemaRefs{ref.Value.OneOf, ref.Value.AnyOf, n.mapped(ref.Value, seen)} {
		if len(union) > 0 {
			out = n.and(out, n.or(union, join, seen))
		}
	}
	return out
}

// mapped are the schemas of a discriminator that has no union: each has an allOf of the schema that has it.
func (n *normal) mapped(of *openapi3.Schema, seen []string) (union openapi3.SchemaRefs) {
	if of.Discriminator == nil || len(UnionOf(of)) > 0 {
		return nil
	}
	for _, value := range slices.Sorted(maps.Keys(of.Discriminator.Mapping)) {
		target := of.Discriminator.Mapping[value]
		name := SchemaName(target.Ref)
		if slices.Contains(seen, name) {
			return nil // this is one of them
		}
		if n.from[name] != nil {
			union = append(union, &openapi3.SchemaRef{Ref: SchemaPrefix + name})
		}
	}
	return union
}

// alone is the shape of a schema without its allOf and unions.
func (n *normal) alone(of *openapi3.Schema) shape {
	v := *of
	out := shape{of: &v, null: of.Nullable || of.Extensions[nullableName] == true}
	v.AllOf, v.OneOf, v.AnyOf, v.Const, v.Properties = nil, nil, nil, nil, maps.Clone(of.Properties)
	if of.Const != nil {
		v.Enum = []any{of.Const}
	}
	var values []any
	for _, value := range v.Enum {
		if value == nil {
			out.null = true
		} else if !slices.Contains(values, value) {
			values = append(values, value)
		}
	}
	v.Enum = values
	types := of.Type.Slice()
	if slices.Contains(types, "null") {
		out.null = true
		types = slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "null" })
		out.nothing = len(types) == 0
	}
	switch {
	case len(types) > 0 && isTextOrNumber(types):
		types, v.Format = []string{"string"}, "text"
	case len(types) > 0:
	case len(v.Properties) > 0:
		types = []string{"object"}
	case v.Items != nil:
		types = []string{"array"}
	case len(values) > 0 && areTexts(values):
		types = []string{"string"}
	case len(values) > 0:
		types = []string{kindOf(values[0])}
	}
	v.Type = nil
	if len(types) > 0 {
		v.Type = (*openapi3.Types)(&types)
	}
	if TypeOf(&v) != "string" || !areTexts(values) {
		v.Enum = nil // an enum of numbers becomes a number
	}
	out.raw = len(types) > 1 || v.Items != nil && n.mayBeNull(v.Items) || TypeOf(&v) == "array" && v.Items == nil
	return out
}

// mayBeNull reports whether an element of a list may be null, which no Go slice has.
func (n *normal) mayBeNull(items *openapi3.SchemaRef) bool {
	if of := n.from[SchemaName(items.Ref)]; items.Ref != "" && of != nil {
		items = of
	}
	v := items.Value
	return v != nil && (slices.Contains(v.Type.Slice(), "null") || v.Extensions[nullableName] == true || slices.ContainsFunc(UnionOf(v), isNull))
}

func areTexts(values []any) bool {
	return !slices.ContainsFunc(values, func(v any) bool { _, ok := v.(string); return !ok })
}

func kindOf(value any) string {
	switch n := value.(type) {
	case bool:
		return "boolean"
	case float64:
		if n == float64(int64(n)) {
			return "integer"
		}
		return "number"
	}
	return "object"
}

func isTextOrNumber(kinds []string) bool {
	return len(kinds) > 1 && slices.Contains(kinds, "string") && !slices.ContainsFunc(kinds, func(k string) bool {
		return k != "string" && k != "integer" && k != "number"
	})
}

// adds reports whether a part of an allOf says more than words about another.
func (s shape) adds(to shape) bool {
	v := s.of
	return s.raw || len(v.Properties) > 0 || len(v.Required) > 0 || len(v.AllOf) > 0 || v.Items != nil || v.Format != "" ||
		v.Extensions[essentialName] != nil || v.Type != nil && TypeOf(v) != TypeOf(to.of) ||
		slices.ContainsFunc(v.Enum, func(value any) bool { return len(to.of.Enum) == 0 || !slices.Contains(to.of.Enum, value) })
}

// and returns the shape of a value that has both, and is described by the first.
func (n *normal) and(a, b shape) shape {
	null := a.null || b.null
	switch {
	case a.nothing || !a.adds(b):
		return worded(b, a, null)
	case !b.adds(a):
		out := worded(a, b, null)
		if a.of.Description != "" {
			out.of.Description = a.of.Description
		}
		return out
	}
	v := *b.of
	out := shape{of: &v, null: null, raw: a.raw || b.raw}
	v.Extensions = merged(a.extensions(), b.extensions())
	describe(&v, a.of)
	v.Required = slices.Concat(a.of.Required, b.of.Required)
	v.AllOf = slices.Concat(a.of.AllOf, b.of.AllOf)
	v.Properties = maps.Clone(b.of.Properties)
	if v.Properties == nil {
		v.Properties = make(openapi3.Schemas)
	}
	for name, p := range a.of.Properties {
		if other := v.Properties[name]; other != nil && other != p {
			p = &openapi3.SchemaRef{Value: &openapi3.Schema{AllOf: openapi3.SchemaRefs{p, other}}, Origin: SchemaOrigin(other)}
		}
		v.Properties[name] = p
	}
	for _, value := range a.of.Enum {
		if !slices.Contains(v.Enum, value) {
			v.Enum = append(slices.Clip(v.Enum), value)
		}
	}
	switch {
	case a.of.Items != nil && b.of.Items != nil:
		v.Items = &openapi3.SchemaRef{Value: &openapi3.Schema{AllOf: openapi3.SchemaRefs{a.of.Items, b.of.Items}}}
	case a.of.Items != nil:
		v.Items = a.of.Items
	}
	if v.Format == "" {
		v.Format = a.of.Format
	}
	if a.of.Type != nil {
		v.Type = a.of.Type
	}
	out.raw = out.raw || b.of.Type != nil && a.of.Type != nil && TypeOf(a.of) != TypeOf(b.of)
	return out
}

// worded returns a shape with the words of another.
func worded(s, words shape, null bool) shape {
	v := *s.of
	s.of, s.null, s.nothing = &v, null, false
	describe(&v, words.of)
	if s.ref == "" {
		v.Extensions = merged(words.extensions(), v.Extensions)
	} else {
		s.beside = merged(words.extensions(), s.beside)
	}
	return s
}

func describe(v, words *openapi3.Schema) {
	if words.Description != "" {
		v.Description = words.Description
	}
	if words.ExternalDocs != nil {
		v.ExternalDocs = words.ExternalDocs
	}
	if words.Example != nil || len(words.Examples) > 0 {
		v.Example, v.Examples = words.Example, words.Examples
	}
}

// or returns the shape of a value that is one of a union.
func (n *normal) or(union openapi3.SchemaRefs, join bool, seen []string) shape {
	null := false
	var some []shape
	for _, ref := range union {
		one := n.flat(ref, seen...)
		if null = null || one.null; !one.nothing && !slices.ContainsFunc(some, func(s shape) bool { return s.ref != "" && s.ref == one.ref }) {
			some = append(some, one)
		}
	}
	if len(some) == 0 {
		return shape{of: &openapi3.Schema{}, null: true, nothing: true}
	}
	out := some[0]
	var kinds []string
	ext := make(map[string]any)
	for _, s := range some {
		ext = merged(ext, s.extensions())
		kinds = append(kinds, kindIn(s))
	}
	kinds = slices.Compact(slices.Sorted(slices.Values(kinds)))
	switch {
	case len(some) == 1:
		out.null = null
		return out
	case slices.Equal(kinds, []string{"string"}):
		out = texts(some)
	case len(kinds) == 1 && slices.Contains([]string{"integer", "number", "boolean"}, kinds[0]):
		out = scalarOf(kinds[0], "")
	case isTextOrNumber(kinds):
		out = scalarOf("string", "text")
	case slices.Equal(kinds, []string{"integer", "number"}):
		out = scalarOf("number", "")
	case slices.Equal(kinds, []string{"object"}) && (join || n.tellApart(some)):
		out = joined(some)
	default:
		out = shape{of: &openapi3.Schema{}, raw: true}
	}
	if out.ref == "" {
		out.of.Extensions = merged(out.of.Extensions, ext)
	}
	out.null = null
	return out
}

func scalarOf(kind, format string) shape {
	return shape{of: &openapi3.Schema{Type: &openapi3.Types{kind}, Format: format}}
}

func kindIn(s shape) string {
	if IsHandWritten(s.of) || s.raw && TypeOf(s.of) != "object" && (len(s.of.Type.Slice()) > 0 || s.of.Items != nil) {
		return "other"
	}
	if len(s.of.Properties) > 0 || len(s.of.Required) > 0 || IsEvent(s.of) {
		return "object"
	}
	if TypeOf(s.of) == "object" {
		return "other" // of any properties
	}
	return TypeOf(s.of)
}

// texts is the shape of a text that is one of several. Any text makes an enum of them open.
func texts(some []shape) shape {
	named := slices.DeleteFunc(slices.Clone(some), func(s shape) bool { return len(s.of.Enum) == 0 })
	if len(named) == 0 {
		out := scalarOf("string", some[0].of.Format)
		if slices.ContainsFunc(some, func(s shape) bool { return s.of.Format != out.of.Format }) {
			out.of.Format = ""
		}
		return out
	}
	out := named[0]
	v := *out.of
	for _, s := range named[1:] {
		v.Enum = append(slices.Clip(v.Enum), slices.DeleteFunc(slices.Clone(s.of.Enum), func(value any) bool { return slices.Contains(v.Enum, value) })...)
		out.ref, out.beside = "", nil
	}
	if out.of = &v; len(named) < len(some) {
		v.Extensions = merged(map[string]any{openEnumName: true}, v.Extensions)
	}
	return out
}

// tellApart reports whether objects have a property whose text tells them apart.
func (n *normal) tellApart(some []shape) bool {
	for name := range some[0].of.Properties {
		if !slices.ContainsFunc(some, func(s shape) bool {
			p := s.of.Properties[name]
			return p == nil || len(n.flat(p).of.Enum) == 0
		}) {
			return true
		}
	}
	return false
}

// joined is one object that has the properties of all.
func joined(some []shape) shape {
	v := openapi3.Schema{Type: &openapi3.Types{"object"}, Properties: make(openapi3.Schemas), Required: some[0].of.Required, AllOf: some[0].of.AllOf}
	of := make(map[string]openapi3.SchemaRefs)
	for _, s := range some {
		v.Required = slices.DeleteFunc(slices.Clone(v.Required), func(name string) bool { return !slices.Contains(s.of.Required, name) })
		for name, p := range s.of.Properties {
			if !slices.ContainsFunc(of[name], func(other *openapi3.SchemaRef) bool { return other == p || p.Ref != "" && p.Ref == other.Ref }) {
				of[name] = append(of[name], p)
			}
		}
	}
	for name, refs := range of {
		v.Properties[name] = refs[0]
		if len(refs) > 1 {
			v.Properties[name] = &openapi3.SchemaRef{Value: &openapi3.Schema{AnyOf: refs, Extensions: map[string]any{joinName: true}}, Origin: SchemaOrigin(refs[0])}
		}
	}
	return shape{of: &v}
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
		n.addType(name, goName, of, s)
	default:
		n.done[name] = n.value(goName, s)
	}
	return n.done[name]
}

// addType makes a Go type of a component; first, since its fields may lead back to it.
func (n *normal) addType(name, goName string, of *openapi3.SchemaRef, s shape) {
	v := *s.of
	v.Extensions = s.extensions()
	if len(v.Properties) > 0 || IsEvent(&v) {
		v.Type = &openapi3.Types{"object"}
	}
	n.done[name] = orNull(&openapi3.SchemaRef{Ref: SchemaPrefix + goName, Value: &v}, shape{of: &v, null: s.null})
	n.Schemas()[goName] = &openapi3.SchemaRef{Value: &v, Origin: SchemaOrigin(of)}
	if !IsHandWritten(&v) {
		n.fields(goName, &v)
	}
}

func (n *normal) fields(owner string, of *openapi3.Schema) {
	for _, name := range InOrder(of.Properties, SchemaOrigin) {
		of.Properties[name] = n.use(owner+GoName(name), of.Properties[name])
	}
}

// use returns what stands for a schema at a place that gives it a name, if it has none.
func (n *normal) use(name string, ref *openapi3.SchemaRef) *openapi3.SchemaRef {
	s := n.flat(ref)
	var out openapi3.SchemaRef
	switch {
	case s.ref != "":
		out = *orNull(n.component(s.ref), s)
	case s.isName():
		out = *n.hoist(name, ref, s)
	default:
		out = *n.value(name, s)
	}
	out.Origin = SchemaOrigin(ref)
	return &out
}

// hoist makes a component of an inline schema.
func (n *normal) hoist(name string, ref *openapi3.SchemaRef, s shape) *openapi3.SchemaRef {
	name = n.free(name, s.of.Extensions)
	n.addType("#"+name, name, ref, s)
	return n.done["#"+name]
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
