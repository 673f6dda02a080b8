package terminal_test

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/internal/terminal"
)

func events() *terminal.Table {
	t := &terminal.Table{Heads: []string{"TIME", "ACCOUNT", "STATE", "ID", "ERROR"}}
	t.Add("10:00", "", "parked", "evt_1", "no such order, although it was there before: São Paulo")
	t.Add("11:00", "", "unhandled", "evt_22", "")
	return t
}

func TestATableIsAsWideAsTheTerminal(t *testing.T) {
	t.Parallel()
	for width, want := range map[int]string{
		0: `TIME   STATE      ID      ERROR
10:00  parked     evt_1   no such order, although it w…
11:00  unhandled  evt_22
`,
		60: `TIME   STATE      ID      ERROR
10:00  parked     evt_1   no such order, although it was th…
11:00  unhandled  evt_22
`,
		45: `TIME   STATE      ID
  ERROR
10:00  parked     evt_1
  no such order, although it was there befor…
11:00  unhandled  evt_22
`,
		20: `TIME   STATE
  ID
  ERROR
10:00  parked
  evt_1
  no such order, alth…
11:00  unhandled
  evt_22
`,
	} {
		var out strings.Builder
		if err := events().Print(&out, width, 29); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%d characters (-want +got):\n%s", width, diff)
		}
	}
}

func TestATableIsIndentedWhole(t *testing.T) {
	t.Parallel()
	table := events()
	table.Indent = 2
	var out strings.Builder
	if err := table.Print(&out, 47, 0); err != nil {
		t.Fatal(err)
	}
	const want = `  TIME   STATE      ID
    ERROR
  10:00  parked     evt_1
    no such order, although it was there befor…
  11:00  unhandled  evt_22
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An id that is cut off finds nothing.
func TestOnlyTheLastColumnIsCutOff(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100)
	table := &terminal.Table{Heads: []string{"ID", "ERROR"}}
	table.Add(long, long)
	var out strings.Builder
	if err := table.Print(&out, 40, 0); err != nil {
		t.Fatal(err)
	}
	if want := "ID\n  ERROR\n" + long + "\n  " + long[:37] + "…\n"; out.String() != want {
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

func TestWordsAreWrappedAtTheWidth(t *testing.T) {
	t.Parallel()
	const text = "it is  parked:\nsão muitas palavras, and_one_that_is_longer_than_a_line"
	for width, want := range map[int]string{
		0:  "it is parked: são muitas palavras, and_one_that_is_longer_than_a_line",
		20: "it is parked: são\n   muitas palavras,\n   and_one_that_is_longer_than_a_line",
	} {
		if got := terminal.Wrap(text, width, 3); got != want {
			t.Errorf("%d characters: %q, want %q", width, got, want)
		}
	}
}

// Not parallel: it sets the environment.
func TestWhatIsNoTerminalHasNoWidth(t *testing.T) {
	t.Setenv("COLUMNS", "40")
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, stream := range []any{file, nil, new(int)} {
		if got := terminal.Width(stream); got != 0 {
			t.Errorf("Width of %v = %d, want 0", stream, got)
		}
	}
}
