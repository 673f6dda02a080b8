package main

import (
	"maps"

	"github.com/oapi-codegen/oapi-codegen/v2/pkg/codegen"
)

// scalar is a type and its format, as a spec has them.
type scalar struct{ kind, format string }

func (s scalar) String() string {
	switch {
	case s.kind == "":
		return "a value without exactly one type"
	case s.format == "":
		return s.kind
	}
	return s.kind + " (" + s.format + ")"
}

// goTypes are the Go types of scalars. There is no plain number: floats lose
// cents. There is no date, date-time or uuid: oapi-codegen would import its
// runtime for them, and the providers do not keep to those formats anyway.
var goTypes = map[scalar]string{
	{"string", ""}:  "string",
	{"boolean", ""}: "bool",

	{"string", "asaas-text"}:     "Text",
	{"string", "asaas-date"}:     "Date",
	{"string", "asaas-datetime"}: "DateTime",
	{"number", "money"}:          "Money",
	{"number", "decimal"}:        "Decimal",
	{"integer", ""}:              "Int",

	{"string", "zelta-time"}: "Time",
	{"integer", "cents"}:     "Cents",
}

// typeMapping is goTypes in oapi-codegen's words.
func typeMapping() *codegen.TypeMapping {
	return &codegen.TypeMapping{
		Boolean: formatsOf("boolean"),
		Integer: formatsOf("integer"),
		Number:  formatsOf("number"),
		String:  formatsOf("string"),
	}
}

func formatsOf(kind string) codegen.FormatMapping {
	m := codegen.FormatMapping{Formats: make(map[string]codegen.SimpleTypeSpec)}
	for s := range maps.Keys(goTypes) {
		switch goType := (codegen.SimpleTypeSpec{Type: goTypes[s]}); {
		case s.kind != kind:
		case s.format == "":
			m.Default = goType
		default:
			m.Formats[s.format] = goType
		}
	}
	return m
}
