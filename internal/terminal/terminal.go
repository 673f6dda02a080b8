// Package terminal prints at a terminal, and asks the person there.
package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
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
