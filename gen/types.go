package main

import (
	_ "embed"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/oapi-codegen/oapi-codegen/v2/pkg/codegen"

	"github.com/paghooks/paghooks/gen/spec"
)

//go:embed templates/types.tmpl
var typesTemplate string

func (p provider) typesCode() (string, error) {
	client := p.clientSchemas()
	types, err := p.declarations(func(schema *openapi3.Schema) bool {
		return !spec.IsEvent(schema) && !spec.IsHandWritten(schema) && !client[schema]
	})
	return types + p.personalTable(), err
}

var generating sync.Mutex // oapi-codegen keeps its settings in variables

// noTemplate replaces a template of oapi-codegen by nothing. An empty text would
// leave the old one in place, and one without a line break is taken for a path.
const noTemplate = "{{\"\"}}\n"

// declarations renders the Go types of the wanted schemas with oapi-codegen, which resolves the
// references and finds the Go types. The form of a declaration is types.tmpl's.
func (p provider) declarations(wanted func(*openapi3.Schema) bool) (string, error) {
	doc := &openapi3.T{
		OpenAPI:    p.Doc.OpenAPI,
		Info:       p.Doc.Info,
		Components: &openapi3.Components{Schemas: p.selected(wanted)},
	}
	generating.Lock()
	defer generating.Unlock()
	code, err := codegen.Generate(doc, codegen.Configuration{
		PackageName: "unused",
		Generate:    codegen.GenerateOptions{Models: true},
		OutputOptions: codegen.OutputOptions{
			SkipPrune:                 true, // it does not know webhooks and would remove their schemas
			SkipFmt:                   true, // the whole file is formatted at the end
			PreferSkipOptionalPointer: true,
			TypeMapping:               p.typeMapping(),
			UserTemplates: map[string]string{
				"imports.tmpl":   noTemplate,
				"constants.tmpl": noTemplate, // types.tmpl has an enum's constants beside its type
				"typedef.tmpl":   typesTemplate,
			},
		},
	}.UpdateDefaults())
	if err != nil {
		return "", fmt.Errorf("gen: oapi-codegen refuses %s, correct the spec: %w", p.Name, err)
	}
	return code, nil
}

// selected returns the wanted schemas, changed for oapi-codegen: an event has an extension that
// types.tmpl reads in place of its allOf, which would become a copy of the envelope's fields; and each
// property has its place in the file as x-order.
func (p provider) selected(wanted func(*openapi3.Schema) bool) openapi3.Schemas {
	out := make(openapi3.Schemas)
	for name, ref := range p.Schemas() {
		if !wanted(ref.Value) {
			continue
		}
		schema := *ref.Value
		schema.AllOf, schema.AdditionalProperties = nil, openapi3.AdditionalProperties{}
		_, redacts := p.hides(&openapi3.SchemaRef{Ref: spec.SchemaPrefix + name, Value: ref.Value}, make(map[string]bool))
		schema.Extensions = spec.With(spec.With(schema.Extensions, "x-embeds-envelope", spec.IsEvent(ref.Value)), "x-redacts", redacts)
		schema.Properties = make(openapi3.Schemas)
		for name, property := range ref.Value.Properties {
			field := ordered(property)
			if property.Ref != "" && property.Value.Description == p.Resolved(property).Description {
				value := *property.Value
				value.Description = "" // the comment of the type has it
				field.Value = &value
			}
			if p.MayLack(ref.Value, name) {
				field.Extensions[mayLackName] = true
			}
			schema.Properties[name] = field
		}
		out[name] = ordered(&openapi3.SchemaRef{Value: &schema, Origin: spec.SchemaOrigin(ref)})
	}
	return out
}

func ordered(ref *openapi3.SchemaRef) *openapi3.SchemaRef {
	out := *ref
	out.Extensions = spec.With(ref.Extensions, "x-order", float64(spec.Position(spec.SchemaOrigin(ref))))
	return &out
}

// oapi-codegen gives its templates the functions of this table, and has no
// other way to add one.
func init() {
	maps.Copy(codegen.TemplateFunctions, map[string]any{
		"about":      about,
		"comment":    comment,
		"enumValues": enumValues,
		"fieldType":  fieldType,
		"fieldName":  fieldName,
		"isOptional": isOptional,
	})
}

// mayLackName marks, in memory, a required amount that is not essential.
const mayLackName = "x-may-be-unset"

// isOptional reports whether encoding a struct omits the field when it is absent. A required amount
// is encoded as null instead, so that package drift knows that it is always sent.
func isOptional(p codegen.Property) bool {
	return !p.Required || p.Nullable || p.Extensions[spec.PointerName] != nil
}

