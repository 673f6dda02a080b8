package console

import (
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/internal/lang/langtest"
)

func TestEveryTextIsInBothLanguages(t *testing.T) {
	t.Parallel()
	langtest.Whole(t, portuguese, "page/*.html")
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
