package commonmark

import (
	"strings"
	"testing"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
)

// What a visitor reads at once. The other pages are for those who stay.
const (
	paragraphWords = 60
	cellWords      = 15
	codeLines      = 30
)

func TestAREADMEIsReadAtAGlance(t *testing.T) {
	t.Parallel()
	readmes := 0
	for _, p := range pages(t) {
		if strings.Contains(p.name, "/") || !strings.HasPrefix(p.name, "README") {
			continue
		}
		readmes++
		p.walk(func(n ast.Node) {
			words := len(strings.Fields(p.text(n, true)))
			switch n.Kind() {
			case ast.KindParagraph, ast.KindTextBlock:
				if words > paragraphWords {
					t.Errorf("%s:%d: a paragraph of %d words, want %d at most", p.name, p.line(n), words, paragraphWords)
				}
			case east.KindTableCell:
				if words > cellWords {
					t.Errorf("%s:%d: a cell of %d words, want %d at most", p.name, p.line(n), words, cellWords)
				}
			case ast.KindFencedCodeBlock, ast.KindCodeBlock:
				if lines := n.Lines().Len(); lines > codeLines {
					t.Errorf("%s:%d: code of %d lines, want %d at most", p.name, p.line(n), lines, codeLines)
				}
			case ast.KindEmphasis:
				if n.(*ast.Emphasis).Level == 2 {
					t.Errorf("%s:%d: bold text: make it a heading, or plain", p.name, p.line(n))
				}
			}
		})
	}
	if readmes != 3 {
		t.Errorf("%d READMEs, want the original and its two translations", readmes)
	}
}
