package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"strings"
)

// compiles type-checks a package, together with its files that are written by hand. Other packages are not
// read: what is used of them is taken to be right, and so is what a Dispatcher embeds.
func compiles(dir string, files []file) error {
	set := token.NewFileSet()
	var parsed []*ast.File
	made := make(map[string]bool)
	add := func(path string, source any) {
		if f, err := parser.ParseFile(set, path, source, parser.SkipObjectResolution); err == nil {
			parsed = append(parsed, f)
		}
	}
	others, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, path := range others { // first, so that a name of both is the spec's mistake
		if in, err := build.Default.MatchFile(dir, filepath.Base(path)); err == nil && in && !strings.HasSuffix(path, ".gen.go") && !strings.HasSuffix(path, "_test.go") {
			add(path, nil)
		}
	}
	for _, f := range files {
		if filepath.Dir(f.path) == dir && filepath.Ext(f.path) == ".go" {
			made[f.path] = true
			add(f.path, f.content)
		}
	}
	var wrong []error
	config := types.Config{Importer: unread{}, Error: func(err error) {
		e, ok := errors.AsType[types.Error](err)
		if at := set.Position(e.Pos); ok && made[at.Filename] && !unreadable.MatchString(e.Msg) {
			wrong = append(wrong, fmt.Errorf("%s:%d: %s", filepath.Base(at.Filename), at.Line, e.Msg))
		}
	}}
	_, _ = config.Check(dir, set, parsed, nil) // Error has them
	if len(wrong) > 0 {
		return fmt.Errorf("gen: nothing was written: the package would not compile; give what clashes another x-go-name, and write what is missing:\n%w", errors.Join(wrong...))
	}
	return nil
}

// unreadable are the messages that only say that another package was not read.
var unreadable = regexp.MustCompile(`^could not import|\(type \*Dispatcher has no |^missing type in composite literal`)

// unread fails to import, after which go/types takes everything of a package to be right. The name of pgx
// is not the end of its path.
type unread struct{}

func (unread) Import(path string) (*types.Package, error) {
	if path != "github.com/jackc/pgx/v5" {
		return nil, errors.New("it is not read")
	}
	p := types.NewPackage(path, "pgx")
	p.Scope().Insert(types.NewTypeName(token.NoPos, p, "Tx", types.Universe.Lookup("any").Type()))
	p.MarkComplete()
	return p, nil
}
