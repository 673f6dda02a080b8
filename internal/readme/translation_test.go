package readme

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// madeFrom is the comment of a translation: the original, and the version of it
// that was translated.
var madeFrom = regexp.MustCompile(`(?m)^<!-- translated from (\S+) ([0-9a-f]{12}) -->$`)

// translatedState is a state behind the translator's word for it.
var translatedState = regexp.MustCompile("\\(`(?:pending|retrying|unhandled|parked|done|discarded)`\\)")

// translations are the documents in other languages.
func translations(t *testing.T) (found []string) {
	t.Helper()
	for _, pattern := range []string{"README.*.md", "docs/pt-BR/*.md", "docs/es/*.md"} {
		files, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, files...)
	}
	return found
}

// original is the document that a translation was made from, and the version of it.
func original(t *testing.T, translation string) (document, version string) {
	t.Helper()
	found := madeFrom.FindStringSubmatch(read(t, translation))
	if found == nil {
		t.Fatalf("%s does not say which document it was translated from: %s", translation, madeFrom)
	}
	return found[1], found[2]
}

func TestNoTranslationIsOlderThanItsOriginal(t *testing.T) {
	t.Parallel()
	all := translations(t)
	if !slices.Contains(all, "README.pt-BR.md") || !slices.Contains(all, "README.es.md") {
		t.Errorf("the README is not there in Portuguese and Spanish: %q", all)
	}
	for _, translation := range all {
		document, version := original(t, translation)
		if now := fmt.Sprintf("%x", sha256.Sum256([]byte(read(t, document))))[:12]; now != version {
			t.Errorf("%s was translated from version %s of %s: translate the changes since, and write %s", translation, version, document, now)
		}
	}
}

// A translation differs from its original in its sentences only: it has the same
// headings, blocks and tables in the same order, and the same names in its code.
func TestATranslationHasTheStructureAndTheCodeOfItsOriginal(t *testing.T) {
	t.Parallel()
	for _, translation := range translations(t) {
		document, _ := original(t, translation)
		if diff := cmp.Diff(structure(t, document), structure(t, translation)); diff != "" {
			t.Errorf("%s has another structure than %s (-original +translation):\n%s", translation, document, diff)
		}
		if diff := cmp.Diff(spans(t, document), spans(t, translation)); diff != "" {
			t.Errorf("%s names other code than %s (-original +translation):\n%s", translation, document, diff)
		}
		if diff := cmp.Diff(targets(t, document), targets(t, translation)); diff != "" {
			t.Errorf("%s links to other documents than %s (-original +translation):\n%s", translation, document, diff)
		}
	}
}

// structure is a document without its sentences: the levels of its headings, its
// tables' rows with their columns, and its blocks of code as they are.
func structure(t *testing.T, document string) (parts []string) {
	t.Helper()
	isCode := false
	for line := range strings.Lines(read(t, document)) {
		isFence := strings.HasPrefix(line, "```")
		switch marks, _, _ := strings.Cut(line, " "); {
		case isCode || isFence:
			parts = append(parts, line)
		case strings.Trim(marks, "#") == "" && marks != "":
			parts = append(parts, marks)
		case strings.HasPrefix(line, "|"):
			parts = append(parts, fmt.Sprintf("row of %d columns", strings.Count(line, "|")-1))
		}
		isCode = isCode != isFence
	}
	return parts
}

// spans are the pieces of code in a document's sentences, each once.
func spans(t *testing.T, document string) []string {
	t.Helper()
	text := translatedState.ReplaceAllString(withoutBlocks(t, document), "")
	return sorted(inlineCode.FindAllString(text, -1))
}

// targets are the documents and files that a document links to, each once. A translation
// counts as its original, and the links between languages do not count.
func targets(t *testing.T, document string) []string {
	t.Helper()
	languages := translations(t)
	var to []string
	for _, found := range link.FindAllStringSubmatch(withoutBlocks(t, document), -1) {
		target := found[1]
		if file, _, _ := strings.Cut(target, "#"); !strings.Contains(target, "://") && file != "" {
			target = filepath.Join(filepath.Dir(document), file)
		} else if file == "" {
			continue // inside of the document: a heading is a sentence
		}
		if slices.Contains(languages, target) {
			target, _ = original(t, target)
		}
		if target != "README.md" {
			to = append(to, target)
		}
	}
	return sorted(to)
}

func sorted(texts []string) []string {
	slices.Sort(texts)
	return slices.Compact(texts)
}

// withoutBlocks is a document without its blocks of code.
func withoutBlocks(t *testing.T, document string) string {
	t.Helper()
	var text strings.Builder
	isCode := false
	for line := range strings.Lines(read(t, document)) {
		isFence := strings.HasPrefix(line, "```")
		if !isCode && !isFence {
			text.WriteString(line)
		}
		isCode = isCode != isFence
	}
	return text.String()
}
