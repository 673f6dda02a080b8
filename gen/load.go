package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// spec is an OpenAPI document and where it came from.
type spec struct {
	name string // its path from the module's root, the same on every machine
	sum  string // sha256 of data
	data []byte // the document, with its overlays
	doc  *openapi3.T
}

// load reads a spec, and applies overlays to it.
func load(path string, overlays ...string) (*spec, error) {
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
	return parse(strings.Join(names, " with "), data)
}

func parse(name string, data []byte) (*spec, error) {
	loader := openapi3.NewLoader()
	loader.IncludeOrigin = true // line numbers: for messages, and for the order of fields
	doc, err := loader.LoadFromDataWithPath(data, &url.URL{Path: name})
	if err != nil {
		return nil, fmt.Errorf("gen: %s is not a readable OpenAPI document, correct it: %w", name, err)
	}
	sum := sha256.Sum256(data)
	s := &spec{name: name, sum: hex.EncodeToString(sum[:]), data: data, doc: doc}
	s.simplify()
	return s, nil
}

// moduleName is the file's path below the nearest go.mod, with slashes; its
// base name if there is no go.mod.
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

func (s *spec) schemas() openapi3.Schemas {
	if s.doc.Components == nil {
		return nil
	}
	return s.doc.Components.Schemas
}
