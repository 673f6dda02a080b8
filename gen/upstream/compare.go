package upstream

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/paghooks/paghooks/gen/spec"
)

// Mark marks a part that is delivered though the document does
// not have it: a webhook or a property with true, an enum with the list of its
// values.
const Mark = "x-undocumented"

// comparison gathers how the document differs from the spec.
type comparison struct {
	*spec.Spec
	official *official
	objects  map[string][]*officialSchema // our schema: its schemas in the document, in one place or several
	enums    map[string][]string          // our enum: the values that the document has for it
	lines    []string
}

// compareTo lists the new, missing and changed parts of the document, sorted.
func compareTo(s *spec.Spec, o *official) ([]string, error) {
	counterparts := counterparts(s, o)
	c := &comparison{Spec: s, official: o, objects: make(map[string][]*officialSchema), enums: make(map[string][]string)}
	for _, ours := range slices.Sorted(maps.Keys(counterparts)) {
		if s.Schemas()[ours] == nil {
			return nil, fmt.Errorf("gen: %s has no schema %s: correct the table in x-upstream", s.Name, ours)
		}
		for _, theirs := range counterparts[ours] {
			if o.schemas[theirs] == nil {
				c.say("gone", ours, "%s is not in the document: if it has another name, correct the table in x-upstream", theirs)
				continue
			}
			c.meet(ours, o.schemas[theirs])
		}
	}
	c.compareEvents()
	c.compareObjects()
	c.compareEnums()
	slices.Sort(c.lines)
	return slices.Compact(c.lines), nil
}

func (c *comparison) say(what, path, format string, args ...any) {
	line := fmt.Sprintf("%-7s %s: %s", what, path, fmt.Sprintf(format, args...))
	c.lines = append(c.lines, strings.Map(printable, line))
}

// printable keeps a line one line, and a terminal as it is: names in the
// document are a stranger's.
func printable(r rune) rune {
	if !unicode.IsPrint(r) {
		return unicode.ReplacementChar
	}
	return r
}

// presence checks that a part of ours is in the document, or is not, as it should.
func (c *comparison) presence(path string, documented, marked bool) {
	switch {
	case documented && marked:
		c.say("changed", path, "it is in the document now, take %s away", Mark)
	case !documented && !marked:
		c.say("gone", path, "it is not in the document")
	}
}

// meet notes that theirs is the counterpart of our object, and goes on with
// the objects inside.
func (c *comparison) meet(name string, theirs *officialSchema) {
	schema := c.Schemas()[name]
	if schema == nil || slices.Contains(c.objects[name], theirs) {
		return
	}
	c.objects[name] = append(c.objects[name], theirs)
	properties := schema.Value.Properties
	for _, property := range slices.Sorted(maps.Keys(properties)) {
		if found := theirs.Properties[property]; found != nil {
			c.meetProperty(name+"."+property, properties[property], found)
		}
	}
}

func (c *comparison) meetProperty(path string, ours *openapi3.SchemaRef, theirs *officialSchema) {
	ours, _ = spec.WithoutNull(ours)
	if theirs = c.official.resolve(theirs); theirs == nil {
		c.say("changed", path, "its $ref leads nowhere in the document")
		return
	}
	kind, other := spec.TypeOf(ours.Value), theirs.kind()
	switch {
	case spec.SchemaName(ours.Ref) == spec.EventTypeName: // its values are the webhooks: see compareEvents
	case other == "", c.takesNumbers(ours.Value) && other != "object" && other != "array":
	case kind != other:
		c.say("changed", path, "it is %s in the document, %s in the spec", article(other), article(kind))
	case kind == "object":
		c.meet(spec.SchemaName(ours.Ref), theirs)
	case kind == "array":
		if theirs.Items != nil && ours.Value.Items != nil {
			c.meetProperty(path+"[]", ours.Value.Items, theirs.Items)
		}
	case len(ours.Value.Enum) > 0:
		name := spec.SchemaName(ours.Ref)
		c.enums[name] = append(c.enums[name], enumOf(theirs)...)
	case len(theirs.Enum) > 0:
		c.say("changed", path, "it is an enum in the document: %s", strings.Join(enumOf(theirs), ", "))
	}
}

func (c *comparison) compareEvents() {
	if c.official.events == nil {
		return // it has no list
	}
	aliases := make(map[string]bool)
	for _, family := range c.Families() {
		for _, e := range family.Events {
			for _, alias := range e.Aliases {
				aliases[alias] = true
			}
		}
	}
	for name, item := range c.Doc.Webhooks {
		c.presence("event "+name, slices.Contains(c.official.events, name), item.Post.Extensions[Mark] == true)
	}
	for _, name := range c.official.events {
		if c.Doc.Webhooks[name] == nil && !aliases[name] {
			c.say("new", "event "+name, "add it to the webhooks")
		}
	}
}

func (c *comparison) compareObjects() {
	for name, theirs := range c.objects {
		documented := make(map[string]*officialSchema)
		for _, one := range theirs {
			maps.Copy(documented, one.Properties)
		}
		properties := c.Schemas()[name].Value.Properties
		for property, ours := range properties {
			c.presence(name+"."+property, documented[property] != nil, isUndocumented(ours))
		}
		for property, found := range documented {
			if properties[property] == nil {
				c.say("new", name+"."+property, "%s", c.describe(found))
			}
		}
	}
}

// compareEnums leaves an enum alone where the document has plain text: the spec
// has its values from elsewhere.
func (c *comparison) compareEnums() {
	for name, values := range c.enums {
		if len(values) == 0 {
			continue
		}
		schema := c.Schemas()[name].Value
		marked := spec.StringsOf(schema.Extensions[Mark])
		for _, v := range schema.Enum {
			value := fmt.Sprint(v)
			c.presence(name+" "+value, slices.Contains(values, value), slices.Contains(marked, value))
		}
		for _, value := range marked {
			if !slices.Contains(schema.Enum, any(value)) {
				c.say("changed", name+" "+value, "it has %s, but is not in the spec's enum", Mark)
			}
		}
		for _, value := range values {
			if !slices.Contains(schema.Enum, any(value)) {
				c.say("new", name+" "+value, "add it to the enum")
			}
		}
	}
}

func (c *comparison) describe(s *officialSchema) string {
	s = c.official.resolve(s)
	switch {
	case s == nil || s.kind() == "":
		return "add it; the document does not say of what type"
	case s.kind() == "string" && len(s.Enum) > 0:
		return "add it, an enum: " + strings.Join(enumOf(s), ", ")
	}
	return "add it, " + article(s.kind())
}

func article(kind string) string {
	switch kind {
	case "":
		return "of no type"
	case "array", "integer", "object":
		return "an " + kind
	}
	return "a " + kind
}

// takesNumbers reports whether a text may come as a number too.
func (c *comparison) takesNumbers(s *openapi3.Schema) bool {
	f, _ := c.FormatOf(s)
	return f.Number
}

// isUndocumented reports whether a property is marked. The mark beside a $ref is
// the property's own; the schema's is another matter.
func isUndocumented(ref *openapi3.SchemaRef) bool {
	if ref.Ref != "" {
		return ref.Extensions[Mark] == true
	}
	return ref.Value.Extensions[Mark] == true
}
