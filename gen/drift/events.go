package drift

import (
	"go/token"
	"maps"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
	"gopkg.in/yaml.v3"

	"github.com/paghooks/paghooks/idem/drift"

	"github.com/paghooks/paghooks/gen/spec"
)

// fieldNames are the Go names of a schema's fields.
func fieldNames(s *spec.Spec, of *openapi3.Schema) map[string]bool {
	names := make(map[string]bool)
	for name := range of.Properties {
		names[spec.GoName(name)] = true
	}
	if spec.IsEvent(of) {
		maps.Copy(names, fieldNames(s, s.Envelope()))
		names[spec.EnvelopeName] = true
	}
	return names
}

// addEvents adds webhooks for event types that are new. Those that are about
// something known get the struct of that; others share a new one by the first
// field that they have besides the envelope.
func (p *proposal) addEvents(found []*difference) {
	news := slices.DeleteFunc(slices.Clone(found), func(d *difference) bool { return d.Kind != drift.UnknownEvent })
	bodies := make(map[string][]any) // by field
	for _, d := range news {
		for _, body := range d.values {
			field := p.newField(body.(map[string]any))
			bodies[field] = append(bodies[field], body)
		}
	}
	webhooks := mapping()
	for _, d := range news {
		if hook := p.webhook(d, bodies); hook != nil {
			put(webhooks, d.property, hook)
			d.proposed = true
		}
	}
	if len(webhooks.Content) > 0 {
		p.overlay.Actions = append(p.overlay.Actions, merged("$.webhooks", webhooks))
	}
}

// newField returns the field with the entity of an event of a new family.
func (p *proposal) newField(event map[string]any) string {
	for _, name := range slices.Sorted(maps.Keys(event)) {
		if _, ok := event[name].(map[string]any); ok && p.Envelope().Properties[name] == nil {
			return name
		}
	}
	return ""
}

func (p *proposal) webhook(d *difference, bodies map[string][]any) *yaml.Node {
	eventType, name := d.property, "Event"+spec.GoName(d.property)
	if _, taken := p.names[name]; taken || drift.Name(eventType) != eventType || !token.IsIdentifier(name) || name == "Event" {
		return nil
	}
	family, field, ok := p.subject(d.values)
	if !ok {
		return nil
	}
	schema, key, url := p.knownFamily(family)
	if schema == "" && p.IsWritten(spec.EnvelopeName) {
		schema, key = p.newFamily(field, bodies)
	}
	if schema == "" {
		return nil
	}
	p.names[name] = "a new event type"
	post := mapping(
		"summary", text("The event "+eventType+" came to be, which is not described yet."))
	if url != "" {
		put(post, "externalDocs", mapping("url", text(url)))
	}
	put(post, spec.EntityKeyName, key)
	put(post, "requestBody", mapping("content", mapping("application/json", mapping("schema",
		mapping("$ref", text(spec.SchemaPrefix+schema))))))
	put(post, "responses", mapping("200", mapping("description", text("Received."))))
	return mapping("post", post)
}

// subject returns the entity of the bodies of an event type: the schema of known
// events, or else a new field. It is not ok if they do not agree.
func (p *proposal) subject(values []any) (family, field string, ok bool) {
	f := newFinder(p.Spec)
	for i, v := range values {
		body := v.(map[string]any)
		thisFamily, thisField := f.familyOf(body), ""
		if thisFamily == "" {
			thisField = p.newField(body)
		}
		if i > 0 && (thisFamily != family || thisField != field) {
			return "", "", false
		}
		family, field = thisFamily, thisField
	}
	return family, field, true
}

// knownFamily is the schema of known events, with the key and the documentation
// of a webhook that has it. Without one, the documentation is that of any
// webhook.
func (p *proposal) knownFamily(family string) (schema string, key *yaml.Node, url string) {
	for _, name := range spec.InOrder(p.Doc.Webhooks, spec.ItemOrigin) {
		post := p.Doc.Webhooks[name].Post
		isKnown := spec.SchemaName(spec.BodySchema(post).Ref) == family && p.IsWritten(family)
		if post.ExternalDocs != nil && (url == "" || isKnown) {
			url = post.ExternalDocs.URL
		}
		if isKnown {
			paths := spec.KeyPaths(post)
			return family, keyNode(paths), url
		}
	}
	return "", nil, url
}

func keyNode(paths []string) *yaml.Node {
	switch len(paths) {
	case 0:
		return text("")
	case 1:
		return text(paths[0])
	}
	return texts(paths)
}

// newFamily makes the schema of events that are about something new.
func (p *proposal) newFamily(field string, bodies map[string][]any) (schema string, key *yaml.Node) {
	schema, ok := p.families[field]
	if !ok && field != "" {
		schema = p.addFamily(field, bodies[field])
		p.families[field] = schema
	}
	object := child(p.component(schema), "properties", field, "$ref")
	if object == nil {
		return "", nil
	}
	if p.hasTextID(spec.SchemaName(object.Value)) {
		return schema, text(field + ".id")
	}
	return schema, text("")
}

// hasTextID reports whether the id of a component, an old or a new one, is a text.
func (p *proposal) hasTextID(component string) bool {
	if known := p.Schemas()[component]; known != nil {
		id := known.Value.Properties["id"]
		return id != nil && spec.ScalarOf(id.Value) == spec.Scalar{Kind: "string"}
	}
	id := child(p.component(component), "properties", "id")
	kind := child(id, "type")
	return kind != nil && kind.Value == "string" && child(id, "format") == nil
}

func (p *proposal) addFamily(field string, bodies []any) string {
	name := p.claim("New", field+"Event")
	if name == "" {
		return ""
	}
	at := len(p.components)
	p.components = append(p.components, text(name), nil) // before its objects
	own := mapping()
	values := fieldValues(bodies)
	for _, f := range slices.Sorted(maps.Keys(values)) {
		if p.Envelope().Properties[f] != nil || fieldNames(p.Spec, p.Envelope())[spec.GoName(f)] || spec.GoName(f) == spec.EnvelopeName || hasField(own, f) {
			continue
		}
		if s := p.schema(name, f, f, values[f]); s != nil {
			put(own, f, s)
		}
	}
	if child(own, field) == nil {
		p.components = p.components[:at]
		return ""
	}
	p.components[at+1] = mapping(
		"type", text("object"),
		"description", text("An event about "+field+", not described yet."),
		"allOf", sequence(mapping("$ref", text(spec.SchemaPrefix+spec.EnvelopeName))),
		"properties", own)
	return name
}

// component is the schema of a new component.
func (p *proposal) component(name string) *yaml.Node {
	for i := 0; i < len(p.components); i += 2 {
		if p.components[i].Value == name {
			return p.components[i+1]
		}
	}
	return nil
}
