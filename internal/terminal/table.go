package terminal

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

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
