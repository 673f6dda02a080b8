package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

// text holds the lines of one file that are written for people, without code.
type text struct {
	path  string
	lines []string
	forms []string // first sentences of doc comments that have a form to avoid
}

var (
	words  = regexp.MustCompile(`[A-Za-z][A-Za-z'’-]*`)
	form   = regexp.MustCompile(`^\S+ (?:is|are) (?:what|how|why|where|who)\b|\btells whether\b`)
	fenced = regexp.MustCompile("(?s)```.*?```|~~~.*?~~~|<!--.*?-->")
	inline = regexp.MustCompile("`[^`\n]*`|\\]\\([^)]*\\)")
)

// goText returns the comments of a Go file.
func goText(path string, src []byte) (text, error) {
	t := text{path: path}
	file, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return t, err
	}
	for _, group := range file.Comments {
		for line := range strings.Lines(group.Text()) {
			if !strings.HasPrefix(line, "\t") { // a block of code
				t.lines = append(t.lines, line)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			t.look(n.Doc)
		case *ast.GenDecl:
			t.look(n.Doc)
		case *ast.TypeSpec:
			t.look(n.Doc)
		case *ast.ValueSpec:
			t.look(n.Doc)
		case *ast.Field:
			t.look(n.Doc)
		}
		return true
	})
	return t, nil
}

func (t *text) look(doc *ast.CommentGroup) {
	if said := strings.ReplaceAll(doc.Text(), "\n", " "); form.MatchString(said) {
		t.forms = append(t.forms, strings.TrimSpace(said[:min(len(said), 90)]))
	}
}

// markdownText returns the text of a Markdown file.
func markdownText(path string, src []byte) text {
	t := text{path: path}
	prose := inline.ReplaceAllString(fenced.ReplaceAllString(string(src), ""), "")
	for line := range strings.Lines(prose) {
		if !strings.HasPrefix(strings.TrimSpace(line), ">") {
			t.lines = append(t.lines, line)
		}
	}
	return t
}

// count holds the number of all words of a text, and of those to avoid.
type count struct{ words, what, who int }

func (t text) count() (c count) {
	for _, line := range t.lines {
		for _, w := range words.FindAllString(line, -1) {
			c.words++
			switch strings.ToLower(strings.TrimRight(w, "'’-")) {
			case "what", "whatever", "what's":
				c.what++
			case "who", "who's", "whose", "whom", "whoever", "nobody":
				c.who++
			}
		}
	}
	return c
}

func (c count) plus(d count) count {
	return count{words: c.words + d.words, what: c.what + d.what, who: c.who + d.who}
}

// over returns the number of words beyond the limits.
func (c count) over() float64 {
	return max(0, float64(c.what)-maxWhat*float64(c.words)/1000) + max(0, float64(c.who)-maxWho*float64(c.words)/1000)
}
