// Package terminal prints at a terminal, and asks the person there.
package terminal

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
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

// ErrNobody is the error of a question without an answer.
var ErrNobody = errors.New("nobody answered")

// Confirm asks a question, and returns whether the answer is one of yes, the first of which the
// question names. The error is
// ErrNobody if in ends first, and the cause of ctx if that does.
func Confirm(ctx context.Context, in io.Reader, out io.Writer, question string, yes ...string) (is bool, err error) {
	fmt.Fprintf(out, "%s [%s/N] ", question, yes[0])
	answer, err := readLine(ctx, in)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(out)
		return false, context.Cause(ctx)
	case err != nil && answer == "":
		fmt.Fprintln(out)
		return false, ErrNobody
	}
	answer = strings.ToLower(strings.TrimSpace(answer))
	return slices.Contains(yes, answer), nil
}

// readLine reads a line from the terminal, unless ctx ends before.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	type typed struct {
		line string
		err  error
	}
	done := make(chan typed, 1)
	go func() {
		line, err := bufio.NewReader(in).ReadString('\n')
		done <- typed{line, err}
	}()
	select {
	case t := <-done:
		return t.line, t.err
	case <-ctx.Done(): // the reader is left: the program ends
		return "", ctx.Err()
	}
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
