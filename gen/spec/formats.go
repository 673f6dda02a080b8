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

// Format describes the Go type of a scalar.
type Format struct {
	Go      string `json:"go"`      // the Go type: of the package itself, or value.Decimal and the like
	Example any    `json:"example"` // for tests; nil: a text that repeats its name
	Amount  bool   `json:"amount"`  // an amount of money: a 0 that was not sent would be a lie
	Number  bool   `json:"number"`  // a text that may be sent as a number
}

// FormatOf returns the format of a schema, by its type and format, or by its type alone. ok is
// false if the schema is no scalar.
func (s *Spec) FormatOf(schema *openapi3.Schema) (f Format, ok bool) {
	if f, ok = s.Formats[ScalarOf(schema)]; !ok {
		f, ok = s.Formats[Scalar{Kind: TypeOf(schema)}]
	}
	return f, ok
}

const formatsName = "x-go-formats" // the document's: scalars whose Go types are in the provider's package

// formats are the formats that every spec has. There is no float: a float loses cents.
var formats = map[Scalar]Format{
	{"boolean", ""}: {Go: "bool", Example: false},

	{"string", ""}:          {Go: "string"},
	{"string", "date"}:      {Go: "value.Date", Example: "2026-08-08"},
	{"string", "date-time"}: {Go: "value.Time", Example: "2026-08-08T23:45:13.000Z"},
	{"string", "uuid"}:      {Go: "string", Example: "5f0c1f8e-4c5b-4a7e-9d5e-0b1d6a2c3e4f"},
	{"string", "password"}:  {Go: "string"}, // is not printed, like an x-personal field
	{"string", "text"}:      {Go: "value.Text", Number: true},

	{"integer", ""}:      {Go: "value.Int", Example: json.Number("1")},
	{"integer", "int32"}: {Go: "value.Int", Example: json.Number("1")},
	{"integer", "int64"}: {Go: "value.Int", Example: json.Number("1")},
	{"integer", "cents"}: {Go: "value.Cents", Example: json.Number("1000"), Amount: true},

	{"number", ""}:        {Go: "value.Decimal", Example: json.Number("1.5")},
	{"number", "float"}:   {Go: "value.Decimal", Example: json.Number("1.5")},
	{"number", "double"}:  {Go: "value.Decimal", Example: json.Number("1.5")},
	{"number", "decimal"}: {Go: "value.Decimal", Example: json.Number("1.5")},
	{"number", "percent"}: {Go: "value.Percent", Example: json.Number("2.5")},
	{"number", "money"}:   {Go: "value.Decimal", Example: json.Number("129.9"), Amount: true},
}

// readFormats adds the formats of the document's x-go-formats to the formats that every spec has:
//
//	x-go-formats:
//	  string/asaas-date: {go: Date, example: "2026-08-08"}
//	  number/money: {go: Money}
//
// An entry for a format that every spec has changes only the fields that it sets.
func (s *Spec) readFormats(own map[string]json.RawMessage) error {
	s.Formats = maps.Clone(formats)
	for name, text := range own {
		kind, format, _ := strings.Cut(name, "/")
		f := s.Formats[Scalar{kind, format}]
		if err := json.Unmarshal(text, &f); err != nil {
			return fmt.Errorf("gen: %s: %s.%s cannot be read, write {go: Date} for example: %w", s.Name, formatsName, name, err)
		}
		if n, ok := f.Example.(float64); ok {
			f.Example = json.Number(fmt.Sprint(n))
		}
		s.Formats[Scalar{kind, format}] = f
	}
	return nil
}

// ordinaryFormats are formats without a Go type, from OpenAPI's registry, JSON Schema and practice.
// They are not misspellings of other formats.
var ordinaryFormats = strings.Fields(`base64url binary byte char commonmark date-time-local decimal128 double-int duration email e-mail float32
	float64 hostname html http-date idn-email idn-hostname int int8 int16 integer iri iri-reference ipv4 ipv6 json-pointer media-range phone regex
	relative-json-pointer sf-binary sf-boolean sf-decimal sf-integer sf-string sf-token test time time-local timestamp uint uint8 uint16 uint32 uint64
	unix-time unixtime uri uri-reference uri-template url`)

// meant returns the scalar that an unknown scalar probably misspells. With a misspelled format, an
// amount would silently become a number.
func (s *Spec) meant(unknown Scalar) (meant Scalar, ok bool) {
	if unknown.Format == "" || slices.Contains(ordinaryFormats, unknown.Format) {
		return Scalar{}, false
	}
	least := 3
	for _, known := range slices.SortedFunc(maps.Keys(s.Formats), func(a, b Scalar) int { return strings.Compare(a.String(), b.String()) }) {
		mistakes := distance(unknown.Format, known.Format)
		if known.Kind != unknown.Kind {
			mistakes++ // an integer of money, or a number of cents
		}
		if known.Format != "" && mistakes < least && (known.Kind == unknown.Kind || mistakes == 1 && s.Formats[known].Amount && unknown.Kind != "string") {
			meant, least = known, mistakes
		}
	}
	return meant, least < 3 && least < len(unknown.Format)/2
}

// distance returns the number of letters that have to be changed, added or taken away.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			same := before
			if a[i] != b[j] {
				same++
			}
			before = row[j+1]
			row[j+1] = min(same, before+1, row[j]+1)
		}
	}
	return row[len(b)]
}
