package commonmark

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
)

// codeColumns is the width of code that a reader need not scroll. A tab is four columns.
const codeColumns = 92

func TestNoPageShowsMarkupAsItWasTyped(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		for _, found := range p.typed() {
			t.Error(found)
		}
	}
}

// typed says where a reader would see markup that was meant for the parser.
func (p *page) typed() (found []string) {
	say := func(n ast.Node, text string) {
		for _, markup := range []string{"**", "](", "`", "<<<<<<<"} {
			if strings.Contains(text, markup) {
				found = append(found, fmt.Sprintf("%s:%d: a reader sees %s in: %.120s", p.name, p.line(n), markup, text))
			}
		}
	}
	p.walk(func(n ast.Node) {
		switch n.Kind() {
		case ast.KindParagraph, ast.KindTextBlock, ast.KindHeading, east.KindTableCell:
			say(n, p.text(n, false))
		case ast.KindHTMLBlock: // whose text CommonMark takes as it is
			html := string(n.Lines().Value(p.source))
			if block := n.(*ast.HTMLBlock); block.HasClosure() {
				html += string(block.ClosureLine.Value(p.source))
			}
			say(n, comment.ReplaceAllString(html, ""))
		}
	})
	return found
}

var comment = regexp.MustCompile(`(?s)<!--.*?-->`)

func TestMarkupThatAReaderWouldSeeIsFound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		why, text string
		want      int
	}{
		{"a merge with a conflict", "| a |\n|---|\n| b |\n<<<<<<< HEAD\n| c |\n=======\n| d |\n>>>>>>> other\n", 1},
		{"plain text", "A *word*, a **second**, `code ** ](` and a [link](page.md).\n", 0},
		{"a comment on a line of its own", "<!-- before -->\n\n**Text** and `code`.\n\n<!-- end -->\n", 0},
		{"a comment begins a line of text: all of it is HTML", "<!-- before -->**Status** <!-- end -->of `code`, a [link](page.md).\n", 3},
		{"the same in the middle of a block that began as a comment", "<!-- before --> a\n`code`\n", 0}, // a comment's block ends with its line
		{"a block of HTML goes on until an empty line", "<p>\n`code`\n</p>\n", 1},
		{"a bold word that closes inside of another", "**Why?**It is so **bold **\n", 1},
		{"a link whose address has a space", "a [link](a page.md)\n", 1},
		{"a backtick without its second", "a `word\n", 1},
		{"in a cell", "| a |\n|---|\n| **b |\n", 1},
		{"in a heading", "## a `b\n", 1},
		{"in a block of code it is code", "```sh\n**/*.go](`\n```\n", 0},
	} {
		if got := parse(test.why, []byte(test.text)).typed(); len(got) != test.want {
			t.Errorf("%s: %d are found, want %d: %q", test.why, len(got), test.want, got)
		}
	}
}

func TestEveryLinkInsideTheRepositoryLeadsSomewhere(t *testing.T) {
	t.Parallel()
	all := make(map[string]*page)
	for _, p := range pages(t) {
		all[p.name] = p
	}
	seen := 0
	for _, p := range all {
		p.walk(func(n ast.Node) {
			var to string
			switch n := n.(type) {
			case *ast.Link:
				to = string(n.Destination)
			case *ast.Image:
				to = string(n.Destination)
			default:
				return
			}
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				return
			}
			seen++
			file, anchor, _ := strings.Cut(to, "#")
			target := p.name
			if file != "" {
				target = path.Join(path.Dir(p.name), file)
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(target))); err != nil {
				t.Errorf("%s:%d: %v", p.name, p.line(n), err)
			} else if anchor != "" && (all[target] == nil || !slices.Contains(all[target].anchors(), anchor)) {
				t.Errorf("%s:%d links to %s: %s has no such heading", p.name, p.line(n), to, target)
			}
		})
	}
	if seen < 300 {
		t.Errorf("%d links were found", seen)
	}
}

var unslugged = regexp.MustCompile(`[^\p{L}\p{N}\p{M} _-]`)

// anchors returns the anchors that GitHub gives the headings of a page.
func (p *page) anchors() (found []string) {
	times := make(map[string]int)
	p.walk(func(n ast.Node) {
		if n.Kind() != ast.KindHeading {
			return
		}
		slug := strings.ReplaceAll(unslugged.ReplaceAllString(strings.ToLower(p.text(n, true)), ""), " ", "-")
		if n := times[slug]; n > 0 {
			found = append(found, fmt.Sprintf("%s-%d", slug, n))
		} else {
			found = append(found, slug)
		}
		times[slug]++
	})
	return found
}

func TestCodeIsAsWideAsAPage(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		p.walk(func(n ast.Node) {
			if n.Kind() != ast.KindFencedCodeBlock && n.Kind() != ast.KindCodeBlock {
				return
			}
			for i := range n.Lines().Len() {
				segment := n.Lines().At(i)
				line := strings.ReplaceAll(strings.TrimRight(string(segment.Value(p.source)), "\n"), "\t", "    ")
				if wide := utf8.RuneCountInString(line); wide > codeColumns {
					t.Errorf("%s:%d: a line of code of %d columns, of which a page shows %d", p.name, p.line(n)+i, wide, codeColumns)
				}
			}
		})
	}
}
