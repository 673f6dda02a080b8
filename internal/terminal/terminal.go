// Package terminal prints at a terminal.
package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
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

// Wrap returns words in lines of this width; 0 is one line. The first begins at the column indent,
// to which the others are indented.
func Wrap(text string, width, indent int) string {
	var lines strings.Builder
	column := indent
	for n, word := range strings.Fields(text) {
		size := utf8.RuneCountInString(word)
		switch {
		case n == 0:
		case width > 0 && column+1+size > width:
			lines.WriteString("\n" + strings.Repeat(" ", indent))
			column = indent
		default:
			lines.WriteString(" ")
			column++
		}
		lines.WriteString(word)
		column += size
	}
	return lines.String()
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

// narrowest is the least room that the last column gets beside others.
const narrowest = 20

// gap is the room between columns.
const gap = 2

// Print writes the table for a terminal of this width; 0 is any width. Where a row is too long it
// has several lines, the head as well: the later ones are indented. The last column is cut off at
// the end of its line, or at most characters where the width is 0.
func (t *Table) Print(w io.Writer, width, most int) error {
	var used []int
	for n := range t.Heads {
		if slices.ContainsFunc(t.Rows, func(row []string) bool { return row[n] != "" }) {
			used = append(used, n)
		}
	}
	if width > 0 {
		width = max(width-t.Indent, 1)
	}
	lines := t.lines(used, width)
	var text strings.Builder
	for n, row := range append([][]string{t.Heads}, t.Rows...) {
		for i, line := range lines {
			if i == 0 || n == 0 || slices.ContainsFunc(line, func(c column) bool { return row[c.index] != "" }) {
				text.WriteString(strings.Repeat(" ", t.Indent) + t.format(row, line, i > 0, width, most))
			}
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// column is one that is printed, with the width of its longest cell.
type column struct {
	index, width int
	last         bool
}

// lines distributes the columns over the lines of a row.
func (t *Table) lines(used []int, width int) (lines [][]column) {
	at := 0
	for i, n := range used {
		c := column{n, utf8.RuneCountInString(t.Heads[n]), i == len(used)-1}
		for _, row := range t.Rows {
			c.width = max(c.width, utf8.RuneCountInString(row[n]))
		}
		needs := c.width
		if c.last {
			needs = min(needs, narrowest)
		}
		if i == 0 || width > 0 && at+needs > width {
			lines, at = append(lines, nil), 0
			if i > 0 {
				at = gap
			}
		}
		lines[len(lines)-1] = append(lines[len(lines)-1], c)
		at += c.width + gap
	}
	return lines
}

func (t *Table) format(row []string, line []column, isLater bool, width, most int) string {
	var text strings.Builder
	if isLater {
		text.WriteString(strings.Repeat(" ", gap))
	}
	at := text.Len()
	for _, c := range line {
		cell := row[c.index]
		if c.last && width > 0 {
			cell = Cut(cell, max(width-at, narrowest))
		} else if c.last && most > 0 {
			cell = Cut(cell, most)
		}
		text.WriteString(cell + strings.Repeat(" ", max(0, c.width-utf8.RuneCountInString(cell))+gap))
		at += c.width + gap
	}
	return strings.TrimRight(text.String(), " ") + "\n"
}

// Cut returns a text of at most so many characters, the last of which says that there were more.
func Cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:max(most-1, 0)]) + "…"
}

// Width returns how many characters a line of the terminal has that a stream is: the number in
// COLUMNS, else the terminal's own, else 80. It is 0 if the stream is no terminal: then a line
// may have any length.
func Width(stream any) int {
	if !Is(stream) {
		return 0
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	if n := columns(stream.(*os.File)); n > 0 {
		return n
	}
	return 80
}
