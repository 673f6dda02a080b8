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
		if err := terminal.PrintJSON(&out, text, ""); err != nil || out.String() != want+"\n" {
			t.Errorf("%q is printed as %s, %v, want %s", text, out.String(), err, want)
		}
	}
	var out strings.Builder
	if err := terminal.PrintJSON(&out, map[string]int{"a": 1}, "\t"); err != nil || out.String() != "{\n\t\"a\": 1\n}\n" {
		t.Errorf("indented: %q, %v", out.String(), err)
	}
	if err := terminal.PrintJSON(&out, func() {}, ""); err == nil {
		t.Error("a function is printed")
	}
}

// What is printed is the value, and nothing that a terminal acts on.
func FuzzPrintJSON(f *testing.F) {
	f.Add("a\u009b\U0001F600\u2028", "\t")
	f.Add("\xff\x00\\u0041", "")
	f.Fuzz(func(t *testing.T, text, indent string) {
		if strings.Trim(indent, " \t") != "" {
			return
		}
		var out strings.Builder
		if err := terminal.PrintJSON(&out, []string{text}, indent); err != nil {
			t.Fatal(err)
		}
		var got []string
		if err := json.Unmarshal([]byte(out.String()), &got); err != nil || got[0] != strings.ToValidUTF8(text, "\ufffd") && !strings.Contains(got[0], "\ufffd") {
			t.Errorf("%q is printed as %s, which is %q, %v", text, out.String(), got, err)
		}
		for _, r := range out.String() {
			if !unicode.IsPrint(r) && r != '\n' && r != '\t' {
				t.Errorf("%q is printed with %U", text, r)
			}
		}
	})
}
