package console

import (
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/internal/lang"
)

// Masked returns a body without its values.
func Masked(body []byte) string { return masked(body) }

// WaitForAll has each request wait for as long as anything takes.
func (h *Handler) WaitForAll() { h.waits = waits{time.Minute, time.Minute, time.Minute, time.Minute} }

// WaitForNoAction has each action be answered before its end.
func (h *Handler) WaitForNoAction() { h.waits.result = 0 }

// Pages are the names of all pages, with their methods.
func Pages() map[string]string {
	all := map[string]string{}
	for name, p := range pages {
		all[name] = p.method
	}
	return all
}

func TestEveryTextOfThePagesIsInPortuguese(t *testing.T) {
	t.Parallel()
	for glob, said := range map[string]*regexp.Regexp{
		"page/*.html": regexp.MustCompile(`(?:say|count \S+) (?:"([^"]+)"|` + "`([^`]+)`" + `)(?: "([^"]+)")?`),
		"*.go":        regexp.MustCompile(`(?:said\(v\.lang, |count\(v\.lang, [^"]+, |v\.say\(|refuse\([^",]+, |lang\.Text\(|Label: |: +\{)"([^"]+)"(?:,\s+"([^"]+ [^"]+)")?`),
	} {
		files, err := filepath.Glob(glob)
		if err != nil || len(files) == 0 {
			t.Fatalf("%d files %s, %v", len(files), glob, err)
		}
		for _, file := range files {
			page, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(file, "_test.go") || file == "portuguese.go" {
				continue
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
}

func TestALongTextIsBrokenBehindSeparatorsAndCopiedAsItIs(t *testing.T) {
	t.Parallel()
	hex := strings.Repeat("0af9", 9) + "b"
	for text, want := range map[string]string{
		"":                 "",
		"paid":             "paid",
		"PAYMENT_RECEIVED": "PAYMENT_<wbr>RECEIVED",
		"evt_1&2<b>":       "evt_<wbr>1&amp;<wbr>2&lt;b&gt;",
		"ids a.b; 3 by":    "ids a.<wbr>b;<wbr> 3 by",
		"x_":               "x_",
		hex:                `<span class="run">` + hex + "</span>",
		"evt_" + hex[:36]:  "evt_<wbr>" + hex[:36],
		"evt_" + hex:       `evt_<wbr><span class="run">` + hex + "</span>",
	} {
		got := string(long(text))
		if want = "<bdi>" + want + "</bdi>"; got != want {
			t.Errorf("long(%q) = %s, want %s", text, got, want)
		}
		if copied := html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(got, "")); copied != text {
			t.Errorf("of %q one copies %q", text, copied)
		}
	}
}
