// Package upstream writes a spec and the provider's own OpenAPI document in one form, so that
// oasdiff, or another tool, can compare them. The provider's document has other names, and Asaas's
// has no bodies of webhooks, only the names of the events and the objects in them.
//
//	curl -fL -o document.json https://example.com/openapi.json
//	go run github.com/paghooks/paghooks/gen upstream -spec shop.yaml document.json .
//	go run github.com/oasdiff/oasdiff@v1.36.0 changelog spec.json provider.json
//
// Both files have a webhook for each event type and, for each schema of the spec, a path that is
// answered with the types of its properties. The spec has the document's address, and the names
// that differ in it:
//
//	x-upstream:
//	  document: https://example.com/openapi.json
//	  events: WebhookConfig.events  # a list of their names; default: the document's webhooks
//	  schemas: {Order: OrderDTO}    # default: those of the same name
//
// A part that the provider delivers, though its document lacks it, is marked in the spec with
// x-undocumented: true in a webhook or a property, or in an enum with the list of the
// undocumented values. Beside a $ref it marks the property. A marked part is left out of
// spec.json, so it is a difference once the document has it.
package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/paghooks/paghooks/gen/spec"
)

// Align returns a spec, which has passed the linter, and the provider's document in one form. The error says what in the
// document, or in the spec's x-upstream, cannot be compared.
func Align(s *spec.Spec, document []byte) (ours, theirs []byte, err error) {
	d, err := parse(document, s.Upstream.Events)
	if err != nil {
		return nil, nil, fmt.Errorf("gen: the provider's document: %w", err)
	}
	a := &aligned{Spec: s, document: d, ours: make(schemas), theirs: make(schemas), met: make(map[string][]*schema)}
	for name, counterparts := range a.counterparts() {
		if s.Schemas()[name] == nil {
			return nil, nil, fmt.Errorf("gen: %s has no schema %s: correct the table in x-upstream", s.Name, name)
		}
		for _, counterpart := range counterparts {
			if d.schemas[counterpart] == nil {
				return nil, nil, fmt.Errorf("gen: the provider's document has no schema %s for %s: if it has another name, correct the table in x-upstream", counterpart, name)
			}
			a.object(name, d.schemas[counterpart])
		}
	}
	ourEvents, theirEvents := a.events()
	ours, err = a.ours.document(ourEvents)
	theirs, err2 := a.theirs.document(theirEvents)
	return ours, theirs, errors.Join(err, err2)
}

// schema is the part of a schema that is compared. The provider's document is read by hand: a
// library stumbles over mistakes in parts of Asaas's that are not compared.
type schema struct {
	Ref        string             `json:"$ref,omitempty"`
	Type       any                `json:"type,omitempty"` // a text; a list of texts from OpenAPI 3.1 on
	Enum       []any              `json:"enum,omitempty"`
	Properties map[string]*schema `json:"properties,omitempty"`
	Items      *schema            `json:"items,omitempty"`
}

// kind returns a schema's type, apart from null; "" if the schema has none.
func (s *schema) kind() string {
	types, ok := s.Type.([]any)
	if !ok {
		types = []any{s.Type}
	}
	for _, t := range types {
		if name, ok := t.(string); ok && name != "null" {
			return name
		}
	}
	if s.Properties != nil {
		return "object"
	}
	return ""
}

// provider is the provider's document.
type provider struct {
	schemas schemas
	events  []string // nil: the document does not list them
}

