package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The limits, in a thousand words of all comments of code, and of all documents.
const (
	maxWhat = 2.0 // "what", "whatever"
	maxWho  = 0.5 // "who", "whose", "whom", "whoever", "nobody"
)

// The kinds of texts. The words in tests are printed and not limited: a test tells a story, with people in it.
const (
	code      = "comments of code"
	tests     = "comments of tests"
	documents = "documents"
)

func kindOf(t text) string {
	switch {
	case strings.HasSuffix(t.path, ".md"):
		return documents
	case strings.HasSuffix(t.path, "_test.go"):
		return tests
	}
	return code
}

func main() {
	worst := flag.Int("worst", 10, "print the `number` of places that are furthest above the limits")
	flag.Parse()
	texts, err := read(os.DirFS("."))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(report(os.Stdout, texts, *worst))
}

// read returns the texts below a folder.
func read(dir fs.FS) (texts []text, err error) {
	err = fs.WalkDir(dir, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if name == "testdata" || name == "node_modules" || name == ".git" || path == "docs/es" || path == "docs/pt-BR" {
				return fs.SkipDir
			}
			return nil
		}
		translated := strings.HasSuffix(name, ".es.md") || strings.HasSuffix(name, ".pt-BR.md")
		if filepath.Ext(name) != ".go" && (filepath.Ext(name) != ".md" || translated) {
			return nil
		}
		src, err := fs.ReadFile(dir, path)
		if err != nil {
			return fmt.Errorf("words: cannot read a file: %w", err)
		}
		if filepath.Ext(name) == ".md" {
			texts = append(texts, markdownText(path, src))
			return nil
		}
		t, err := goText(path, src)
		if err != nil {
			return fmt.Errorf("words: cannot parse a file: %w", err)
		}
		texts = append(texts, t)
		return nil
	})
	return texts, err
}

// report prints the rates and the worst places, and returns the exit status.
func report(w io.Writer, texts []text, worst int) (status int) {
	for _, kind := range []string{code, tests, documents} {
		var all count
		for _, t := range texts {
			if kindOf(t) == kind {
				all = all.plus(t.count())
			}
		}
		if all.words == 0 {
			continue
		}
		thousand := float64(all.words) / 1000
		fmt.Fprintf(w, "words: %s: %d words, in a thousand %.2f what (%.1f allowed), %.2f who, whose, nobody (%.1f allowed)\n",
			kind, all.words, float64(all.what)/thousand, maxWhat, float64(all.who)/thousand, maxWho)
		if all.over() > 0 && kind != tests {
			status = 1
		}
	}
	for _, t := range texts {
		if kindOf(t) == tests {
			continue
		}
		for _, said := range t.forms {
			fmt.Fprintf(w, "words: %s: a doc comment returns, reports, holds or sets: %q\n", t.path, said)
			status = 1
		}
	}
	texts = slices.DeleteFunc(slices.Clone(texts), func(t text) bool { return kindOf(t) == tests || t.count().over() == 0 })
	slices.SortStableFunc(texts, func(a, b text) int { return cmp.Compare(b.count().over(), a.count().over()) })
	for _, t := range texts[:min(worst, len(texts))] {
		c := t.count()
		fmt.Fprintf(w, "words: %s: %d words, %d what, %d who\n", t.path, c.words, c.what, c.who)
	}
	return status
}
