package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/paghooks/paghooks/internal/terminal"
)

// signaled is the cause of a context that a signal has ended.
type signaled struct{ os.Signal }

func (s signaled) Error() string { return s.String() + " signal received" }

// Main calls run with a context that SIGINT, SIGTERM and SIGHUP end, and exits with the status
// that it returns. A second signal ends the program at once.
func Main(run func(context.Context) int) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	came := make(chan os.Signal, 1)
	signal.Notify(came, signals...)
	go func() {
		s := <-came
		signal.Stop(came)
		cancel(signaled{s})
	}()
	os.Exit(run(ctx))
}

// Run executes the arguments, and returns the exit status.
func (c *Command) Run(ctx context.Context, args []string) int {
	v, words, err := c.parse(args)
	if err == nil && v != nil {
		err = v.Run(ctx, words)
	}
	if err == nil {
		return Done
	}
	status := Failed
	e, ok := errors.AsType[ended](err)
	if ok {
		status = e.status
	}
	if status == Failed && ctx.Err() != nil {
		status = statusOf(context.Cause(ctx))
	}
	if !e.said {
		c.complain(ctx, err, status)
	}
	return status
}

// statusOf returns the exit status for the cause that has ended a context.
func statusOf(cause error) int {
	if s, ok := errors.AsType[signaled](cause); ok {
		if number, ok := s.Signal.(syscall.Signal); ok {
			return 128 + int(number)
		}
	}
	return Interrupted
}

// failure is an error as JSON.
type failure struct {
	Error  string `json:"error"`
	Status int    `json:"status"`
}

func (c *Command) complain(ctx context.Context, err error, status int) {
	text := err.Error()
	if c.Explain != nil {
		text = c.Explain(err)
	}
	if ctx.Err() != nil {
		text = strings.ReplaceAll(text, context.Canceled.Error(), context.Cause(ctx).Error()) // which signal it was
	}
	if c.json {
		_ = terminal.PrintJSON(c.Err, failure{text, status}) // the exit status says it, too
		return
	}
	fmt.Fprintf(c.Err, "%s: %s\n", c.Name, terminal.Text(text))
}

// Attended returns an error where there is no terminal to ask at.
func (c *Command) Attended() error {
	if c.Asks {
		return nil
	}
	return c.nobody()
}

func (c *Command) nobody() error {
	orLook := ""
	if c.running != nil && c.running.Lookup("dry-run") != nil {
		orLook = ", or -dry-run to look only"
	}
	return Usage("nothing was changed: nobody is at a terminal to confirm it: give -yes%s", orLook)
}

// Confirm asks a question, and returns nil if a person answers yes. Any other error says that
// nothing was changed.
func (c *Command) Confirm(ctx context.Context, question string) error {
	if err := c.Attended(); err != nil {
		return err
	}
	yes, err := terminal.Confirm(ctx, c.In, c.Err, question, "y", "yes")
	switch {
	case errors.Is(err, terminal.ErrNobody):
		return c.nobody()
	case err != nil:
		return Error(statusOf(err), fmt.Errorf("nothing was changed: %w", err))
	case !yes:
		return ErrDeclined
	}
	return nil
}

// ErrDeclined is the error of a question that was not answered with yes.
var ErrDeclined = errors.New("nothing was changed: the answer was not y")
