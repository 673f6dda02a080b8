package spec

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"gopkg.in/yaml.v3"
)

//go:embed extensions.json
var extensionsSchema []byte

// Upstream is the document's x-upstream: the provider's own document.
type Upstream struct {
	Document string           `json:"document"`
	Events   string           `json:"events"`
	Schemas  map[string]Paths `json:"schemas"`
}

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

// extensions returns extensions.json, decoded and compiled.
var extensions = sync.OnceValues(func() (any, *jsonschema.Schema) {
	const name = "extensions.json"
	text, err := jsonschema.UnmarshalJSON(bytes.NewReader(extensionsSchema))
	if err != nil {
		panic("gen: extensions.json: " + err.Error())
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(name, text); err != nil {
		panic("gen: extensions.json: " + err.Error())
	}
	return text, c.MustCompile(name)
})

// checkExtensions checks the document's extensions against extensions.json.
func (l *linter) checkExtensions() error {
	text, err := json.Marshal(l.text.said)
	if err != nil {
		return fmt.Errorf("gen: %s cannot be read as JSON, correct it: %w", l.Name, err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("gen: %s cannot be read as JSON, correct it: %w", l.Name, err)
	}
	_, schema := extensions()
	if invalid, ok := errors.AsType[*jsonschema.ValidationError](schema.Validate(v)); ok {
		l.reportExtensions(invalid)
	}
	return l.err()
}

// reportExtensions reports the innermost errors; the errors around them have no details. For a
// value with several possible forms it reports the description of the forms.
func (l *linter) reportExtensions(e *jsonschema.ValidationError) {
	at, text := e.InstanceLocation, ""
	said, _ := schemaAt(e.SchemaURL)["description"].(string)
	switch wrong := e.ErrorKind.(type) {
	case *kind.PropertyNames:
		at, text = pathTo(l.text.root, wrong.Property), "it "+said // its InstanceLocation is of something else
	case *kind.Not:
		text = "it is " + said
	case *kind.AnyOf, *kind.Pattern, *kind.Const:
		text = "it is not right; write " + said
	case *kind.Type:
		text = "it is " + strings.ReplaceAll(wrong.Got, "null", "empty") + "; write " + cmp.Or(said, strings.Join(wrong.Want, " or "))
	case *kind.Enum:
		text = "there is no " + fmt.Sprint(wrong.Got) + "; write one of " + strings.ReplaceAll(list(wrong.Want), " ", ", ")
	case *kind.AdditionalProperties:
		text = "there is no " + strings.Join(wrong.Properties, ", ") + "; there is " + strings.Join(propertiesAt(e.SchemaURL), ", ")
	case *kind.Required:
		text = "there is no " + strings.Join(wrong.Missing, ", ") + "; add it"
	default:
		for _, cause := range e.Causes {
			l.reportExtensions(cause)
		}
		if len(e.Causes) > 0 {
			return
		}
		text = "it is not right: " + e.Error()
	}
	found := problem{l.text.place(at...), strings.Join(at, "."), text}
	if !slices.Contains(l.problems, found) {
		l.problems = append(l.problems, found)
	}
}

// pathTo returns the first place of a name in a document.
func pathTo(at *yaml.Node, name string) []string {
	for i, value := range at.Content {
		step := strconv.Itoa(i)
		if at.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			if step = at.Content[i-1].Value; step == name {
				return []string{name}
			}
		}
		if rest := pathTo(value, name); rest != nil {
			return append([]string{step}, rest...)
		}
	}
	return nil
}

// schemaAt is the part of extensions.json that an address names.
func schemaAt(address string) map[string]any {
	_, pointer, _ := strings.Cut(address, "#")
	at, _ := extensions()
	for name := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		switch of := at.(type) {
		case map[string]any:
			at = of[unescaped(name)]
		case []any:
			i, _ := strconv.Atoi(name)
			at = of[i]
		}
	}
	found, _ := at.(map[string]any)
	return found
}

func propertiesAt(address string) []string {
	properties, _ := schemaAt(address)["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(properties))
}

// readExtensions reads the document's own extensions, which were checked.
func (s *Spec) readExtensions() error {
	for name, into := range map[string]any{providerName: &s.Provider, "x-upstream": &s.Upstream} {
		text, err := json.Marshal(s.Doc.Extensions[name])
		if err == nil {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			return fmt.Errorf("gen: %s: %s cannot be read: %w", s.Name, name, err)
		}
	}
	return nil
}
