package terminal_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"

	"github.com/paghooks/paghooks/internal/terminal"
)

func TestJSONDoesNothingToATerminal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"São <Paulo> & 😀 \\ \"":  `"São <Paulo> & 😀 \\ \""`,
		"\u009b31m\u0085\u007f":  `"\u009b31m\u0085\u007f"`,
		"\u202egnp.exe\u2066":    `"\u202egnp.exe\u2066"`,
		"\x1b[2J\n\t":            `"\u001b[2J\n\t"`,
		"\U000e0041\u00ad\ufeff": `"\udb40\udc41\u00ad\ufeff"`,
		"\xff":                   `"\ufffd"`,
	} {
		var out strings.Builder
		if err := terminal.PrintJSON(&out, text); err != nil || out.String() != want+"\n" {
			t.Errorf("%q is printed as %s, %v, want %s", text, out.String(), err, want)
		}
	}
	var out strings.Builder
	if err := terminal.PrintJSON(&out, func() {}); err == nil {
		t.Error("a function is printed")
	}
}

// The output is the value, and nothing that a terminal acts on.
func FuzzPrintJSON(f *testing.F) {
	f.Add("a\u009b\U0001F600\u2028")
	f.Add("\xff\x00\\u0041")
	f.Fuzz(func(t *testing.T, text string) {
		var out strings.Builder
		if err := terminal.PrintJSON(&out, []string{text}); err != nil {
			t.Fatal(err)
		}
		var got []string
		if err := json.Unmarshal([]byte(out.String()), &got); err != nil || got[0] != strings.ToValidUTF8(text, "\ufffd") && !strings.Contains(got[0], "\ufffd") {
			t.Errorf("%q is printed as %s, which is %q, %v", text, out.String(), got, err)
		}
		for _, r := range out.String() {
			if !unicode.IsPrint(r) && r != '\n' {
				t.Errorf("%q is printed with %U", text, r)
			}
		}
	})
}
