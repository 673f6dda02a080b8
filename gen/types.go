package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/oapi-codegen/oapi-codegen/v2/pkg/codegen"
)

//go:embed templates/types.tmpl
var typesTemplate string

func (s *spec) typesCode() (string, error) {
	client := s.clientSchemas()
	return s.declarations(func(schema *openapi3.Schema) bool {
		return !isEvent(schema) && !isHandWritten(schema) && !client[schema]
	})
}

// noTemplate replaces a template of oapi-codegen by nothing. An empty text would
// leave the old one in place, and one without a line break is taken for a path.
const noTemplate = "{{\"\"}}\n"

// declarations has oapi-codegen render the Go types of the schemas that are
// wanted. It reads the schemas, resolves what they refer to and finds their Go
// types; how a declaration looks is ours.
func (s *spec) declarations(wanted func(*openapi3.Schema) bool) (string, error) {
	doc := &openapi3.T{
		OpenAPI:    s.doc.OpenAPI,
		Info:       s.doc.Info,
		Components: &openapi3.Components{Schemas: s.selected(wanted)},
	}
	code, err := codegen.Generate(doc, codegen.Configuration{
		PackageName: "unused",
		Generate:    codegen.GenerateOptions{Models: true},
		OutputOptions: codegen.OutputOptions{
			SkipPrune:                 true, // it does not know webhooks and would remove their schemas
			SkipFmt:                   true, // the whole file is formatted at the end
			PreferSkipOptionalPointer: true,
			TypeMapping:               typeMapping(),
			UserTemplates: map[string]string{
				"imports.tmpl":   noTemplate,
				"constants.tmpl": noTemplate, // types.tmpl has an enum's constants beside its type
				"typedef.tmpl":   typesTemplate,
			},
		},
	}.UpdateDefaults())
	if err != nil {
		return "", fmt.Errorf("gen: oapi-codegen refuses %s, correct the spec: %w", s.name, err)
	}
	return code, nil
}

// selected copies the schemas that are wanted, as far as they are changed for
// oapi-codegen: an event loses its allOf, which would become a copy of the
// envelope's fields, for an extension that types.tmpl knows; what has no page of
// its own gets that of the first webhook or operation that refers to it;
// everything gets its place in the file as x-order.
func (s *spec) selected(wanted func(*openapi3.Schema) bool) openapi3.Schemas {
	out := make(openapi3.Schemas)
	pages := s.pages()
	for name, ref := range s.schemas() {
		if !wanted(ref.Value) {
			continue
		}
		schema := *ref.Value
		schema.AllOf = nil
		schema.ExternalDocs = cmp.Or(schema.ExternalDocs, pages[schemaPrefix+name])
		schema.Extensions = with(schema.Extensions, "x-embeds-envelope", isEvent(ref.Value))
		schema.Properties = make(openapi3.Schemas)
		for name, property := range ref.Value.Properties {
			field := ordered(s.undescribed(property))
			if s.mayLack(ref.Value, name) {
				field.Extensions[mayLackName] = true
			}
			schema.Properties[name] = field
		}
		out[name] = ordered(&openapi3.SchemaRef{Value: &schema, Origin: schemaOrigin(ref)})
	}
	return out
}

// pages are the documentation of schemas: that of the first webhook or
// operation that refers to the schema.
func (s *spec) pages() map[string]*openapi3.ExternalDocs {
	out := make(map[string]*openapi3.ExternalDocs)
	for _, operation := range slices.Concat(s.posts(), s.operations()) {
		for _, ref := range schemasOf(operation) {
			if out[ref.Ref] == nil {
				out[ref.Ref] = operation.ExternalDocs
			}
		}
	}
	return out
}

// undescribed takes the description from a property that only has it from the
// schema that it refers to: the comment of its type says that.
func (s *spec) undescribed(ref *openapi3.SchemaRef) *openapi3.SchemaRef {
	if ref.Ref == "" || ref.Value.Description != s.schemas()[schemaName(ref.Ref)].Value.Description {
		return ref
	}
	value, out := *ref.Value, *ref
	value.Description = ""
	out.Value = &value
	return &out
}

func ordered(ref *openapi3.SchemaRef) *openapi3.SchemaRef {
	out := *ref
	out.Extensions = with(ref.Extensions, "x-order", float64(position(schemaOrigin(ref))))
	return &out
}

// with is m and one more entry. m itself is left as it is: it is read again for
// the other file.
func with(m map[string]any, key string, value any) map[string]any {
	out := map[string]any{key: value}
	maps.Copy(out, m)
	return out
}

// oapi-codegen gives its templates the functions of this table, and has no
// other way to add one.
func init() {
	maps.Copy(codegen.TemplateFunctions, map[string]any{
		"about":      about,
		"comment":    comment,
		"enumValues": enumValues,
		"fieldType":  fieldType,
		"goName":     goName,
		"isOptional": isOptional,
	})
}

// isOptional tells whether a field is left out when it is absent. A required
// amount is written as null instead, and package drift sees by that that it is
// always sent.
func isOptional(p codegen.Property) bool { return !p.Required || p.Nullable }

func fieldType(p codegen.Property) string {
	if isOptional(p) || p.Extensions[mayLackName] != nil {
		return "optional.Value[" + p.Schema.TypeDecl() + "]"
	}
	return p.Schema.TypeDecl()
}

// enumValue is one constant of an enum.
type enumValue struct{ Name, Value, Description string }

func enumValues(typeName string, s *openapi3.Schema) []enumValue {
	docs, _ := s.Extensions[enumDocsExtension].(map[string]any)
	var out []enumValue
	for _, v := range s.Enum {
		value := fmt.Sprint(v)
		description, _ := docs[value].(string)
		out = append(out, enumValue{typeName + goName(value), value, description})
	}
	return out
}
