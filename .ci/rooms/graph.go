package main

import (
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// graph holds the files of a package, and the names by which each uses another.
type graph struct {
	path  string
	files []string                       // without .go, sorted
	uses  map[string]map[string][]string // from a file to a file: the names
	lines map[string]int                 // of code
	order []string                       // as doc.go lists them; nil if it does not
}

// newGraph returns the graph of a package's files, tests and generated files apart.
func newGraph(p *packages.Package) (*graph, error) {
	g := &graph{path: p.PkgPath, uses: map[string]map[string][]string{}, lines: map[string]int{}}
	for _, f := range p.Syntax {
		name := g.fileOf(p.Fset, f.Package)
		if strings.HasSuffix(name, ".gen") {
			continue
		}
		g.files = append(g.files, name)
		lines, err := codeLines(p.Fset.Position(f.Package).Filename)
		if err != nil {
			return nil, err
		}
		g.lines[name] = lines
		if name == "doc" {
			g.order = listed(f.Doc)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				g.note(p, name, p.TypesInfo.Uses[id])
			}
			return true
		})
	}
	slices.Sort(g.files)
	return g, nil
}

func (g *graph) fileOf(fset *token.FileSet, pos token.Pos) string {
	return strings.TrimSuffix(filepath.Base(fset.Position(pos).Filename), ".go")
}

// note records that file uses o, if another file of the package declares it.
func (g *graph) note(p *packages.Package, file string, o types.Object) {
	if o == nil || o.Pkg() != p.Types || !o.Pos().IsValid() {
		return
	}
	if _, ok := o.(*types.PkgName); ok {
		return
	}
	from := g.fileOf(p.Fset, o.Pos())
	if from == file || strings.HasSuffix(from, ".gen") {
		return
	}
	if g.uses[file] == nil {
		g.uses[file] = map[string][]string{}
	}
	if name := nameOf(o); !slices.Contains(g.uses[file][from], name) {
		g.uses[file][from] = append(g.uses[file][from], name)
	}
}

// nameOf names a method with its type.
func nameOf(o types.Object) string {
	if f, ok := o.(*types.Func); ok {
		if recv := f.Signature().Recv(); recv != nil {
			return types.TypeString(recv.Type(), func(*types.Package) string { return "" }) + "." + f.Name()
		}
	}
	return o.Name()
}

// codeLines counts the lines of a file that hold more than a comment.
func codeLines(file string) (int, error) {
	source, err := readFile(file)
	if err != nil {
		return 0, err
	}
	fset := token.NewFileSet()
	f := fset.AddFile(file, -1, len(source))
	var s scanner.Scanner
	s.Init(f, source, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return len(lines), nil
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue
		}
		for line := range 1 + strings.Count(literal, "\n") { // a raw string has several
			lines[f.Line(pos)+line] = true
		}
	}
}

// listed returns the files that a package's comment lists below "# Files".
func listed(doc *ast.CommentGroup) (files []string) {
	_, list, found := strings.Cut(doc.Text(), "\n# Files\n")
	if !found {
		return nil
	}
	list, _, _ = strings.Cut(list, "\n# ")
	for line := range strings.Lines(list) {
		if !strings.HasPrefix(line, "\t") {
			continue
		}
		names, _, _ := strings.Cut(line, "//")
		files = append(files, strings.Fields(names)...)
	}
	return files
}

// findings returns the reasons that keep the package from being read in one direction.
func (g *graph) findings() (found []string) {
	for _, name := range g.files {
		if n := g.lines[name]; n > maxLines {
			found = append(found, fmt.Sprintf("%s: %s.go has %d lines of code, %d at most: which part of it is a subject of its own?", g.path, name, n, maxLines))
		}
	}
	for _, c := range g.circles() {
		found = append(found, g.describe(c))
	}
	if g.order == nil {
		return found
	}
	return append(found, g.misordered()...)
}

// circle is a group of files that use each other, and a shortest cycle in it.
type circle struct{ files, cycle []string }

func (g *graph) circles() (all []circle) {
	seen := map[string]bool{}
	for _, start := range g.files {
		cycle := g.way(start, start)
		if cycle == nil || seen[start] {
			continue
		}
		var files []string
		for _, f := range g.files {
			if f == start || g.way(start, f) != nil && g.way(f, start) != nil {
				files, seen[f] = append(files, f), true
			}
		}
		all = append(all, circle{files, cycle})
	}
	return all
}

// way returns a shortest way of at least one step, both ends included.
func (g *graph) way(from, to string) []string {
	before := map[string]string{}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, next := range slices.Sorted(maps.Keys(g.uses[at])) {
			if _, seen := before[next]; seen {
				continue
			}
			before[next] = at
			if next != to {
				queue = append(queue, next)
				continue
			}
			way := []string{to}
			for f := before[to]; ; f = before[f] {
				way = append(way, f)
				if f == from {
					slices.Reverse(way)
					return way
				}
			}
		}
	}
	return nil
}

func (g *graph) describe(c circle) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: %d files use each other: %s", g.path, len(c.files), strings.Join(c.files, ", "))
	for i := range len(c.cycle) - 1 {
		fmt.Fprintf(&s, "\n\t%s.go uses %s of %s.go", c.cycle[i], g.names(c.cycle[i], c.cycle[i+1]), c.cycle[i+1])
	}
	return s.String()
}

func (g *graph) names(from, to string) string {
	names := slices.Sorted(slices.Values(g.uses[from][to]))
	if len(names) > 6 {
		names = append(names[:6:6], "…")
	}
	return strings.Join(names, ", ")
}

// misordered reports where the list of doc.go is not one to read by.
func (g *graph) misordered() (found []string) {
	place := map[string]int{}
	for i, name := range g.order {
		if _, twice := place[name]; twice {
			found = append(found, fmt.Sprintf("%s: doc.go lists %s twice", g.path, name))
		}
		place[name] = i
		if !slices.Contains(g.files, name) {
			found = append(found, fmt.Sprintf("%s: doc.go lists %s, and there is no such file", g.path, name))
		}
	}
	for _, name := range g.files {
		if _, ok := place[name]; !ok && name != "doc" {
			found = append(found, fmt.Sprintf("%s: doc.go does not list %s", g.path, name))
		}
	}
	for _, from := range g.order {
		for _, to := range slices.Sorted(maps.Keys(g.uses[from])) {
			if p, ok := place[to]; ok && p > place[from] {
				found = append(found, fmt.Sprintf("%s: %s.go uses %s of %s.go, which doc.go lists below it", g.path, from, g.names(from, to), to))
			}
		}
	}
	return found
}
