// Package command is the grammar of this project's commands, idem, asaas-queue, asaas-fake
// and zeltapay-fake: a verb, then flags and words in any order.
//
//   - The flags that every verb has may also stand before the verb.
//   - -flag and --flag are the same; after -- all are words.
//   - help and -h print to stdout, with status 0. An error is one line on stderr.
//   - -json prints one object per line to stdout, with names in snake_case and times in UTC. An
//     error is an object on stderr.
//   - A verb that changes something asks first. Without a terminal it changes nothing without -yes.
//   - The exit statuses are those of [Statuses].
package command

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/paghooks/paghooks/internal/lang"
	"github.com/paghooks/paghooks/internal/terminal"
)

// Command is a program of several verbs. Its streams must be set, see [Command.Use].
type Command struct {
	Name      string
	Verbs     []Verb
	Flags     []Flags  // that every verb has, and that may stand before the verb
	Variables []string // of the environment, in the order of the help: "NAME description"

	// Explain returns the text of an error for a person; nil is the error's own.
	Explain func(error) string

	In       io.Reader
	Out, Err io.Writer
	Asks     bool // a person sees Err, and can answer on In

	json    bool // as -json says
	running *flag.FlagSet
}

// Verb is one of a command's verbs.
type Verb struct {
	Name      string
	Words     string // that follow it, as in the usage: "ID", "[ID...]", "" for none
	Needs     string // the error if they are missing: "an id: status prints them"; "" where they may be
	About     string // a line
	More      string // paragraphs, in lines
	Flags     []Flags
	Variables []string // the names of those that it reads
	Run       func(ctx context.Context, words []string) error
}

// Flags adds flags to a set.
type Flags = func(*flag.FlagSet)

// Use sets the streams. A nil writer discards.
func (c *Command) Use(in io.Reader, out, err io.Writer) {
	c.In, c.Out, c.Err = in, out, err
	c.Asks = terminal.Is(in) && terminal.Is(err)
	for _, w := range []*io.Writer{&c.Out, &c.Err} {
		if *w == nil {
			*w = io.Discard
		}
	}
}

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

// signaled is the cause of a context that a signal has ended.
type signaled struct{ os.Signal }

func (s signaled) Error() string { return s.String() + " signal received" }

// Run executes the arguments, and returns the exit status.
func (c *Command) Run(ctx context.Context, args []string) int {
	v, words, err := c.parse(args)
	if err == nil && v != nil {
		err = v.Run(ctx, words)
	}
	if err == nil {
		return Done
	}
	status, said := StatusOf(err)
	if status == Failed && ctx.Err() != nil {
		status = statusOf(context.Cause(ctx))
	}
	if !said {
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

// Confirm asks a question, and returns nil if a person answers yes. Any other error says that
// nothing was changed.
func (c *Command) Confirm(ctx context.Context, question string) error {
	if err := c.Attended(); err != nil {
		return err
	}
	fmt.Fprintf(c.Err, "%s [y/N] ", question)
	answer, err := readLine(ctx, c.In)
	switch answer = strings.ToLower(strings.TrimSpace(answer)); {
	case ctx.Err() != nil:
		fmt.Fprintln(c.Err)
		return Error(statusOf(context.Cause(ctx)), fmt.Errorf("nothing was changed: %w", context.Cause(ctx)))
	case err != nil && answer == "":
		fmt.Fprintln(c.Err)
		return c.nobody()
	case answer != "y" && answer != "yes":
		return ErrDeclined
	}
	return nil
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

// ErrDeclined is the error of a question that was not answered with yes.
var ErrDeclined = errors.New("nothing was changed: the answer was not y")

// The exit statuses of every command.
const (
	Done        = 0
	Failed      = 1
	Misused     = 2
	Nothing     = 3
	Attention   = 4
	Interrupted = 130 // 128 and the signal's number, which others than Ctrl-C have, too
)

// Statuses are the exit statuses, as help and documents have them.
var Statuses = []struct {
	Status  int
	Meaning string
}{
	{Done, "done"},
	{Failed, "not done, or not all of it: stderr says why, and what was changed"},
	{Misused, "used in a wrong way: nothing was done"},
	{Nothing, "nothing matched: nothing was done"},
	{Attention, "done, and what was found needs somebody"},
	{Interrupted, "ended by Ctrl-C before it was done; 143 by SIGTERM, 129 by SIGHUP"},
}

// Error returns an error that ends the command with a status.
func Error(status int, err error) error { return ended{err, status, false} }

// Usage returns an error of the command line.
func Usage(format string, args ...any) error {
	return ended{fmt.Errorf(format, args...), Misused, false}
}

// Said returns an error that ends the command with a status, after all was
// printed.
func Said(status int) error {
	return ended{errors.New("what is wrong is said already"), status, true}
}

// ended is an error that ends a command with a status. Its text is printed unless it was said
// already.
type ended struct {
	error
	status int
	said   bool
}

func (e ended) Unwrap() error { return e.error }

// StatusOf returns the exit status that an error ends a command with, and whether all was printed already.
func StatusOf(err error) (status int, said bool) {
	if err == nil {
		return Done, true
	}
	if e, ok := errors.AsType[ended](err); ok {
		return e.status, e.said
	}
	return Failed, false
}

// Text formats a text for people, as fmt.Sprintf does; %s is the verb of every argument. Of an integer it writes
// 10,000, and of a duration its two largest units, 3 d 4 h.
func Text(format string, args ...any) string {
	return lang.Catalog(nil).Say(lang.English, lang.Text(format), args...)
}

// Number writes an integer for people: 10,000.
func Number(n int64) string { return lang.English.Number(n) }
