package main

import (
	"fmt"
	"go/importer"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const driftSpec = "drift/testdata/spec.yaml"

// Drift, overlay, generate: and there is no drift any more.
func TestTheOverlayEndsTheDrift(t *testing.T) {
	const bodies = "drift/testdata/new.jsonl"
	overlay := filepath.Join(t.TempDir(), "overlay.yaml")
	if err := run([]string{"drift", "-spec", driftSpec, "-overlay", overlay, bodies}, io.Discard); status(err) != 1 {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := run([]string{"drift", "-spec", driftSpec, "-with", overlay, bodies, "drift/testdata/known.json"}, &table); err != nil {
		t.Errorf("there still is drift: %v\n%s", err, &table)
	}

	dir := filepath.Join(t.TempDir(), "shop")
	if err := run([]string{"-spec", driftSpec, "-overlay", overlay, "-package", dir}, io.Discard); err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{"provider.go": fmt.Sprintf(handWritten, "shop")}
	for _, name := range []string{"types.gen.go", "events.gen.go"} {
		source, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		sources[name] = string(source)
	}
	files := token.NewFileSet()
	s := stubbed{files: files, std: importer.ForCompiler(files, "source", nil)}
	shop, err := s.check("shop", sources)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"EventParcelSent", "ParcelEvent", "OrderStatusShipped", "Taxes"} {
		if shop.Scope().Lookup(name) == nil {
			t.Errorf("the code has no %s", name)
		}
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
	files, _, err := render(driftSpec, "shop", overlay)
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

func TestWhatCannotBeComparedIsStatus2(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const head = "overlay: 1.0.0\ninfo: {title: x, version: '1'}\nactions:\n"
	for _, tt := range []struct {
		reason  string
		command string
		args    []string
		want    string
	}{
		{"no bodies", "drift", nil, "usage:"},
		{"an unknown flag", "drift", []string{"-x", "y"}, "usage:"},
		{"no such body", "drift", []string{filepath.Join(dir, "nowhere.json")}, "cannot read the bodies"},
		{"no JSON", "drift", []string{file("a.json", `{"id":`)}, "is not JSON"},
		{"no such overlay", "drift", []string{"-with", filepath.Join(dir, "nowhere.yaml"), "x"}, "cannot read the overlay"},
		{"no YAML", "drift", []string{"-with", file("a.yaml", "\t"), "x"}, "is not YAML"},
		{"no overlay", "drift", []string{"-with", file("b.yaml", "openapi: 3.1.0"), "x"}, "is not an OpenAPI overlay"},
		{"a target that does not exist", "drift", []string{"-with", file("c.yaml", head+"- {target: $.nothing, update: {a: b}}"), "x"}, "does not fit the spec"},
		{"what the linter refuses", "drift", []string{"-with", file("d.yaml", head+"- {target: $.components.schemas.Order, update: {required: [nothing]}}"), "x"}, "correct the spec first"},
		{"no document", "upstream", nil, "usage:"},
		{"two documents", "upstream", []string{"a.json", "b.json"}, "usage:"},
		{"another unknown flag", "upstream", []string{"-spek", "a.yaml", "b.json"}, "usage:"},
		{"no such spec", "upstream", []string{"-spec", "nowhere.yaml", "a.json"}, "cannot read the spec"},
		{"a spec that the linter refuses", "upstream", []string{"-spec", "spec/testdata/bad/no-post.yaml", "a.json"}, "correct the spec first"},
	} {
		args := append([]string{tt.command}, tt.args...)
		if tt.command == "drift" {
			args = append([]string{"drift", "-spec", driftSpec}, tt.args...)
		}
		err := run(args, io.Discard)
		if err == nil || !strings.Contains(err.Error(), tt.want) || status(err) != 2 {
			t.Errorf("%s: got the status %d, %v, want %q", tt.reason, status(err), err, tt.want)
		}
	}
}
