package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestCommentsOfTypesAreSentences(t *testing.T) {
	t.Parallel()
	tests := []struct{ description, want, why string }{
		{"A charge.", "// Payment is a charge.", "the article goes on in lower case"},
		{"The charge.\n", "// Payment is the charge.", "YAML texts end with a line break"},
		{"An order.\n\nIt may\nbe old.", "// Payment is an order.\n//\n// It may be old.", "an empty line parts paragraphs, a line break does not"},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, about("Payment", test.description)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
	}
}

func TestCommentsAreWrapped(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ação ", 50) + strings.Repeat("x", 100)
	lines := strings.Split(comment(long), "\n")
	for _, line := range lines[:len(lines)-1] {
		if n := utf8.RuneCountInString(line); n > commentWidth {
			t.Errorf("a line has %d characters, want at most %d: %s", n, commentWidth, line)
		}
	}
	if n := utf8.RuneCountInString(lines[0] + " ação"); n <= commentWidth {
		t.Errorf("one more word had fitted into the line %q", lines[0])
	}
	if last := lines[len(lines)-1]; last != "// "+strings.Repeat("x", 100) {
		t.Errorf("a word that is too long is cut or moved: %s", last)
	}
	if got := strings.Fields(strings.ReplaceAll(strings.Join(lines, " "), "//", "")); !cmp.Equal(got, strings.Fields(long)) {
		t.Errorf("words were lost: %v", got)
	}
}
