package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/paghooks/paghooks/internal/fixture"
)

const fixturesName = "fixtures.gen.json"

// fixtures makes the bodies of all event types, for the package of tests that
// stands beside the provider's: asaas/asaastest. They are JSON, which is read
// only when a test asks for a body.
func (s *spec) fixtures(dir string) (file, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return file{}, fmt.Errorf("gen: cannot find the package directory %s: %w", dir, err)
	}
	out := fixture.File{Generated: "by gen from " + s.name + ". To change it, edit the spec (or gen) and run: go generate ./..."}
	for _, f := range s.families() {
		families, err := s.fixturesOf(f)
		if err != nil {
			return file{}, fmt.Errorf("gen: an example in the schemas of %s is no JSON, correct it: %w", f.Struct, err)
		}
		out.Families = append(out.Families, families...)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "\t")
	if err := e.Encode(out); err != nil {
		return file{}, fmt.Errorf("gen: an example in %s is no JSON, correct it: %w", s.name, err)
	}
	return file{path: filepath.Join(dir, filepath.Base(abs)+"test", fixturesName), content: b.Bytes()}, nil
}

// fixturesOf makes a family's bodies in each of its layouts.
func (s *spec) fixturesOf(f family) ([]fixture.Family, error) {
	schema := s.schemas()[f.Struct].Value
	var out []fixture.Family
	for _, layout := range s.layouts(schema) {
		base := &sampler{spec: s, layout: layout, named: f.Events[0].Type}
		full := base.event(schema, f.Events[0].Type)
		family := fixture.Family{Layout: layout, Open: base.open}
		for _, e := range f.Events {
			fits := fixture.Object{}
			differences(full, base.event(schema, e.Type), "", &fits)
			family.Types = family.Types.With(e.Type, fits)
		}
		sparse := &sampler{spec: s, layout: layout, named: base.named, sparse: true, keys: f.Paths}
		var err error
		if family.Full, err = fixture.Encode(full); err != nil {
			return nil, err
		}
		if family.Sparse, err = fixture.Encode(sparse.event(schema, sparse.named)); err != nil {
			return nil, err
		}
		out = append(out, family)
	}
	return out, nil
}

// differences adds to out which values of two bodies of one shape differ.
func differences(base, other any, path string, out *fixture.Object) {
	switch base := base.(type) {
	case fixture.Object:
		for _, m := range base {
			value, _ := other.(fixture.Object).Get(m.Name)
			differences(m.Value, value, join(path, m.Name), out)
		}
	case []any:
		for i, element := range base {
			differences(element, other.([]any)[i], join(path, strconv.Itoa(i)), out)
		}
	case string, bool, json.Number:
		if base != other {
			*out = out.With(path, other)
		}
	}
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// layouts lists the layouts that the properties of a schema name with x-layout,
// in the order of the spec; "" alone if they name none.
func (s *spec) layouts(of *openapi3.Schema) []string {
	var out []string
	s.addLayouts(of, &out, map[*openapi3.Schema]bool{})
	if len(out) == 0 {
		return []string{""}
	}
	return out
}

func (s *spec) addLayouts(of *openapi3.Schema, out *[]string, seen map[*openapi3.Schema]bool) {
	if seen[of] {
		return
	}
	seen[of] = true
	for _, name := range inOrder(of.Properties, schemaOrigin) {
		p := of.Properties[name]
		if layout := layoutOf(p); layout != "" && !slices.Contains(*out, layout) {
			*out = append(*out, layout)
		}
		plain, _ := withoutNull(p)
		s.addLayouts(plain.Value, out, seen)
	}
}

// layoutOf is the one layout that has a property, "" if all have it.
func layoutOf(p *openapi3.SchemaRef) string {
	for _, extensions := range []map[string]any{p.Extensions, p.Value.Extensions} {
		if layout, ok := extensions[layoutExtension].(string); ok {
			return layout
		}
	}
	return ""
}
