package terminal_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/internal/terminal"
)

func TestWhatIsNoTerminalIsNot(t *testing.T) {
	t.Parallel()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for name, stream := range map[string]any{"/dev/null": null, "a file": file, "no file": strings.NewReader(""), "nothing": nil} {
		if terminal.Is(stream) {
			t.Errorf("%s is taken for a terminal", name)
		}
	}
}

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

func TestATableHasALineForEachRow(t *testing.T) {
	t.Parallel()
	for most, want := range map[int]string{
		0: `  TIME   STATE      ID      ERROR
  10:00  parked     evt_1   no such order, although it was there before: São Paulo
  11:00  unhandled  evt_22
`,
		29: `  TIME   STATE      ID      ERROR
  10:00  parked     evt_1   no such order, although it w…
  11:00  unhandled  evt_22
`,
	} {
		table := &terminal.Table{Heads: []string{"TIME", "ACCOUNT", "STATE", "ID", "ERROR"}, Indent: 2}
		table.Add("10:00", "", "parked", "evt_1", "no such order, although it was there before: São Paulo")
		table.Add("11:00", "", "unhandled", "evt_22", "")
		var out strings.Builder
		if err := table.Print(&out, most); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%d characters (-want +got):\n%s", most, diff)
		}
	}
}

// An id that is cut off finds nothing.
func TestOnlyTheLastColumnIsCutOff(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100)
	table := &terminal.Table{Heads: []string{"ID", "ERROR"}}
	table.Add(long, long)
	var out strings.Builder
	if err := table.Print(&out, 40); err != nil {
		t.Fatal(err)
	}
	if want := "ID" + strings.Repeat(" ", 100) + "ERROR\n" + long + "  " + long[:39] + "…\n"; out.String() != want {
		t.Errorf("it is\n%s, want\n%s", out.String(), want)
	}
}

func TestATextMovesNoCursor(t *testing.T) {
	t.Parallel()
	const hostile = "a\x1b[2J\r\nb\u202e\u0085 \tç\u00ad"
	if got := terminal.Clean(hostile); got != "a [2J b ç" {
		t.Errorf("Clean: %q", got)
	}
	if got := terminal.Text(hostile); got != "a\uFFFD[2J\nb\uFFFD\uFFFD \tç\uFFFD" {
		t.Errorf("Text: %q", got)
	}
}
