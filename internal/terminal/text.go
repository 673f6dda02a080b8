package terminal

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

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
	lines := strings.Split(text, "\n")
	for n := range lines {
		lines[n] = strings.Map(func(r rune) rune {
			if !unicode.IsPrint(r) && r != '\t' {
				return unicode.ReplacementChar
			}
			return r
		}, strings.TrimSuffix(lines[n], "\r"))
	}
	return strings.Join(lines, "\n")
}
