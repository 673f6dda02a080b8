package console

import (
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/internal/lang"
)

func TestEveryTextOfThePagesIsInPortuguese(t *testing.T) {
	t.Parallel()
	said := regexp.MustCompile(`(?:say|markup|count \S+) "([^"]+)"(?: "([^"]+)")?`)
	files, err := filepath.Glob("page/*.html")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d pages, %v", len(files), err)
	}
	for _, file := range files {
		page, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range said.FindAllStringSubmatch(string(page), -1) {
			for _, text := range call[1:] {
				if text != "" && portuguese[lang.Text(text)] == "" {
					t.Errorf("%s: %q has no Portuguese", file, text)
				}
			}
		}
	}
}

func TestALongTextIsBrokenBehindSeparatorsAndCopiedAsItIs(t *testing.T) {
	t.Parallel()
	hex := strings.Repeat("0af9", 9) + "b"
	for text, want := range map[string]string{
		"":                 "",
		"paid":             "paid",
		"PAYMENT_RECEIVED": "<span>PAYMENT_<wbr>RECEIVED</span>",
		"evt_1&2<b>":       "<span>evt_<wbr>1&amp;<wbr>2&lt;b&gt;</span>",
		"ids a.b; 3 by":    "<span>ids a.<wbr>b;<wbr> 3 by</span>",
		"x_":               "x_",
		hex:                `<span class="run">` + hex + "</span>",
		"evt_" + hex[:36]:  "<span>evt_<wbr>" + hex[:36] + "</span>",
		"evt_" + hex:       `<span>evt_<wbr><span class="run">` + hex + "</span></span>",
	} {
		got := string(long(text))
		if got != want {
			t.Errorf("long(%q) = %s, want %s", text, got, want)
		}
		if copied := html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(got, "")); copied != text {
			t.Errorf("of %q one copies %q", text, copied)
		}
	}
}
