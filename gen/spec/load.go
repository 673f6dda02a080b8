// Package spec reads a provider's spec, an OpenAPI 3.1 document with webhooks that are
// the event types, and refuses a document of which no good Go code can be made.
//
// [Spec.Lint] reports all mistakes at once, each with its line and the remedy for
// it; testdata/bad has an example of each rule.
package spec

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/speakeasy-api/openapi/overlay"
	"gopkg.in/yaml.v3"
)

// Spec is an OpenAPI document and its origin.
type Spec struct {
	Name string // its path from the module's root, the same on every machine
	Sum  string // sha256 of data
	Data []byte // the document, with its overlays
	Doc  *openapi3.T

	Formats     map[Scalar]Format // the Go types of scalars
	Provider    Provider          // x-provider
	Upstream    Upstream          // x-upstream
	HasProvider bool              // there is an x-provider: the whole package is generated, but for its reserved names

	questions map[string]*openapi3.PathItem // webhooks that are no events
	invalid   error                         // kin-openapi's error for the document

	typeIsNowhere bool // no body has the property that x-provider names as the event's type
	warnings      []problem
}

// Load reads a spec, and applies overlays to it.
func Load(path string, overlays ...string) (*Spec, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("gen: cannot read the spec, check its path: %w", err)
	}
	names := []string{moduleName(path)}
	for _, o := range overlays {
		names = append(names, moduleName(o))
	}
	if data, err = overlaid(data, overlays); err != nil {
		return nil, err
	}
	return Parse(strings.Join(names, " with "), data)
}

// Parse reads the text of a spec, which messages call name.
func Parse(name string, data []byte) (*Spec, error) {
	sum := sha256.Sum256(data)
	s := &Spec{Name: name, Sum: hex.EncodeToString(sum[:]), Data: data}
	if err := s.linter().checkText(); err != nil {
		return nil, err
	}
	loader := openapi3.NewLoader()
	loader.IncludeOrigin = true // line numbers: for messages, and for the order of fields
	doc, err := loader.LoadFromDataWithPath(data, &url.URL{Path: name})
	if err != nil {
		return nil, fmt.Errorf("gen: %s is not a readable OpenAPI document, correct it: %s", name, readError(err))
	}
	s.Doc = doc
	if err := s.readExtensions(); err != nil {
		return nil, err
	}
	if err := s.readFormats(); err != nil {
		return nil, err
	}
	s.invalid = doc.Validate(context.Background(), openapi3.DisableExamplesValidation())
	s.setAside()
	s.dropAPI()
	s.goNames()
	s.simplify()
	s.ordinary()
	return s, nil
}

// readError returns the text of a loader's error. The loader first reads a document as JSON:
// its error for that, which another version of Go words differently, says nothing about YAML.
func readError(err error) string {
	text := err.Error()
	if _, yaml, ok := strings.Cut(text, ", yaml error: "); ok {
		return yaml
	}
	return text
}

// moduleName returns the file's path below the nearest go.mod, with slashes; without a go.mod, its
// base name.
func moduleName(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return filepath.Base(path)
	}
	for dir := filepath.Dir(abs); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.ToSlash(strings.TrimPrefix(abs, dir+string(filepath.Separator)))
		}
		if dir == filepath.Dir(dir) {
			return filepath.Base(path)
		}
	}
}

// Schemas are the components that become Go types.
func (s *Spec) Schemas() openapi3.Schemas {
	if s.Doc.Components == nil {
		return nil
	}
	return s.Doc.Components.Schemas
}

// overlaid applies OpenAPI overlays, one after the other, to the text of a
// spec. Parts that the overlays do not change keep their places, and so does the code.
func overlaid(spec []byte, paths []string) ([]byte, error) {
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("gen: cannot read the overlay, check its path: %w", err)
		}
		var o overlay.Overlay
		if err := yaml.Unmarshal(data, &o); err != nil {
			return nil, fmt.Errorf("gen: %s is not YAML, correct it: %w", path, err)
		}
		if err := o.Validate(); err != nil {
			return nil, fmt.Errorf("gen: %s is not an OpenAPI overlay, correct it: %w", path, err)
		}
		if spec, err = applied(&o, spec); err != nil {
			return nil, fmt.Errorf("gen: %s does not fit the spec, correct it: %w", path, err)
		}
	}
	return spec, nil
}

func applied(o *overlay.Overlay, spec []byte) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(spec, &doc); err != nil {
		return nil, err
	}
	if _, err := o.ApplyToStrict(&doc); err != nil { // strict: each target exists
		return nil, err
	}
	return yaml.Marshal(&doc)
}
