package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"testing"
)

// stubs hold the packages that the generated code imports, as far as it uses them: the
// real ones would take longer to check than all other tests together.
var stubs = map[string]string{
	"github.com/jackc/pgx/v5": `package pgx
		type Tx any`,
	module + "/idem": `package idem
		type Handler[E any] func(E) error
		type Event struct{}
		type Routes struct{}
		func (*Routes) Types() []string { return nil }
		func (*Routes) Ignore(...string) {}
		func Handle[E any](r *Routes, eventType string, h Handler[*E]) {}
		func HandleFamily[E any](r *Routes, eventTypes []string, h Handler[*E]) {}
		func HandleOthers[E any](r *Routes, accepts func(string) bool, h Handler[*E]) {}
		func Dispatch(ctx, tx, source any, e Event) error { return nil }`,
	module + "/idem/drift": `package drift
		type Essential struct { Zero bool; Paths []string }
		func Check([]byte, []Essential) error { return nil }`,
	module + "/idem/scalar": `package scalar
		type (Decimal struct{}; Percent struct{}; Int int; Cents int; Date string; Time string; Text string)
		func (Decimal) IsZero() bool { return true }
		func (Percent) IsZero() bool { return true }`,
	module + "/idem/provider": `package provider
		import "encoding/json"
		func Redact[T ~string](text T) T { return text }
		func RedactIn[V, T any](v V, redact func(T) T) V { return v }
		func RedactEach[T any](redact func(T) T) func([]T) []T { return nil }
		func RedactAt[T any](redact func(T) T) func(*T) *T { return nil }
		func RedactJSON(raw json.RawMessage) json.RawMessage { return raw }`,
	module + "/idem/optional": `package optional
		type Value[T any] struct{ value T }
		func (v Value[T]) Or(T) T { return v.value }`,
}

const handWritten = `package %s
	import "github.com/paghooks/paghooks/idem"
	type (
		Date     string
		DateTime string
		Text     string
		Money    struct{}
		Decimal  string
		Percent  string
		Int      int
		Time     string
		Cents    int
		Metadata map[string]string
	)
	func (m Metadata) redacted() Metadata { return m }
	type Client struct{}
	type operation struct { name, method, path, id string; query map[string][]string; body any }
	func (c *Client) call(ctx any, o operation, answer any) error { return nil }
	func send[T any](ctx any, c *Client, o operation) (*T, error) { return new(T), c.call(ctx, o, nil) }
	type Dispatcher struct{ idem.Routes }
	func (Money) IsZero() bool { return true }`

// stubbed imports the stubs, and the standard library from its source.
type stubbed struct {
	files *token.FileSet
	std   types.Importer
}

func (s stubbed) Import(path string) (*types.Package, error) {
	source, ok := stubs[path]
	if !ok {
		return s.std.Import(path)
	}
	return s.check(path, map[string]string{"stub.go": source})
}

func (s stubbed) check(path string, sources map[string]string) (*types.Package, error) {
	var parsed []*ast.File
	for name, source := range sources {
		f, err := parser.ParseFile(s.files, name, source, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, f)
	}
	config := types.Config{Importer: s}
	return config.Check(path, s.files, parsed, nil)
}

func TestOutputCompiles(t *testing.T) {
	ordinary, err := filepath.Glob("spec/testdata/ordinary/*.yaml")
	if err != nil || len(ordinary) == 0 {
		t.Fatalf("no ordinary specs: %v", err)
	}
	std := importer.ForCompiler(token.NewFileSet(), "source", nil)
	good, err := filepath.Glob("testdata/good/*/spec.yaml")
	if err != nil || len(good) == 0 {
		t.Fatalf("no good specs: %v", err)
	}
	for _, path := range append(ordinary, good...) {
		t.Run(path, func(t *testing.T) {
			sources := rendered(t, path, "shop")
			delete(sources, fixturesName)
			delete(sources, "bodies.gen.go") // of another package
			if _, whole := sources["provider.gen.go"]; whole {
				return // examples/provider is compiled and run
			}
			sources["provider.go"] = fmt.Sprintf(handWritten, "shop")
			s := stubbed{files: token.NewFileSet(), std: std}
			if _, err := s.check("shop", sources); err != nil {
				t.Error(err)
			}
		})
	}
}
