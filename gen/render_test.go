package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/gen/internal/golden"
)

// rendered holds the files that the generator makes of a spec: name, content.
func rendered(t *testing.T, spec, dir string) map[string]string {
	t.Helper()
	files, _, err := render(spec, dir)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for _, f := range files {
		out[filepath.Base(f.path)] = string(f.content)
	}
	return out
}

func TestOutputIsAsGolden(t *testing.T) {
	dirs, err := filepath.Glob("testdata/good/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no golden folders: %v", err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			for name, content := range rendered(t, filepath.Join(dir, "spec.yaml"), dir) {
				golden.Compare(t, filepath.Join(dir, name+".golden"), content)
			}
		})
	}
}

func TestProvidersAreUpToDate(t *testing.T) {
	for _, provider := range []string{"asaas", "zeltapay"} {
		t.Run(provider, func(t *testing.T) {
			files, _, err := render("../spec/"+provider+".yaml", filepath.Join("..", provider))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				got, err := os.ReadFile(f.path)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(f.content), string(got)); diff != "" {
					t.Errorf("%s is stale or edited, run go generate ./... (-want +got):\n%s", f.path, diff)
				}
			}
		})
	}
}

func TestTheExampleOfAProviderIsUpToDate(t *testing.T) {
	files, _, err := render("../examples/provider/woovi.yaml", "../examples/provider/woovi")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		got, err := os.ReadFile(f.path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(f.content), string(got)); diff != "" {
			t.Errorf("%s is stale or edited, run go generate in examples/provider (-want +got):\n%s", f.path, diff)
		}
	}
}

func TestOutputIsTheSameEveryTime(t *testing.T) {
	first := rendered(t, "../spec/asaas.yaml", "asaas")
	for range 3 {
		if diff := cmp.Diff(first, rendered(t, "../spec/asaas.yaml", "asaas")); diff != "" {
			t.Fatalf("two runs differ (-first +second):\n%s", diff)
		}
	}
}

func TestOutputDoesNotDependOnTheWorkingDirectory(t *testing.T) {
	want := rendered(t, "../spec/zeltapay.yaml", "../zeltapay")
	t.Chdir("../zeltapay")
	if diff := cmp.Diff(want, rendered(t, "../spec/zeltapay.yaml", ".")); diff != "" {
		t.Errorf("another working directory, another output (-want +got):\n%s", diff)
	}
}

func TestAnEventTypeCostsAtMostTenLines(t *testing.T) {
	base, err := os.ReadFile("testdata/good/minimal/spec.yaml")
	if err != nil {
		t.Fatal(err)
	}
	entry, _, _ := strings.Cut(string(base[strings.Index(string(base), "  PING:"):]), "components:")
	withMore := func(names ...string) string {
		var more strings.Builder
		more.WriteString(entry)
		for _, name := range names {
			more.WriteString(strings.Replace(entry, "PING:", name+":", 1))
		}
		path := filepath.Join(t.TempDir(), "spec.yaml")
		if err := os.WriteFile(path, []byte(strings.Replace(string(base), entry, more.String(), 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		return rendered(t, path, "x")["events.gen.go"]
	}
	family := withMore("PING_AGAIN") // its second type brings the method of the family
	before, after := strings.Count(family, "\n"), strings.Count(withMore("PING_AGAIN", "PING_OFTEN"), "\n")
	if after-before > 10 {
		t.Errorf("one more event type adds %d lines, want at most 10", after-before)
	}
	if !strings.Contains(family, ") OnAnyPing(h idem.Handler[*PingEvent])") {
		t.Error("the family of an event with the name of its schema has no method of its own")
	}
}

func TestOverlaysKeepTheOrderOfTheSpec(t *testing.T) {
	t.Parallel()
	overlay := filepath.Join(t.TempDir(), "overlay.yaml")
	text := "overlay: 1.0.0\ninfo: {title: One field, version: '1'}\nactions:\n" +
		"- target: $.components.schemas.Order\n  update: {properties: {aNew: {type: string}}}\n"
	if err := os.WriteFile(overlay, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	files, _, err := render("drift/testdata/spec.yaml", "shop", overlay)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(files, func(f file) bool { return filepath.Base(f.path) == "types.gen.go" })
	whole := string(files[i].content)
	code := whole
	for _, field := range []string{`"id"`, `"status"`, `"total"`, `"lines,`, `"aNew,`} {
		_, rest, ok := strings.Cut(code, "`json:"+field)
		if !ok {
			t.Fatalf("%s is not where it should be in\n%s", field, code)
		}
		code = rest
	}
	if !strings.Contains(whole, "from gen/drift/testdata/spec.yaml with overlay.yaml.") {
		t.Error("the header does not name the overlay")
	}
}

func TestCommentsOfTypesAreSentences(t *testing.T) {
	t.Parallel()
	tests := []struct{ description, want, why string }{
		{"A charge.", "// Payment is a charge.", "the article goes on in lower case"},
		{"The charge.\n", "// Payment is the charge.", "YAML texts end with a line break"},
		{"An order.\n\nIt may\nbe old.", "// Payment is an order.\n//\n// It may be old.", "an empty line parts paragraphs, a line break does not"},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, about("Payment", test.description)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
	}
}

func TestCommentsAreWrapped(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ação ", 50) + strings.Repeat("x", 100)
	lines := strings.Split(comment(long), "\n")
	for _, line := range lines[:len(lines)-1] {
		if n := utf8.RuneCountInString(line); n > commentWidth {
			t.Errorf("a line has %d characters, want at most %d: %s", n, commentWidth, line)
		}
	}
	if n := utf8.RuneCountInString(lines[0] + " ação"); n <= commentWidth {
		t.Errorf("one more word had fitted into the line %q", lines[0])
	}
	if last := lines[len(lines)-1]; last != "// "+strings.Repeat("x", 100) {
		t.Errorf("a word that is too long is cut or moved: %s", last)
	}
	if got := strings.Fields(strings.ReplaceAll(strings.Join(lines, " "), "//", "")); !cmp.Equal(got, strings.Fields(long)) {
		t.Errorf("words were lost: %v", got)
	}
}

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
	module + "/idem/value": `package value
		type Optional[T any] struct{ value T }
		func (v Optional[T]) Or(T) T { return v.value }
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
