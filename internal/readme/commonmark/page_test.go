// Package commonmark tests that every page of the repository is read by CommonMark as its author meant it.
package commonmark

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

const root = "../../.."

// page is a document, parsed as GitHub does: by CommonMark, with tables.
type page struct {
	name   string // below the root, with slashes
	source []byte
	tree   ast.Node
}

func parse(name string, source []byte) *page {
	parser := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()
	return &page{name, source, parser.Parse(text.NewReader(source))}
}

// pages returns all pages of the repository.
func pages(t *testing.T) (all []*page) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(name, ".md") && name != "llms.txt" {
			return err
		}
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		all = append(all, parse(name, source))
		return err
	})
	if err != nil || len(all) < 30 {
		t.Fatalf("%d pages, %v", len(all), err)
	}
	return all
}

// walk calls visit for each node, in the order of the page.
func (p *page) walk(visit func(n ast.Node)) {
	_ = ast.Walk(p.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			visit(n)
		}
		return ast.WalkContinue, nil
	})
}

// text returns what a reader sees of a node. Code is a placeholder in it, unless it is wanted.
func (p *page) text(n ast.Node, code bool) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.CodeSpan:
			if !code {
				b.WriteString("code")
				return ast.WalkSkipChildren, nil
			}
		case *ast.Text:
			b.Write(n.Segment.Value(p.source))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(n.Value)
		case *ast.AutoLink:
			b.Write(n.Label(p.source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// line returns the number of the line at which a node begins.
func (p *page) line(n ast.Node) int {
	for ; n != nil; n = n.FirstChild() {
		at := -1
		switch lines := n.Type(); {
		case lines == ast.TypeBlock && n.Lines().Len() > 0:
			at = n.Lines().At(0).Start
		case n.Kind() == ast.KindText:
			at = n.(*ast.Text).Segment.Start
		}
		if at >= 0 {
			return strings.Count(string(p.source[:at]), "\n") + 1
		}
	}
	return 1
}