// parse reads a document that lists the names of events at a place, or as its webhooks if
// place is "".
func parse(data []byte, place string) (*provider, error) {
	var root struct {
		OpenAPI    string         `json:"openapi"`
		Webhooks   map[string]any `json:"webhooks"`
		Components struct {
			Schemas schemas `json:"schemas"`
		} `json:"components"`
	}
	if err := json.Unmarshal(data, &root); err != nil {
		return nil, fmt.Errorf("this is not whole JSON, get the document itself again: %w", err)
	}
	if !strings.HasPrefix(root.OpenAPI, "3.") || len(root.Components.Schemas) == 0 {
		return nil, errors.New("this is JSON, but no OpenAPI 3 document with components.schemas: give the document of the whole API")
	}
	d := &provider{schemas: root.Components.Schemas, events: slices.Collect(maps.Keys(root.Webhooks))}
	if place == "" {
		return d, nil
	}
	if d.events = d.eventNames(place); len(d.events) == 0 {
		return nil, fmt.Errorf("it has no list of event names at %s: see what became of it, and correct x-upstream.events", place)
	}
	return d, nil
}

// eventNames returns every name that a webhook can be configured for. Asaas has the enum at the
// array, where it means nothing, or at its items, or at both.
func (d *provider) eventNames(place string) (names []string) {
	prefix, property, _ := strings.Cut(place, ".")
	for name, s := range d.schemas {
		if !strings.HasPrefix(name, prefix) || s == nil {
			continue
		}
		list := d.resolve(s.Properties[property])
		if list == nil {
			continue
		}
		for _, at := range []*schema{list, d.resolve(list.Items)} {
			if at != nil {
				names = append(names, spec.StringsOf(at.Enum)...)
			}
		}
	}
	return names
}

// resolve follows references; nil if they lead nowhere.
func (d *provider) resolve(s *schema) *schema {
	for range 10 { // enough, and no endless circle
		if s == nil || s.Ref == "" {
			return s
		}
		s = d.schemas[spec.SchemaName(s.Ref)]
	}
	return nil
}

// schemas are by name. In the form that is compared, none contains another: an object or an enum
// in a property has its place under its own name.
type schemas map[string]*schema

// document returns an OpenAPI document in which each schema answers a path of its name.
func (s schemas) document(events []string) ([]byte, error) {
	type object = map[string]any
	answer := func(schema *schema) object {
		return object{"200": object{"description": "", "content": object{"application/json": object{"schema": schema}}}}
	}
	paths, webhooks := object{}, object{}
	for name, schema := range s {
		paths["/"+name] = object{"get": object{"responses": answer(schema)}}
	}
	for _, name := range events {
		webhooks[name] = object{"post": object{"responses": answer(&schema{})}}
	}
	return json.MarshalIndent(object{"openapi": "3.1.0", "info": object{"title": "aligned", "version": "1"}, "paths": paths, "webhooks": webhooks}, "", "  ")
}

// object returns the properties of an object, which it adds if it is new.
func (s schemas) object(name string) map[string]*schema {
	if s[name] == nil {
		s[name] = &schema{Type: "object", Properties: make(map[string]*schema)}
	}
	return s[name].Properties
}

// aligned gathers both sides.
type aligned struct {
	*spec.Spec
	document     *provider
	ours, theirs schemas
	met          map[string][]*schema // by the name of an object of ours: its counterparts, in one place or several
}

// counterparts returns the document's names of our schemas. The objects inside are found through
// them.
func (a *aligned) counterparts() map[string]spec.Paths {
	if a.Upstream.Schemas != nil {
		return a.Upstream.Schemas
	}
	same := make(map[string]spec.Paths)
	for name := range a.Schemas() {
		if a.document.schemas[name] != nil {
			same[name] = spec.Paths{name}
		}
	}
	return same
}

