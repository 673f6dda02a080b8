// Package spec reads the document in which a provider describes its webhooks, OpenAPI 3.0 or 3.1,
// with overlays, and refuses one of which no good Go code can be made.
//
// [Load] brings a document, in memory, into the form of a document that was written for the
// generator: named objects and enums, one envelope, scalars inline. [Spec.Lint] reports all
// mistakes at once, each with its line and the remedy for it, and everything of the document that
// would be lost; testdata/bad has an example of each rule.
package spec

import (
	"context"
	"crypto/sha256"
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
	Sum  string // sha256 of the document with its overlays
	Doc  *openapi3.T

	Formats  map[Scalar]Format // the Go types of scalars
	Provider Provider          // x-provider

	text      *text                         // the document as it was written, as far as it is needed
	events    map[string][]string           // by the webhook of the document: the types of its events
	taken     map[string]bool               // names of Go in the package
	questions map[string]*openapi3.PathItem // webhooks that are no events
	invalid   error                         // kin-openapi's error for the document
	early     []problem                     // mistakes that show before the linter runs

	typeIsNowhere bool // no body has the property that x-provider names as the event's type
	warnings      []problem
}

// Load reads a document, and applies overlays to it.
func Load(path string, overlays ...string) (*Spec, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("gen: cannot read the spec, check its path: %w", err)
	}
	name, root, added := moduleName(path), new(yaml.Node), make(map[*yaml.Node]string)
	if err := yaml.Unmarshal(data, root); err != nil {
		return nil, fmt.Errorf("gen: %s is not a readable OpenAPI document, correct it: %w", name, err)
	}
	s := &Spec{Name: name}
	for _, o := range overlays {
		s.Name += " with " + moduleName(o)
		if err := apply(root, o, added); err != nil {
			return nil, err
		}
	}
	if len(overlays) > 0 {
		if data, err = yaml.Marshal(root); err != nil {
			return nil, fmt.Errorf("gen: %s does not fit its overlays, correct them: %w", path, err)
		}
	}
	s.Sum = fmt.Sprintf("%x", sha256.Sum256(data))
	if s.text, err = newText(name, root, added); err != nil {
		return nil, err
	}
	if err := s.linter().readText(); err != nil {
		return nil, err
	}
	if data, err = s.text.modern(); err != nil {
		return nil, err
	}
	loader := openapi3.NewLoader()
	loader.IncludeOrigin = true // line numbers: for messages, and for the order of fields
	if s.Doc, err = loader.LoadFromDataWithPath(data, &url.URL{Path: name}); err != nil {
		return nil, fmt.Errorf("gen: %s is not a readable OpenAPI document, correct it: %w", name, err)
	}
	s.invalid = s.Doc.Validate(context.Background(), openapi3.DisableExamplesValidation(), openapi3.DisableSchemaPatternValidation())
	s.setAside()
	s.normalize()
	return s, nil
}

// ModuleRoot returns the directory of the nearest go.mod in or above a directory; "" if there is none.
func ModuleRoot(dir string) string {
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
		return dir
	}
	if parent := filepath.Dir(dir); parent != dir {
		return ModuleRoot(parent)
	}
	return ""
}

// moduleName returns the file's path below the nearest go.mod, with slashes; without a go.mod, its
// base name.
func moduleName(path string) string {
	abs, err := filepath.Abs(path)
	root := ModuleRoot(filepath.Dir(abs))
	if err != nil || root == "" {
		return filepath.Base(path)
	}
	return filepath.ToSlash(strings.TrimPrefix(abs, root+string(filepath.Separator)))
}

// Schemas are the components that become Go types.
func (s *Spec) Schemas() openapi3.Schemas {
	return s.Doc.Components.Schemas
}

// apply applies an OpenAPI overlay to a document, and notes the nodes that are the overlay's. Parts
// that it does not change keep their places, and so does the code.
func apply(root *yaml.Node, path string, added map[*yaml.Node]string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("gen: cannot read the overlay, check its path: %w", err)
	}
	var o overlay.Overlay
	if err := yaml.Unmarshal(data, &o); err != nil {
		return fmt.Errorf("gen: %s is not YAML, correct it: %w", path, err)
	}
	if err := o.Validate(); err != nil {
		return fmt.Errorf("gen: %s is not an OpenAPI overlay, correct it: %w", path, err)
	}
	if _, err := o.ApplyToStrict(root); err != nil { // strict: each target exists
		return fmt.Errorf("gen: %s does not fit the spec, correct it: %w", path, err)
	}
	var note func(*yaml.Node)
	note = func(n *yaml.Node) {
		if n.Line == 0 && added[n] == "" {
			added[n] = moduleName(path)
		}
		for _, inner := range n.Content {
			note(inner)
		}
	}
	note(root)
	return nil
}
