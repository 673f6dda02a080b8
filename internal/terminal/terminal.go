// Package terminal prints at a terminal.
package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Is reports whether a person is at the other end of a stream. /dev/null is a character
// device, too: it never answers.
func Is(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// Clean returns a stranger's text as one line that is fit for a terminal: control characters and
// those that change the direction of writing are spaces, and there is one space between words.
func Clean(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// Text returns a text of several lines, a body for example, that is fit for a terminal: each
// character that it would act on is U+FFFD, but for tabs and the ends of lines.
func Text(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) && r != '\t' && r != '\n' {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ReplaceAll(text, "\r\n", "\n"))
}

// PrintJSON writes a value as a line of JSON. A character that does not print is escaped, since a terminal
// would act on it, and so is U+FFFD, which versions of Go write differently.
func PrintJSON(w io.Writer, value any) error {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return err
	}
	var out bytes.Buffer
	for _, r := range text.String() {
		switch {
		case unicode.IsPrint(r) && r != utf8.RuneError, r == '\n': // after the value: within texts it is escaped
			out.WriteRune(r)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&out, `\u%04x`, unit)
			}
		}
	}
	_, err := out.WriteTo(w)
	return err
}

// Table is text in columns. Those that are empty in every row are left out. The cells are fit for
// a terminal, see [Clean].
type Table struct {
	Heads  []string
	Rows   [][]string
	Indent int // of every line
}

// Add adds a row, with a cell for each head.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Print writes the table, a line for each row. The last column is cut off at most characters; 0 is any number. An
// id of another column is never cut off: it would find nothing.
func (t *Table) Print(w io.Writer, most int) error {
	var used []int
	for n := range t.Heads {
		if slices.ContainsFunc(t.Rows, func(row []string) bool { return row[n] != "" }) {
			used = append(used, n)
		}
	}
	var text strings.Builder
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{t.Heads}, t.Rows...) {
		fmt.Fprint(columns, strings.Repeat(" ", t.Indent))
		for i, n := range used {
			cell := row[n]
			if i == len(used)-1 && most > 0 {
				cell = Cut(cell, most)
			}
			fmt.Fprint(columns, cell, "\t")
		}
		fmt.Fprintln(columns)
	}
	_ = columns.Flush() // into memory
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// Cut returns a text of at most so many characters, the last of which says that there were more.
func Cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:max(most-1, 0)]) + "…"
}

// Quoted returns a text as a word of a shell's command.
func Quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
