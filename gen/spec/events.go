package spec

import (
	"maps"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// webhook is a webhook of the document, and one schema of its body.
type webhook struct {
	name  string
	item  *openapi3.PathItem
	body  *openapi3.SchemaRef
	names []string // that the body has of its own
}

// webhooks makes an event of each name that the body of a webhook says of itself, by a const or an enum. A body
// that says none has the name of its webhook. A body that is one of several is that many events.
func (n *normal) webhooks() {
	items := n.Doc.Webhooks
	n.Doc.Webhooks = make(map[string]*openapi3.PathItem)
	n.events = make(map[string][]string)
	var all []webhook
	alias, known := make(map[string]bool), make(map[string]bool)
	for _, name := range InOrder(items, ItemOrigin) {
		post := items[name].Post
		if post == nil || BodySchema(post) == nil {
			n.Doc.Webhooks[name] = items[name] // refused
			continue
		}
		for _, name := range aliasesOf(post) {
			alias[name] = true
		}
		for _, one := range n.split(BodySchema(post)) {
			all = append(all, webhook{name, items[name], one.body, one.names})
		}
	}
	for _, w := range all {
		names := []string{w.name}
		if !slices.Contains(w.names, w.name) {
			if own := slices.DeleteFunc(slices.Clone(w.names), func(name string) bool { return alias[name] }); len(own) > 0 {
				names = own
			}
		}
		for _, name := range names {
			n.addEvent(name, w, len(names) == 1)
			known[name] = true
		}
	}
	for _, w := range all {
		for _, name := range w.names {
			if !known[name] && !alias[name] { // a list of all names, and this has no webhook of its own
				n.addEvent(name, w, false)
				known[name] = true
			}
		}
	}
}

// typeField is the property that names the event.
func (n *normal) typeField() string {
	if !n.ownEnvelope() {
		return n.Provider.Event.Type
	}
	for name, p := range n.from[EnvelopeName].Value.Properties {
		if n.flat(p).ref == EventTypeName {
			return name
		}
	}
	return ""
}

// namesIn returns the names that a body says of itself.
func (n *normal) namesIn(body *openapi3.SchemaRef) (names []string) {
	if p := n.flat(body).of.Properties[n.typeField()]; p != nil {
		for _, value := range n.flat(p).of.Enum {
			names = append(names, value.(string))
		}
	}
	return names
}

// split returns the schemas of which a body is one, if each has a name, its own or that of the discriminator.
func (n *normal) split(body *openapi3.SchemaRef) (out []webhook) {
	whole := []webhook{{body: body, names: n.namesIn(body)}}
	of := body.Value
	if component := n.from[SchemaName(body.Ref)]; component != nil {
		of = component.Value
	}
	union := append(UnionOf(of), n.mapped(of, nil)...)
	if len(union) < 2 || len(UnionOf(of)) > 0 && len(of.Properties)+len(of.AllOf) > 0 {
		return whole
	}
	for _, one := range union {
		parts := n.split(one)
		if d := of.Discriminator; d != nil && d.PropertyName == n.typeField() && len(parts) == 1 && len(parts[0].names) == 0 {
			for _, name := range slices.Sorted(maps.Keys(d.Mapping)) {
				if target := d.Mapping[name]; SchemaName(target.Ref) == SchemaName(one.Ref) {
					parts[0].names = append(parts[0].names, name)
				}
			}
		}
		if slices.ContainsFunc(parts, func(w webhook) bool { return len(w.names) == 0 }) {
			return whole
		}
		out = append(out, parts...)
	}
	return out
}

// addEvent adds an event type to the document. x-go-name is that of a webhook with one event.
func (n *normal) addEvent(name string, w webhook, alone bool) {
	if n.Doc.Webhooks[name] != nil {
		n.early = append(n.early, problem{n.text.place("webhooks", w.name), "webhooks." + w.name, name + " is the name of two events; give one of the bodies another, with a const"})
		return
	}
	item, post := *w.item, *w.item.Post
	body, s := n.body(GoName(name)+"Event", w.body)
	post.Extensions = merged(nil, post.Extensions)
	if !alone {
		delete(post.Extensions, goNameName)
	}
	goName := unused(n.taken, "Event"+goNameOf(GoName(name), post.Extensions))
	post.Extensions[goNameName] = goName[len("Event"):]
	for _, shared := range sharedNames {
		if value, ok := s.extensions()[shared]; ok {
			post.Extensions = merged(post.Extensions, map[string]any{shared: value})
		}
	}
	if post.ExternalDocs == nil {
		post.ExternalDocs = s.of.ExternalDocs
	}
	post.RequestBody = &openapi3.RequestBodyRef{Value: &openapi3.RequestBody{Content: openapi3.NewContentWithJSONSchemaRef(body)}}
	item.Post = &post
	n.Doc.Webhooks[name] = &item
	n.events[w.name] = append(n.events[w.name], name)
}

// body returns a reference to the struct of a body, and all that its schema says.
func (n *normal) body(name string, ref *openapi3.SchemaRef) (*openapi3.SchemaRef, shape) {
	s := n.flat(ref)
	if wide := n.widened(ref); wide != nil {
		ref = wide
	}
	if whole := n.flat(ref); whole.raw { // a struct with the fields of all
		join := *ref
		if component := n.from[SchemaName(ref.Ref)]; component != nil {
			join, name = *component, n.names[SchemaName(ref.Ref)]
		}
		v := *join.Value
		v.Extensions = merged(map[string]any{joinName: true}, v.Extensions)
		ref = &openapi3.SchemaRef{Value: &v, Origin: SchemaOrigin(ref)}
	}
	if plain, _ := WithoutNull(n.use(name, ref)); plain.Ref != "" {
		return &openapi3.SchemaRef{Ref: plain.Ref, Value: n.Schemas()[SchemaName(plain.Ref)].Value}, s
	}
	whole := n.flat(ref) // of no known properties
	key := "#" + name
	if ref.Ref != "" {
		key = SchemaName(ref.Ref)
		name = n.names[key]
	} else {
		name = n.free(name, nil)
	}
	whole.raw, whole.of = false, &openapi3.Schema{Type: &openapi3.Types{"object"}, Description: whole.of.Description, Extensions: whole.of.Extensions}
	n.addType(key, name, ref, whole)
	return &openapi3.SchemaRef{Ref: SchemaPrefix + name, Value: n.Schemas()[name].Value}, s
}

// widened returns {$ref: an event} of a body that is
//
//	allOf: [{$ref: an event}, {properties: {event: {const: its name}}}]
func (n *normal) widened(ref *openapi3.SchemaRef) *openapi3.SchemaRef {
	if ref.Ref != "" || len(ref.Value.AllOf) == 0 || ref.Value.AllOf[0].Ref == "" || len(UnionOf(ref.Value)) > 0 {
		return nil
	}
	own := *ref.Value
	own.AllOf = nil
	for _, part := range append(ref.Value.AllOf[1:], &openapi3.SchemaRef{Value: &own}) {
		v := part.Value
		_, isName := v.Properties[n.typeField()]
		if part.Ref != "" || len(v.AllOf) > 0 || len(UnionOf(v)) > 0 || v.Extensions[essentialName] != nil || len(v.Properties) > 1 || len(v.Properties) == 1 && !isName {
			return nil
		}
	}
	return ref.Value.AllOf[0]
}
