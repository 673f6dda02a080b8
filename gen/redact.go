package main

import (
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/oapi-codegen/oapi-codegen/v2/pkg/codegen"

	"github.com/paghooks/paghooks/gen/spec"
)

// redactName marks, in memory, a property of which nothing is printed, or not all.
const redactName = "x-redact"

// redacts reports whether a component has, however deep, a field that is not printed.
func (p provider) redacts(name string, seen map[string]bool) bool {
	component := p.Schemas()[name]
	switch {
	case component == nil || seen[name]:
		return false
	case spec.IsHandWritten(component.Value):
		return spec.IsFree(component.Value)
	}
	seen[name] = true
	for _, property := range component.Value.Properties {
		if p.redactsProperty(property, seen) {
			return true
		}
	}
	return false
}

func (p provider) redactsProperty(ref *openapi3.SchemaRef, seen map[string]bool) bool {
	if spec.IsPersonal(ref) {
		return true
	}
	plain, _ := spec.WithoutNull(ref)
	for plain.Value.Items != nil {
		plain, _ = spec.WithoutNull(plain.Value.Items)
	}
	if plain.Ref == "" {
		return spec.IsFree(plain.Value)
	}
	return p.redacts(spec.SchemaName(plain.Ref), seen)
}

// redaction is a field that is redacted before it is printed.
type redaction struct{ Field, Go string }

// redactions are those of a struct.
func redactions(properties []codegen.Property) (out []redaction) {
	for _, p := range properties {
		if p.Extensions[redactName] == nil {
			continue
		}
		field := spec.GoName(p.JsonFieldName)
		whole, optional := strings.CutPrefix(fieldType(p), "optional.Value[")
		redact, plain := redactor(strings.TrimSuffix(whole, "]"), p), redactor(whole, p)+"(v."+field+")"
		if optional {
			plain = "provider.RedactIn(v." + field + ", " + redact + ")"
		}
		out = append(out, redaction{field, plain})
	}
	return out
}

// redactor is the function that redacts values of a Go type.
func redactor(goType string, p codegen.Property) string {
	if element, ok := strings.CutPrefix(goType, "[]"); ok {
		return "provider.RedactEach(" + redactor(element, p) + ")"
	}
	if element, ok := strings.CutPrefix(goType, "*"); ok {
		return "provider.RedactAt(" + redactor(element, p) + ")"
	}
	switch {
	case p.Extensions[redactName] == "text":
		return "provider.Redact[" + goType + "]"
	case goType == spec.RawType:
		return "provider.RedactJSON"
	}
	return goType + ".redacted"
}
