// Package terminal asks the person who runs a command.
package terminal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Is tells whether a person is at the other end of a stream. /dev/null is a character
// device, too: there nobody answers.
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

// ErrNobody is the error of a question that nobody answers.
var ErrNobody = errors.New("nobody answered")

// Confirm asks a question, and tells whether the answer is yes. The error is
// ErrNobody if in ends first, and the cause of ctx if that does.
func Confirm(ctx context.Context, in io.Reader, out io.Writer, question string) (yes bool, err error) {
	fmt.Fprint(out, question, " [y/N] ")
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
	return answer == "y" || answer == "yes", nil
}

// readLine reads what a person types, unless ctx ends before.
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
