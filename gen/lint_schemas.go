package main

import (
	"go/token"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

const inlineObject = "an object is defined inline, and has no name in Go; move it to components.schemas and refer to it"

func keysOf[V any](m map[string]V) iter.Seq[string] { return maps.Keys(m) }

func (l *linter) checkSchemas() {
	schemas := l.schemas()
	for _, name := range inOrder(schemas, schemaOrigin) {
		l.checkComponent("components.schemas."+name, name, schemas[name])
	}
}

// checkComponent checks a schema that becomes a Go type.
func (l *linter) checkComponent(path, name string, ref *openapi3.SchemaRef) {
	at, s := schemaOrigin(ref), ref.Value
	if goName(name) != name {
		l.report(at, path, "the name is used in Go as it is; write it %s", goName(name))
	}
	l.claim(at, path, goName(name))
	l.checkSentence(at, path+".description", s.Description)
	switch {
	case ref.Ref != "":
		l.report(at, path, "it is another name for %s; use that one", schemaName(ref.Ref))
	case isHandWritten(s):
		l.checkHandWritten(at, path, name, s)
	case len(unionOf(s)) > 0:
		l.report(at, path, "it is a union, and Go has none; make one object that has the fields of all")
	case len(s.Enum) > 0:
		l.checkEnum(at, path, name, s)
	case isEvent(s) || typeOf(s) == "object":
		l.checkObject(at, path, s)
	default:
		l.report(at, path, "it is neither an object nor an enum; write its type where it is used")
	}
}

func (l *linter) checkHandWritten(at *openapi3.Origin, path, name string, s *openapi3.Schema) {
	if s.Extensions[goTypeExtension] != name {
		l.report(at, path, "%s names another type; write %s there, or rename the schema", goTypeExtension, name)
	}
}

func (l *linter) checkEnum(at *openapi3.Origin, path, name string, s *openapi3.Schema) {
	if typeOf(s) != "string" {
		l.report(at, path, "the values of an enum are strings; write type: string")
		return
	}
	for _, v := range s.Enum {
		value, ok := v.(string)
		if !ok || goName(value) == "" {
			l.report(at, path+".enum", "the value %v makes no Go name; write a string that has letters", v)
			continue
		}
		l.claim(at, path+".enum."+value, name+goName(value))
	}
	docs, _ := s.Extensions[enumDocsExtension].(map[string]any)
	for _, value := range slices.Sorted(keysOf(docs)) {
		if !slices.Contains(s.Enum, any(value)) {
			l.report(at, path+"."+enumDocsExtension, "%s is not a value of the enum; correct it", value)
		}
	}
}

func (l *linter) checkObject(at *openapi3.Origin, path string, s *openapi3.Schema) {
	if len(s.AllOf) > 1 || len(s.AllOf) == 1 && !isEvent(s) {
		l.report(at, path+".allOf", "only events have one, of the %s alone; write the properties here", envelopeSchema)
	}
	if s.AdditionalProperties.Schema != nil || s.AdditionalProperties.Has != nil && *s.AdditionalProperties.Has {
		l.report(at, path+".additionalProperties", "oapi-codegen makes a slow map of it, and unknown fields are ignored anyway; remove it")
	}
	for _, name := range s.Required {
		if s.Properties[name] == nil {
			l.report(at, path+".required", "there is no property %q; correct it", name)
		}
	}
	l.checkEssentials(at, path, s)
	fields := l.envelopeFields(s)
	for _, name := range inOrder(s.Properties, schemaOrigin) {
		ref := s.Properties[name]
		if other, ok := fields[goName(name)]; ok {
			l.report(schemaOrigin(ref), path+"."+name, "its Go name %s is that of %s too; rename one of them", goName(name), other)
		}
		fields[goName(name)] = name
		if !token.IsIdentifier(goName(name)) {
			l.report(schemaOrigin(ref), path+"."+name, "the name makes no Go name; start it with a letter")
		}
		l.checkProperty(path+"."+name, ref)
	}
}

// envelopeFields are the Go names that an event has from its envelope.
func (l *linter) envelopeFields(s *openapi3.Schema) map[string]string {
	fields := make(map[string]string)
	if !isEvent(s) {
		return fields
	}
	fields[envelopeSchema] = "the envelope"
	for name := range l.schemas()[envelopeSchema].Value.Properties {
		fields[goName(name)] = envelopeSchema + "." + name
	}
	return fields
}

// checkProperty checks what becomes the type of a field.
func (l *linter) checkProperty(path string, ref *openapi3.SchemaRef) {
	at := schemaOrigin(ref)
	plain, _ := withoutNull(ref)
	l.checkType(at, path, plain)
}

func (l *linter) checkType(at *openapi3.Origin, path string, ref *openapi3.SchemaRef) {
	s := ref.Value
	kind := scalar{typeOf(s), s.Format}
	switch {
	case strings.Contains(schemaName(ref.Ref), "/"):
		l.report(at, path, "%s is not a schema of its own; move it to components.schemas and refer to it", ref.Ref)
	case ref.Ref != "":
		return
	case len(unionOf(s)) > 0:
		l.report(at, path, `it is a union, and Go has none; only oneOf: [{$ref: …}, {type: "null"}] is possible`)
	case len(s.AllOf) > 0:
		l.report(at, path, "allOf makes an object without a name in Go; write $ref and the description beside it")
	case len(s.Enum) > 0:
		l.report(at, path, "an enum is defined inline, and has no name in Go; move it to components.schemas and refer to it")
	case kind.kind == "object" || len(s.Properties) > 0:
		l.report(at, path, inlineObject)
	case kind.kind == "array":
		l.checkItems(at, path+".items", s.Items)
	case goTypes[kind] == "":
		l.report(at, path, "%s has no Go type; use one of %s, or add it to gen/formats.go", kind, strings.Join(scalars(), ", "))
	}
}

func (l *linter) checkItems(at *openapi3.Origin, path string, items *openapi3.SchemaRef) {
	if items == nil {
		l.report(at, path, "an array of what? write the items")
		return
	}
	plain, nullable := withoutNull(items)
	if nullable {
		l.report(at, path, "null in an array would become a zero value; leave null out")
	}
	l.checkType(at, path, plain)
}

func scalars() []string {
	var out []string
	for s := range maps.Keys(goTypes) {
		out = append(out, s.String())
	}
	slices.Sort(out)
	return out
}
