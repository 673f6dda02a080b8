//go:build long

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// Each file of testdata/corpus has one trait of documents that providers publish. Its package is compiled, reads
// the examples in it to the last leaf, names them, and prints no Maria. These packages and the golden ones keep the
// promises of providers.
func TestTheCorpusIsReadToTheLastLeaf(t *testing.T) {
	t.Parallel()
	documents, err := filepath.Glob("testdata/corpus/*.yaml")
	if err != nil || len(documents) == 0 {
		t.Fatalf("no corpus: %v", err)
	}
	golden, err := filepath.Glob("testdata/good/*/spec.yaml")
	if err != nil || len(golden) == 0 {
		t.Fatalf("no golden packages: %v", err)
	}
	dir := inModule(t, "example.com/corpus")
	var imports, cases, providers bytes.Buffer
	provider := func(n int, name string) {
		fmt.Fprintf(&imports, "p%d %q\nt%[1]d \"%[2]s/%[3]stest\"\n", n, "example.com/corpus/"+name, name)
		fmt.Fprintf(&providers, "%[2]q: providertest.Of(p%[1]d.NewDispatcher, p%[1]d.Verify, p%[1]d.Identify, p%[1]d.Parse, t%[1]d.Types(), t%[1]d.Event, t%[1]d.Sparse, t%[1]d.Request),\n", n, name)
	}
	for i, document := range documents {
		name := strings.ReplaceAll(strings.ReplaceAll(strings.TrimSuffix(filepath.Base(document), ".yaml"), "-", ""), ".", "")
		if err := writeAll(filesOf(t, document, filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
		provider(i, name)
		for _, e := range examplesIn(t, document) {
			fmt.Fprintf(&cases, "{%q, `%s`, `%s`, func(b []byte) (any, error) { return p%d.Parse(b) }, p%d.Identify},\n", name+"/"+e.name, e.value, e.want, i, i)
		}
	}
	for i, document := range golden {
		folder := filepath.Dir(document)
		name := filepath.Base(folder)
		if byHand, err := os.ReadFile(filepath.Join(folder, "byhand.go")); err == nil {
			if err := writeAll([]file{{filepath.Join(dir, name, "byhand.go"), byHand}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := writeAll(filesOf(t, document, filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
		formats := "package " + name + "\n\nimport \"github.com/paghooks/paghooks/idem/value\"\n\n" +
			"type (\n\tDecimal = value.Decimal\n\tPercent = value.Percent\n\tDate = value.Date\n\tTime = value.Time\n\tText = value.Text\n)\n"
		if name == "everything" { // what a package of this module has by hand
			if err := writeAll([]file{{filepath.Join(dir, name, "formats.go"), []byte(formats)}}); err != nil {
				t.Fatal(err)
			}
		}
		provider(len(documents)+i, name)
	}
	harness, err := os.ReadFile("testdata/corpus/harness.txt")
	if err != nil {
		t.Fatal(err)
	}
	code := strings.NewReplacer(`_ "generated"`, imports.String(), "// cases", cases.String(), "// providers", providers.String()).Replace(string(harness))
	source, err := format.Source([]byte(code))
	if err != nil {
		t.Fatal(err)
	}
	if err := writeAll([]file{{filepath.Join(dir, "corpus_test.go"), source}}); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), "go", "test", "./...")
	run.Dir, run.Env = dir, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	if out, err := run.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// inModule returns the directory of a new module that uses this one, as a third party's does.
func inModule(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("../examples/provider/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile("../examples/provider/go.sum")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(mod), "\n")
	rest, _, _ = strings.Cut(rest, "\nreplace")
	mod = []byte("module " + name + "\n" + rest + "\nreplace github.com/paghooks/paghooks => " + root + "\n")
	if err := writeAll([]file{{filepath.Join(dir, "go.mod"), mod}, {filepath.Join(dir, "go.sum"), sum}}); err != nil {
		t.Fatal(err)
	}
	return dir
}

type example struct{ name, value, want string }

// examplesIn returns the examples of the bodies in a document.
func examplesIn(t *testing.T, path string) (out []example) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	webhooks, _ := document["webhooks"].(map[string]any)
	if webhooks == nil {
		webhooks = document["x-webhooks"].(map[string]any)
	}
	add := func(name string, value, want any) {
		v, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		w, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, example{name, string(v), string(w)})
	}
	for webhook, item := range webhooks {
		if ref, ok := item.(map[string]any)["$ref"].(string); ok {
			item = document["components"].(map[string]any)["pathItems"].(map[string]any)[filepath.Base(ref)]
		}
		body := item.(map[string]any)["post"].(map[string]any)["requestBody"].(map[string]any)
		if ref, ok := body["$ref"].(string); ok {
			body = document["components"].(map[string]any)["requestBodies"].(map[string]any)[filepath.Base(ref)].(map[string]any)
		}
		for _, media := range body["content"].(map[string]any) {
			media := media.(map[string]any)
			if one := media["example"]; one != nil {
				add(webhook, one, nil)
			}
			several, _ := media["examples"].(map[string]any)
			for name, e := range several {
				e := e.(map[string]any)
				add(webhook+"/"+name, e["value"], e["x-want"])
			}
		}
	}
	if len(out) == 0 {
		t.Errorf("%s has no examples", path)
	}
	slices.SortFunc(out, func(a, b example) int { return strings.Compare(a.name, b.name) })
	return out
}
