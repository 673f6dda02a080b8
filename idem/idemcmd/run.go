package idemcmd

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paghooks/paghooks/internal/terminal"
)

// Main runs the command with the program's arguments, and exits. receivers make
// the application's receivers, one for each source. Without any, the command works
// on the stored events of every source, and refuses replay.
func Main(receivers ...NewReceiver) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop) // a second one ends it at once
	c := &Command{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Receivers: receivers}
	os.Exit(c.Run(ctx))
}

// Run runs the command until ctx ends, and returns the exit status.
func (c *Command) Run(ctx context.Context) int {
	p := &program{
		Command: *c, zone: time.Local, now: time.Now, pause: pause,
		asks: terminal.Is(c.Stdin) && terminal.Is(c.Stderr), redraws: terminal.Is(c.Stdout), progresses: terminal.Is(c.Stderr),
	}
	for _, w := range []*io.Writer{&p.Stdout, &p.Stderr} {
		if *w == nil {
			*w = io.Discard
		}
	}
	return p.run(ctx)
}

func (p *program) run(ctx context.Context) int {
	err := p.do(ctx)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitDone
	case errors.Is(err, errSaid):
		return exitFailed
	}
	p.complain(ctx, err)
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if errors.Is(err, errNothing) {
		return exitNothing
	}
	return exitFailed
}

func (p *program) do(ctx context.Context) error {
	v, err := p.parse(p.Args)
	if err != nil {
		return err
	}
	if p.print { // which needs no database
		return p.printMigrations()
	}
	if err := p.open(ctx, v); err != nil {
		return err
	}
	defer p.pool.Close()
	return v.run(p, ctx)
}

// hints are what to do about errors of Postgres that have one usual cause.
var hints = map[string]string{
	"42501": "idem doctor says which rights are missing",
	"42P05": pooled, // duplicate prepared statement
	"26000": pooled, // no such prepared statement
}

const pooled = "a pooler is between: add default_query_exec_mode=exec to the database's address"

// complain prints an error for an operator, without what is called how in the
// library.
func (p *program) complain(ctx context.Context, err error) {
	text := err.Error()
	for _, name := range []string{"idem: ", "doctor: ", "operator: "} {
		text = strings.ReplaceAll(text, name, "")
	}
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && hints[pgErr.Code] != "" {
		text += ": " + hints[pgErr.Code]
	}
	if ctx.Err() != nil {
		text = strings.ReplaceAll(text, context.Canceled.Error(), context.Cause(ctx).Error()) // which signal it was
	}
	p.say("idem: %s\n", printable([]byte(text)))
}
