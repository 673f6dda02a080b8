package main

import (
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
)

func factsOf(t *testing.T, source string) []string {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "a.go", "package a\n"+source, 0)
	if err != nil {
		t.Fatal(err)
	}
	config := types.Config{Importer: importer.ForCompiler(files, "source", nil)}
	pkg, err := config.Check("a", files, []*ast.File{file}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return facts("a", pkg)
}

func TestWhatBreaksUsersIsGone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ before, after, gone, reason string }{
		{"func F() {}", "", "a.F: func()", "a function is removed"},
		{"func F(a int) {}", "func F(a string) {}", "a.F: func(int)", "a parameter has another type"},
		{"func F(a ...int) {}", "func F(a []int) {}", "a.F: func(...int)", "it is variadic no more"},
		{"func F[T any](T) {}", "func F[T comparable](T) {}", "a.F: func[T any](T)", "a constraint is stricter"},
		{"func F() int { return 0 }", "func F() (int, error) { return 0, nil }", "a.F: func() int", "one more result"},
		{"const C = 1", "const C = 2", "a.C: const untyped int = 1", "a constant has another value"},
		{"var V int", "var V int64", "a.V: var int", "a variable has another type"},
		{"type T = int", "type T int", "a.T: type = int", "an alias is a type of its own"},
		{"type T int", "type T int64", "a.T: type int", "another underlying type"},
		{"type T struct{ A int }", "type T struct{ a int }", "a.T.A: field int", "a field is removed"},
		{"type T struct{ A int }", "type T struct{ A int64 }", "a.T.A: field int", "a field has another type"},
		{"type T struct{ a int }", "type T struct{ a []int }", "a.T: comparable", "a struct is comparable no more"},
		{"type T int; func (T) M() {}", "type T int", "a.T.M: value method()", "a method is removed"},
		{"type T int; func (T) M() {}", "type T int; func (*T) M() {}", "a.T.M: value method()", "a method is the pointer's only"},
		{"type E struct{}; func (E) M() {}; type T struct{ E }", "type E struct{}; func (E) M() {}; type T struct{ e E }", "a.T.E: embedded E", "a method is promoted no more"},
		{"type T interface{ M() }", "type T interface{ M(); N() }", "a.T: type interface { M() }", "one more method to implement"},
		{"type T interface{ M(); m() }", "type T interface{ m() }", "a.T.M: method()", "one method fewer to call"},
		{"type T interface{ ~int | ~string }", "type T interface{ ~int }", "a.T: type interface{~int | ~string}", "a constraint is stricter"},
	} {
		gone := without(factsOf(t, tt.before), factsOf(t, tt.after))
		if !slices.Contains(gone, tt.gone) {
			t.Errorf("%s: gone is %q, want %q", tt.reason, gone, tt.gone)
		}
	}
}

func TestWhatBreaksNobodyStays(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ before, after, reason string }{
		{"func F() {}", "func F() {}; func G() {}", "a new function"},
		{"func F(a int, f func(b int), i interface{ M(c int) }) {}", "func F(x int, f func(y int), i interface{ M(z int) }) {}", "parameters have other names"},
		{"func f() {}; type t struct{ A int }", "", "what is not exported"},
		{"type T struct{ A int }", "type T struct{ A, B int; c int }", "new fields"},
		{"type T struct{ A int }", "// T is new.\ntype T struct{ A int `json:\"a\"` }", "a comment and a tag"},
		{"type T int", "type T int; func (T) M() {}", "a new method"},
		{"type T interface{ m() }", "type T interface{ m(); N() }", "a new method of an interface that nobody else can implement"},
		{"type T struct{ a []int }", "type T struct{ a int }", "a struct is comparable now"},
	} {
		if gone := without(factsOf(t, tt.before), factsOf(t, tt.after)); len(gone) > 0 {
			t.Errorf("%s: gone is %q", tt.reason, gone)
		}
	}
}

// A module of its own, from acceptance to the change that breaks its users.
func TestARemovedNameIsNoticed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	says := func(want int, command string, texts ...string) {
		t.Helper()
		var out strings.Builder
		modules, err := besides(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := run([]string{command}, dir, append(modules, "./..."), &out); got != want {
			t.Errorf("%s: status %d, want %d: %s", command, got, want, out.String())
		}
		for _, text := range texts {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s says %q, want %q", command, out.String(), text)
			}
		}
	}
	write("go.mod", "module example.com/m\n\ngo 1.26\n")
	write(".ci/api/.gitkeep", "")
	write("internal/i/i.go", "package i\n\nfunc Hidden() {}\n")
	write("shop/shop.go", "package shop\n\nfunc Sell(price int) error { return nil }\n\nfunc Close() {}\n")
	says(2, "check", "there is no snapshot", ".ci/api/accept")
	says(0, "accept", "2 facts are guarded now")
	says(0, "check")
	write("shop/shop.go", "package shop\n\nfunc Sell(price int) error { return nil }\n\nfunc Close() {}\n\nfunc Open() {}\n")
	says(0, "check", "1 additions are not guarded yet")
	write("shop/shop.go", "package shop\n\nfunc Sell(price int64) error { return nil }\n")
	says(1, "check", "- shop.Close: func()", "- shop.Sell: func(int) error\n+ shop.Sell: func(int64) error", "2 incompatible changes", ".ci/api/accept")
	says(0, "accept", "1 facts")
	says(0, "check")
	write("go.work", "go 1.26\n\nuse .\nuse ./idem/idemx\n")
	write("idem/idemx/go.mod", "module example.com/m/idem/idemx\n\ngo 1.26\n")
	write("idem/idemx/x.go", "package idemx\n\nfunc New() {}\n")
	says(0, "accept", "2 facts")
	write("idem/idemx/x.go", "package idemx\n")
	says(1, "check", "- idem/idemx.New: func()", "1 incompatible changes")
	says(0, "accept", "1 facts")
	write("shop/shop.go", "package shop\n\nfunc Sell(price int64) error {\n")
	says(2, "check", "the packages do not build", "shop.go:4")
	says(2, "chek")
}
