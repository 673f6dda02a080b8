package readme

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// madeFrom is the comment of a translation: the original, and the version of it
// that was translated.
var madeFrom = regexp.MustCompile(`(?m)^<!-- translated from (\S+) ([0-9a-f]{12}) -->$`)

// translations returns the documents in other languages.
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

// original returns the document that a translation was made from, and its version.
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

// The Spanish README is for users of Zelta Pay: its program is one of theirs.
func TestATranslationHasTheCodeOfItsOriginal(t *testing.T) {
	t.Parallel()
	for _, translation := range translations(t) {
		document, _ := original(t, translation)
		languages := []string{"go", "sh", "sql", "text"}
		if translation == "README.es.md" {
			languages = []string{"sh", "text"}
		}
		for _, language := range languages {
			want, got := find(t, document, language), find(t, translation, language)
			if !slices.EqualFunc(want, got, func(a, b block) bool { return a.code() == b.code() }) {
				t.Errorf("the blocks in %s of %s are not those of %s, but for comments", language, translation, document)
			}
		}
	}
}

// comments end with their line, in each language.
var comments = map[string]*regexp.Regexp{
	"go":  regexp.MustCompile(`(?m)(^|[ \t]+)// .*$`),
	"sh":  regexp.MustCompile(`(?m)(^|[ \t]+)# .*$`),
	"sql": regexp.MustCompile(`(?m)(^|[ \t]+)-- .*$`),
}

// code returns a block without its comments, which are translated.
func (b block) code() string {
	if comment, ok := comments[b.language]; ok {
		return comment.ReplaceAllString(b.text, "")
	}
	return b.text
}

var inlineCode = regexp.MustCompile("`[^`\n]+`")

func TestThePortugueseRunbookQuotesCommandsAndTheirOutputAsTheOriginalDoes(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"alerts.md", "oncall.md"} {
		translation := read(t, "docs/pt-BR/"+page)
		for _, quote := range inlineCode.FindAllString(read(t, "docs/"+page), -1) {
			isSaid := strings.Contains(quote, " ") // a command, a log line, or what a command prints
			if isSaid && !strings.Contains(translation, quote) {
				t.Errorf("docs/pt-BR/%s does not have %s", page, quote)
			}
		}
	}
}