func fieldType(p codegen.Property) string {
	if p.Extensions[spec.PointerName] != nil {
		return "value.Optional[*" + strings.TrimPrefix(p.Schema.TypeDecl(), "*") + "]"
	}
	if isOptional(p) || p.Extensions[mayLackName] != nil {
		return "value.Optional[" + p.Schema.TypeDecl() + "]"
	}
	return p.Schema.TypeDecl()
}

func fieldName(p codegen.Property) string {
	return spec.FieldName(&openapi3.SchemaRef{Extensions: p.Extensions})
}

// enumValue is one constant of an enum.
type enumValue struct{ Name, Value, Description string }

func enumValues(s *openapi3.Schema) []enumValue {
	docs, _ := s.Extensions[spec.EnumDocsName].(map[string]any)
	names := spec.StringsOf(s.Extensions[spec.ConstantsName])
	var out []enumValue
	for i, v := range s.Enum {
		value := fmt.Sprint(v)
		description, _ := docs[value].(string)
		out = append(out, enumValue{names[i], value, description})
	}
	return out
}

// typeMapping returns the spec's formats in oapi-codegen's form.
func (p provider) typeMapping() *codegen.TypeMapping {
	theirs := codegen.DefaultTypeMapping
	return &codegen.TypeMapping{
		Boolean: p.formatsOf("boolean", theirs.Boolean),
		Integer: p.formatsOf("integer", theirs.Integer),
		Number:  p.formatsOf("number", theirs.Number),
		String:  p.formatsOf("string", theirs.String),
	}
}

// formatsOf returns the formats of a type. oapi-codegen's own have no other Go types.
func (p provider) formatsOf(kind string, theirs codegen.FormatMapping) codegen.FormatMapping {
	m := codegen.FormatMapping{Formats: make(map[string]codegen.SimpleTypeSpec)}
	m.Default.Type = p.Formats[spec.Scalar{Kind: kind}].Go
	for format := range theirs.Formats {
		m.Formats[format] = m.Default
	}
	for scalar, f := range p.Formats {
		if scalar.Kind == kind {
			m.Formats[scalar.Format] = codegen.SimpleTypeSpec{Type: f.Go}
		}
	}
	return m
}

// clientTypesCode returns the types of the bodies that the operations of the paths send and
// answer.
func (p provider) clientTypesCode() (string, error) {
	client := p.clientSchemas()
	return p.declarations(func(schema *openapi3.Schema) bool {
		return !spec.IsHandWritten(schema) && client[schema]
	})
}

// clientSchemas returns the components that operations need, and events do not.
func (p provider) clientSchemas() map[*openapi3.Schema]bool {
	client, events := p.Reachable(p.Operations()), p.Reachable(p.Posts())
	for schema := range events {
		delete(client, schema)
	}
	return client
}

// personalTable returns the table of what is not printed.
func (p provider) personalTable() string {
	var b strings.Builder
	for _, name := range spec.InOrder(p.Schemas(), spec.SchemaOrigin) {
		var members []string
		of := p.Schemas()[name].Value
		for _, property := range spec.InOrder(of.Properties, spec.SchemaOrigin) {
			if of, hides := p.hides(of.Properties[property], make(map[string]bool)); hides {
				members = append(members, fmt.Sprintf("%q: %q", property, of))
			}
		}
		if members != nil && !spec.IsHandWritten(of) {
			fmt.Fprintf(&b, "%q: {%s},\n", name, inLines(members, 110))
		}
	}
	if b.Len() == 0 {
		return ""
	}
	return "\n// personal is what is not printed.\nvar personal = provider.Personal{\n" + b.String() + "}\n"
}

// hides reports whether a property is not printed, or has, however deep, such a property in it: then in the
// component of the given name.
func (p provider) hides(ref *openapi3.SchemaRef, seen map[string]bool) (in string, ok bool) {
	plain, _ := spec.WithoutNull(ref)
	for plain.Value.Items != nil {
		plain, _ = spec.WithoutNull(plain.Value.Items)
	}
	name, of := spec.SchemaName(plain.Ref), p.Resolved(plain)
	switch {
	case spec.IsPersonal(ref) || spec.IsFree(of):
		return "", true
	case plain.Ref == "" || seen[name] || spec.IsHandWritten(of):
		return "", false
	}
	seen[name] = true
	for _, property := range of.Properties {
		if _, ok := p.hides(property, seen); ok {
			return name, true
		}
	}
	return "", false
}