// object adds a counterpart of our object, and goes on with the objects inside. An object with
// several counterparts has the properties of all.
func (a *aligned) object(name string, theirs *schema) {
	component := a.Schemas()[name]
	if component == nil || slices.Contains(a.met[name], theirs) {
		return
	}
	a.met[name] = append(a.met[name], theirs)
	for property, ref := range component.Value.Properties {
		own := plainOf(ref)
		if !isUndocumented(ref) {
			a.ours.object(name)[property] = own
		}
		if theirs.Properties[property] == nil {
			continue
		}
		found := a.value(ref, own, a.document.resolve(theirs.Properties[property]))
		if other := a.theirs.object(name)[property]; other == nil || reflect.DeepEqual(other, own) {
			a.theirs.object(name)[property] = found // the type that differs counts
		}
	}
	for property, found := range theirs.Properties {
		if found = a.document.resolve(found); found != nil && component.Value.Properties[property] == nil {
			a.theirs.object(name)[property] = &schema{Type: found.kind()}
		}
	}
}

// value returns their side of a property, which is own unless the types differ.
func (a *aligned) value(ref *openapi3.SchemaRef, own, theirs *schema) *schema {
	plain, _ := spec.WithoutNull(ref)
	name, kind := spec.SchemaName(plain.Ref), spec.TypeOf(plain.Value)
	switch format, _ := a.FormatOf(plain.Value); {
	case theirs == nil || theirs.kind() == "" || kind == "" || name == spec.EventTypeName:
		return own
	case format.Number && theirs.kind() != "object" && theirs.kind() != "array":
		return own // a text that may be sent as a number
	case kind != theirs.kind():
		return &schema{Type: theirs.kind()}
	case kind == "object":
		a.object(name, theirs)
	case kind == "array" && theirs.Items != nil && plain.Value.Items != nil:
		return &schema{Type: kind, Items: a.value(plain.Value.Items, own.Items, a.document.resolve(theirs.Items))}
	case len(plain.Value.Enum) > 0:
		a.enum(name, plain.Value, theirs.Enum)
	case len(theirs.Enum) > 0:
		return &schema{Type: kind, Enum: theirs.Enum}
	}
	return own
}

// enum adds the values of an enum of ours. Where the document has plain text, the spec has its
// values from elsewhere.
func (a *aligned) enum(name string, ours *openapi3.Schema, theirs []any) {
	if len(theirs) == 0 {
		return
	}
	marked := spec.StringsOf(ours.Extensions[spec.UndocumentedName])
	documented := slices.DeleteFunc(slices.Clone(ours.Enum), func(v any) bool { return slices.Contains(marked, fmt.Sprint(v)) })
	a.ours[name] = &schema{Type: "string", Enum: documented}
	if a.theirs[name] == nil {
		a.theirs[name] = &schema{Type: "string"}
	}
	for _, v := range theirs {
		if !slices.Contains(a.theirs[name].Enum, v) {
			a.theirs[name].Enum = append(a.theirs[name].Enum, v)
		}
	}
}

// events returns the names of our events and of theirs; none if the document has no list.
func (a *aligned) events() (ours, theirs []string) {
	if a.document.events == nil {
		return nil, nil
	}
	aliases := make(map[string]bool)
	for _, family := range a.Families() {
		for _, e := range family.Events {
			for _, alias := range e.Aliases {
				aliases[alias] = true
			}
			if a.Doc.Webhooks[e.Type].Post.Extensions[spec.UndocumentedName] != true {
				ours = append(ours, e.Type)
			}
		}
	}
	return ours, slices.DeleteFunc(slices.Clone(a.document.events), func(name string) bool { return aliases[name] })
}

// plainOf returns our side of a property: its type, and that of its items.
func plainOf(ref *openapi3.SchemaRef) *schema {
	plain, _ := spec.WithoutNull(ref)
	out := &schema{Type: spec.TypeOf(plain.Value)}
	if plain.Value.Items != nil {
		out.Items = plainOf(plain.Value.Items)
	}
	return out
}

// isUndocumented reports whether a property is marked. The mark beside a $ref is the property's
// own; the schema's is another matter.
func isUndocumented(ref *openapi3.SchemaRef) bool {
	if ref.Ref != "" {
		return ref.Extensions[spec.UndocumentedName] == true
	}
	return ref.Value.Extensions[spec.UndocumentedName] == true
}
