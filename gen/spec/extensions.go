package spec

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

//go:embed extensions.json
var extensionsSchema []byte

// Provider is the document's x-provider.
type Provider struct {
	Name     string            `json:"name"`
	Event    EventPlaces       `json:"event"`
	Verify   []Scheme          `json:"verify"`
	Headers  []Header          `json:"headers"`
	Reserved map[string]string `json:"reserved"`
}

// EventPlaces are the paths to the names of an event.
type EventPlaces struct {
	Type string `json:"type"`
	ID   Paths  `json:"id"`
	Time Paths  `json:"time"`
	Ping string `json:"ping"`
}

// Header is an unsigned header that repeats a signed value.
type Header struct {
	Name string `json:"name"`
	Says string `json:"says"`
}

// Scheme is one way in which deliveries are verified.
type Scheme struct {
	Scheme     string   `json:"scheme"`
	Header     string   `json:"header"`
	Hash       string   `json:"hash"`
	Encoding   string   `json:"encoding"`
	Text       []string `json:"text"`
	Value      string   `json:"value"`
	TimeHeader string   `json:"timeHeader"`
	IDHeader   string   `json:"idHeader"`
	TypeHeader string   `json:"typeHeader"`
	Tolerance  int      `json:"tolerance"`
}

// Paths are the possible places of a value. The first place that has a value counts.
type Paths []string

// UnmarshalJSON implements [json.Unmarshaler].
func (p *Paths) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*p = Paths{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(p))
}

const providerName = "x-provider"

const ownScheme = "or, for what cannot be declared, write a provider.Scheme: https://github.com/paghooks/paghooks/blob/main/docs/overlay.md#verification"

// readExtensions checks the document's extensions against extensions.json, and reads its own.
func (l *linter) readExtensions() error {
	text, err := json.Marshal(l.text.said)
	if err != nil {
		return fmt.Errorf("gen: %s cannot be read as JSON, correct it: %w", l.Name, err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("gen: %s cannot be read as JSON, correct it: %w", l.Name, err)
	}
	const address = "https://github.com/paghooks/paghooks/gen/spec/extensions.json" // its $id
	rules := jsonschema.NewCompiler()
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(extensionsSchema))
	if err := errors.Join(err, rules.AddResource(address, schema)); err != nil {
		panic("gen: extensions.json: " + err.Error())
	}
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](rules.MustCompile(address).Validate(v)); ok {
		l.reportExtensions(rules, invalid)
	}
	if err := l.err(); err != nil {
		return err
	}
	own := struct {
		Provider *Provider                  `json:"x-provider"`
		Formats  map[string]json.RawMessage `json:"x-go-formats"`
	}{Provider: &l.Provider}
	if err := json.Unmarshal(text, &own); err != nil {
		return fmt.Errorf("gen: the extensions of %s cannot be read, correct them: %w", l.Name, err)
	}
	return l.readFormats(own.Formats)
}

// reportExtensions reports the innermost errors; the errors around them have no details. For a wrong form it
// reports the description of what is right.
func (l *linter) reportExtensions(rules *jsonschema.Compiler, e *jsonschema.ValidationError) {
	right := ""
	switch e.ErrorKind.(type) {
	case *kind.Not, *kind.AnyOf, *kind.Pattern, *kind.Const, *kind.Type:
		right = rules.MustCompile(e.SchemaURL).Description
	}
	ofScheme := len(e.InstanceLocation) > 1 && e.InstanceLocation[0] == providerName && e.InstanceLocation[1] == "verify"
	switch {
	case right != "" && ofScheme:
		l.reportAt(e.InstanceLocation, "it is not right; write "+right+"; "+ownScheme)
	case right != "":
		l.reportAt(e.InstanceLocation, "it is not right; write "+right)
	case len(e.Causes) == 0 && ofScheme:
		l.reportAt(e.InstanceLocation, e.BasicOutput().Error.String()+"; "+ownScheme)
	case len(e.Causes) == 0:
		l.reportAt(e.InstanceLocation, e.BasicOutput().Error.String()+"; gen/spec/extensions.json has what there is")
	}
	for _, cause := range e.Causes {
		if right == "" {
			l.reportExtensions(rules, cause)
		}
	}
}
