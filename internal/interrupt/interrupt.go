// Package interrupt ends an example early but in order, so that it leaves no
// Postgres and no schema behind.
package interrupt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

var errNoReader = errors.New("nobody reads the output any more")

// Context returns a context that ends on Ctrl-C, on SIGTERM, and when a write to
// out fails, because head has read enough for example. Its cause tells which. A
// second Ctrl-C ends the program at once.
//
// Write to the writer that it returns in place of out.
func Context(out *os.File) (context.Context, io.Writer) {
	signal.Ignore(syscall.SIGPIPE) // else the write that fails ends the program
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	ctx, end := context.WithCancelCause(ctx)
	return ctx, writer{out, end}
}

// Explain returns err with why ctx ended, if it did.
func Explain(ctx context.Context, err error) error {
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return err
	case errors.Is(err, cause):
		return fmt.Errorf("stopped: %w", err)
	default:
		return fmt.Errorf("stopped: %w: %w", cause, err)
	}
}

type writer struct {
	io.Writer
	end context.CancelCauseFunc
}

func (w writer) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	switch {
	case errors.Is(err, syscall.EPIPE):
		w.end(errNoReader)
	case err != nil:
		w.end(err)
	}
	return n, err
}
