package spec

import "github.com/getkin/kin-openapi/openapi3"

// Scalar is a type and its format, as a spec has them.
type Scalar struct{ Kind, Format string }

// ScalarOf is a schema's type and format.
func ScalarOf(s *openapi3.Schema) Scalar { return Scalar{TypeOf(s), s.Format} }

// String implements [fmt.Stringer].
func (s Scalar) String() string {
	switch {
	case s.Kind == "":
		return "a value without exactly one type"
	case s.Format == "":
		return s.Kind
	}
	return s.Kind + " (" + s.Format + ")"
}

// GoTypes are the Go types of scalars. There is no plain number: floats lose
// cents. There is no date, date-time or uuid: oapi-codegen would import its
// runtime for them, and the providers do not keep to those formats anyway.
var GoTypes = map[Scalar]string{
	{"string", ""}:  "string",
	{"boolean", ""}: "bool",

	{"string", "asaas-text"}:     "Text",
	{"string", "asaas-date"}:     "Date",
	{"string", "asaas-datetime"}: "DateTime",
	{"number", "money"}:          "Money",
	{"number", "decimal"}:        "Decimal",
	{"number", "percent"}:        "Percent",
	{"integer", ""}:              "Int",

	{"string", "zelta-time"}: "Time",
	{"integer", "cents"}:     "Cents",
}
