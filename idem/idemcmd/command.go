package idemcmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/doctor"
	"github.com/paghooks/paghooks/idem/operator"
	"github.com/paghooks/paghooks/internal/command"
)

// NewReceiver makes one of the application's receivers, with its handlers and
// settings, on the command's pool.
type NewReceiver = func(*pgxpool.Pool) idem.Receiver

// Command is the command as part of another program or of a test. [Main] runs it
// as a program of its own.
type Command struct {
	Args           []string      // the verb, and its arguments
	Stdin          io.Reader     // read for answers, if it is a terminal
	Stdout, Stderr io.Writer     // nil discards
	Receivers      []NewReceiver // as for [Main]; nil is the prebuilt command

	// Webhooks are the webhooks that doctor asks the providers for: an
	// *asaas.WebhookWatch, for example.
	Webhooks []doctor.Webhook
}

// program is the command with its surroundings.
type program struct {
	Command
	zone       *time.Location // of times in text
	now        func() time.Time
	pause      func(context.Context, time.Duration) error
	asks       bool // a person sees Stderr, and can answer on Stdin
	redraws    bool // Stdout is a terminal
	progresses bool // Stderr is one
	width      int  // of Stdout, 0 if it is no terminal

	options
	command   *command.Command
	pool      *pgxpool.Pool
	receivers []idem.Receiver      // of the sources that are wanted, in the order of Receivers or of their names
	operators []*operator.Operator // one for each of them
	matched   []string             // the ids of the command line that events have, and others
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// The ends of a verb, beside an error.
var (
	errNothing = command.Error(command.Nothing, errors.New("no event matched"))
	errSaid    = command.Said(command.Failed)
)

// say prints to stderr.
func (p *program) say(format string, args ...any) { fmt.Fprintf(p.Stderr, format, args...) }
