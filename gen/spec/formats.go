package spec

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

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

// Format is what a scalar becomes.
type Format struct {
	Go      string `json:"go"`      // the Go type: of the package itself, or scalar.Decimal and the like
	Example any    `json:"example"` // for tests; nil: a text that repeats its name
	Amount  bool   `json:"amount"`  // an amount of money: a 0 that was not sent would be a lie
	Number  bool   `json:"number"`  // a text that may be sent as a number
}

const formatsName = "x-go-formats" // of the document: scalars that the provider's package has types of its own for

// formats are what every spec has. There is no float: it loses cents.
var formats = map[Scalar]Format{
	{"boolean", ""}: {Go: "bool", Example: false},

	{"string", ""}:          {Go: "string"},
	{"string", "date"}:      {Go: "scalar.Date", Example: "2026-08-08"},
	{"string", "date-time"}: {Go: "scalar.Time", Example: "2026-08-08T23:45:13.000Z"},
	{"string", "uuid"}:      {Go: "string", Example: "5f0c1f8e-4c5b-4a7e-9d5e-0b1d6a2c3e4f"},
	{"string", "text"}:      {Go: "scalar.Text", Number: true},

	{"integer", ""}:      {Go: "scalar.Int", Example: json.Number("1")},
	{"integer", "int32"}: {Go: "scalar.Int", Example: json.Number("1")},
	{"integer", "int64"}: {Go: "scalar.Int", Example: json.Number("1")},
	{"integer", "cents"}: {Go: "scalar.Cents", Example: json.Number("1000"), Amount: true},

	{"number", ""}:        {Go: "scalar.Decimal", Example: json.Number("1.5")},
	{"number", "float"}:   {Go: "scalar.Decimal", Example: json.Number("1.5")},
	{"number", "double"}:  {Go: "scalar.Decimal", Example: json.Number("1.5")},
	{"number", "decimal"}: {Go: "scalar.Decimal", Example: json.Number("1.5")},
	{"number", "percent"}: {Go: "scalar.Percent", Example: json.Number("2.5")},
	{"number", "money"}:   {Go: "scalar.Decimal", Example: json.Number("129.9"), Amount: true},
}

// readFormats adds to those of every spec what the document's x-go-formats says:
//
//	x-go-formats:
//	  string/asaas-date: {go: Date, example: "2026-08-08"}
//	  number/money: {go: Money}
//
// A format that every spec has keeps what is not said anew.
func (s *Spec) readFormats() error {
	s.Formats = maps.Clone(formats)
	own, _ := s.Doc.Extensions[formatsName].(map[string]any)
	for name, value := range own {
		kind, format, _ := strings.Cut(name, "/")
		f := s.Formats[Scalar{kind, format}]
		text, err := json.Marshal(value)
		if err == nil {
			err = json.Unmarshal(text, &f)
		}
		if err != nil {
			return fmt.Errorf("gen: %s: %s.%s cannot be read, write {go: Date} for example: %w", s.Name, formatsName, name, err)
		}
		if n, ok := f.Example.(float64); ok {
			f.Example = json.Number(fmt.Sprint(n))
		}
		s.Formats[Scalar{kind, format}] = f
	}
	return nil
}

// FormatOf is what a schema becomes: what its type and format say, or else its
// type alone. ok is false where it is no scalar.
func (s *Spec) FormatOf(schema *openapi3.Schema) (f Format, ok bool) {
	if f, ok = s.Formats[ScalarOf(schema)]; !ok {
		f, ok = s.Formats[Scalar{Kind: TypeOf(schema)}]
	}
	return f, ok
}

// ownTypes are the Go types that the formats name of the package itself.
func (s *Spec) ownTypes() map[string]string {
	out := make(map[string]string)
	for _, scalar := range slices.SortedFunc(maps.Keys(s.Formats), func(a, b Scalar) int {
		return strings.Compare(a.String(), b.String())
	}) {
		if name := s.Formats[scalar].Go; strings.ToUpper(name[:1]) == name[:1] {
			out[name] = scalar.String()
		}
	}
	return out
}
