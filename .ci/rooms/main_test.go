package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFilesThatCannotBeReadInOneDirectionAreReported(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		why    string
		files  map[string]string
		status int
		want   []string // the report's lines, without the package's path and the advice
	}{
		{
			why:    "each file uses files that use none back",
			files:  map[string]string{"a": "func A() int { return B() }", "b": "func B() int { return c }", "c": "const c = 1"},
			status: 0,
			want:   []string{"rooms: 3 files, read in one direction"},
		},
		{
			why: "a method of another file is called",
			files: map[string]string{
				"thing": "type Thing struct{}\nfunc New() Thing { var t Thing; t.Start(); return t }",
				"start": "func (t Thing) Start() {}",
			},
			status: 1,
			want:   []string{"2 files use each other: start, thing", "\tstart.go uses Thing of thing.go", "\tthing.go uses Thing.Start of start.go"},
		},
		{
			why: "the method is promoted from what is embedded",
			files: map[string]string{
				"inner": "type inner struct{}\nvar _ = outer{}",
				"outer": "type outer struct{ held }\nfunc f(o outer) { o.run() }",
				"held":  "type held struct{ *inner }\nfunc (h held) run() {}",
			},
			status: 1,
			want:   []string{"3 files use each other: held, inner, outer", "\theld.go uses inner of inner.go", "\tinner.go uses outer of outer.go", "\touter.go uses held, held.run of held.go"},
		},
		{
			why:    "a field, and a cycle of three of which one file is only reached",
			files:  map[string]string{"a": "type A struct{ n int }\nvar _ = B", "b": "var B = C", "c": "var C = A{}.n\nvar _ = D", "d": "const D = 1"},
			status: 1,
			want:   []string{"3 files use each other: a, b, c", "\ta.go uses B of b.go", "\tb.go uses C of c.go", "\tc.go uses A, n of a.go"},
		},
		{
			why:    "a method of an interface is the interface's, and none of its files'",
			files:  map[string]string{"a": "type Doer interface{ Do() }\nfunc run(d Doer) { d.Do() }", "b": "type doer struct{}\nfunc (doer) Do() {}\nvar _ = run"},
			status: 0,
			want:   []string{"rooms: 2 files, read in one direction"},
		},
		{
			why:    "too long, comments and blank lines apart",
			files:  map[string]string{"long": "var _ = `" + strings.Repeat("\n", maxLines) + "`", "short": strings.Repeat("\n// more\n", maxLines)},
			status: 1,
			want:   []string{"long.go has 302 lines of code, 300 at most: which part of it is a subject of its own?"},
		},
		{
			why: "generated files declare what anyone may use, and are not read",
			files: map[string]string{
				"a": "const A = G", "types.gen": "const G = len(x)\nvar x [B]int", "b": "const B = 2",
			},
			status: 0,
			want:   []string{"rooms: 2 files, read in one direction"},
		},
		{
			why: "the list of doc.go is not the order",
			files: map[string]string{
				"a": "const A = B", "b": "const B = 1", "c": "const C = 1",
				"doc": "// in doc\n//\n// # Files\n//\n//\ta b b // the first words\n//\tgone\n//\n// # Else\n//\n//\tc",
			},
			status: 1,
			want: []string{
				"doc.go lists b twice", "doc.go lists gone, and there is no such file", "doc.go does not list c",
				"a.go uses B of b.go, which doc.go lists below it",
			},
		},
		{
			why:    "the list of doc.go is the order",
			files:  map[string]string{"a": "const A = B", "b": "const B = 1", "doc": "// in doc\n//\n// # Files\n//\n//\tb // first\n//\ta"},
			status: 0,
			want:   []string{"rooms: 3 files, read in one direction"},
		},
		{
			why:    "what does not build cannot be looked at",
			files:  map[string]string{"a": "const A = nothing"},
			status: 2,
			want:   []string{"rooms: the packages do not build"},
		},
	} {
		t.Run(test.why, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "go.mod"), "module example.com/p\n\ngo 1.26\n")
			for name, code := range test.files {
				if name == "doc" {
					code += "\n//\npackage p\n"
				} else {
					code = "package p\n\n" + code + "\n"
				}
				write(t, filepath.Join(dir, name+".go"), code)
			}
			var out strings.Builder
			if status := run(dir, []string{"./..."}, &out); status != test.status {
				t.Errorf("status %d, want %d: %s", status, test.status, &out)
			}
			var got []string
			for line := range strings.Lines(out.String()) {
				line = strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "example.com/p: ")
				if test.status == 2 {
					line, _, _ = strings.Cut(line, ", fix")
				}
				if !strings.HasPrefix(line, "rooms: move") {
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNoPackagesAreNoSuccess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.com/p\n\ngo 1.26\n")
	var out strings.Builder
	if status := run(dir, []string{"./..."}, &out); status != 2 {
		t.Errorf("status %d: %s", status, &out)
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
