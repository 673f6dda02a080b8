package spec

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

//go:embed extensions.json
var extensionsSchema []byte

// Provider is what the document's x-provider says.
type Provider struct {
	Name     string            `json:"name"`
	Event    EventPlaces       `json:"event"`
	Verify   []Scheme          `json:"verify"`
	Reserved map[string]string `json:"reserved"`
}

// EventPlaces are where an event says what it is.
type EventPlaces struct {
	Type string `json:"type"`
	ID   Paths  `json:"id"`
	Time Paths  `json:"time"`
	Ping string `json:"ping"`
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
	Tolerance  int      `json:"tolerance"`
}

// Paths is a path, or several of which the first that has a value counts.
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

// checkExtensions reads the document's own extensions, once they are what
// extensions.json says.
func (s *Spec) checkExtensions() error {
	if len(s.Doc.Extensions) == 0 {
		return nil
	}
	text, err := json.Marshal(s.Doc.Extensions)
	if err != nil {
		return fmt.Errorf("gen: the extensions of %s are no JSON, correct them: %w", s.Name, err)
	}
	l := s.linter()
	for _, wrong := range wrongExtensions("document", text) {
		l.report(nil, wrong.path, "%s; go doc ./gen and gen/spec/extensions.json say what may stand there", wrong.text)
	}
	if err := l.err(); err != nil {
		return err
	}
	if own, ok := s.Doc.Extensions[providerName]; ok {
		s.HasProvider = true
		text, _ := json.Marshal(own) // it was JSON above
		if err := json.Unmarshal(text, &s.Provider); err != nil {
			return fmt.Errorf("gen: %s: %s cannot be read: %w", s.Name, providerName, err)
		}
	}
	return nil
}

type wrongExtension struct{ path, text string }

// wrongExtensions are the mistakes in a value that is to fit a definition of
// extensions.json.
func wrongExtensions(definition string, value []byte) []wrongExtension {
	const name = "extensions.json"
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(extensionsSchema))
	if err != nil {
		panic("gen: extensions.json: " + err.Error())
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return []wrongExtension{{"extensions", err.Error()}}
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, schema); err != nil {
		panic("gen: extensions.json: " + err.Error())
	}
	err = c.MustCompile(name + "#/$defs/" + definition).Validate(v)
	var invalid *jsonschema.ValidationError
	if e, ok := err.(*jsonschema.ValidationError); ok {
		invalid = e
	}
	return leaves(invalid)
}

// leaves are the innermost of the mistakes: the others only say that there are any.
func leaves(e *jsonschema.ValidationError) (out []wrongExtension) {
	if e == nil {
		return nil
	}
	if len(e.Causes) == 0 {
		said := e.Error()
		if _, after, ok := strings.Cut(said, "': "); ok {
			said = after
		}
		return []wrongExtension{{strings.Join(e.InstanceLocation, "."), strings.TrimSpace(said)}}
	}
	for _, cause := range e.Causes {
		out = append(out, leaves(cause)...)
	}
	return out
}
