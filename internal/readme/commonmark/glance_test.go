package commonmark

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
)

// What a reader takes in at once.
const (
	paragraphWords = 60
	cellWords      = 15
	codeLines      = 30 // in a README
	programLines   = 50 // elsewhere, where a program is printed as a whole
	proseColumns   = 100
)

// long are the pages that are not written for a glance yet.
var long = []string{"BENCHMARKS.md", "CHANGELOG.md"}

func TestAPageIsReadAtAGlance(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		if slices.Contains(long, p.name) || !strings.HasSuffix(p.name, ".md") {
			continue
		}
		lines := programLines
		if strings.HasPrefix(p.name, "README") {
			lines = codeLines
		}
		p.walk(func(n ast.Node) {
			words := len(strings.Fields(p.text(n, true)))
			switch n.Kind() {
			case ast.KindParagraph, ast.KindTextBlock:
				if words > paragraphWords {
					t.Errorf("%s:%d: a paragraph of %d words, want %d at most", p.name, p.line(n), words, paragraphWords)
				}
				for i := range n.Lines().Len() {
					segment := n.Lines().At(i)
					line := strings.TrimRight(string(segment.Value(p.source)), "\n")
					if wide := utf8.RuneCountInString(line); wide > proseColumns && strings.Contains(strings.TrimSpace(line), " ") {
						t.Errorf("%s:%d: a line of %d columns, want %d at most", p.name, p.line(n)+i, wide, proseColumns)
					}
				}
			case east.KindTableCell:
				if words > cellWords {
					t.Errorf("%s:%d: a cell of %d words, want %d at most", p.name, p.line(n), words, cellWords)
				}
			case ast.KindFencedCodeBlock, ast.KindCodeBlock:
				if has := n.Lines().Len(); has > lines {
					t.Errorf("%s:%d: code of %d lines, want %d at most", p.name, p.line(n), has, lines)
				}
			case ast.KindEmphasis:
				if n.(*ast.Emphasis).Level == 2 {
					t.Errorf("%s:%d: bold text: make it a heading, or plain", p.name, p.line(n))
				}
			}
		})
	}
}
