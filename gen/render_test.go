package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/gen/internal/golden"
)

func filesOf(t *testing.T, spec, dir string, overlays ...string) []file {
	t.Helper()
	s, err := load(spec, overlays...)
	if err != nil {
		t.Fatal(err)
	}
	files, err := render(s, dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// rendered holds the files that the generator makes of a spec: name, content.
func rendered(t *testing.T, spec, dir string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, f := range filesOf(t, spec, dir) {
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
	for dir, spec := range map[string]string{
		"../asaas": "../spec/asaas.yaml", "../zeltapay": "../spec/zeltapay.yaml", "../examples/provider/woovi": "../examples/provider/woovi.yaml",
	} {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			for _, f := range filesOf(t, spec, dir) {
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

func TestOutputIsTheSameEveryTime(t *testing.T) {
	first := rendered(t, "../spec/asaas.yaml", "../asaas")
	for range 3 {
		if diff := cmp.Diff(first, rendered(t, "../spec/asaas.yaml", "../asaas")); diff != "" {
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
	files := filesOf(t, "drift/testdata/spec.yaml", "shop", overlay)
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
	if !strings.Contains(whole, "from drift/testdata/spec.yaml with overlay.yaml.") {
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
