package idemcmd

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/doctor"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// Main runs the command with the program's arguments, and exits. receivers make
// the application's receivers, one for each source. Without any, the command works
// on the stored events of every source, and refuses replay.
func Main(receivers ...NewReceiver) {
	c := &Command{Args: os.Args[1:], Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Receivers: receivers}
	command.Main(c.Run)
}

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
	// *webhook.Watch, for example.
	Webhooks []doctor.Webhook
}

// Run runs the command until ctx ends, and returns the exit status.
func (c *Command) Run(ctx context.Context) int { return newProgram(*c).run(ctx) }

// newProgram returns a command with its surroundings.
func newProgram(c Command) *program {
	p := &program{Command: c, zone: time.Local, now: time.Now, patience: patience, progresses: terminal.Is(c.Stderr)}
	p.command = p.grammar()
	p.command.Use(c.Stdin, c.Stdout, c.Stderr)
	p.Stdout, p.Stderr = p.command.Out, p.command.Err
	return p
}

// program is the command with its surroundings.
type program struct {
	Command
	zone       *time.Location // of times in text
	now        func() time.Time
	patience   time.Duration // with a database, until it has answered what is asked first
	progresses bool          // Stderr is a terminal

	options
	command   *command.Command
	pool      *pgxpool.Pool
	unreached error                // of a database that does not answer
	receivers []idem.Receiver      // of the sources that are wanted, in the order of Receivers or of their names
	operators []*operator.Operator // one for each of them
	matched   []string             // the ids of the command line that events have, and others
}

func (p *program) run(ctx context.Context) int { return p.command.Run(ctx, p.Args) }

// grammar returns the verbs, and the flags of each.
func (p *program) grammar() *command.Command {
	c := &command.Command{Name: "idem", Variables: variables, Explain: explain}
	c.Flags = []command.Flags{c.JSON(&p.json, "print one JSON object per line"), func(f *flag.FlagSet) {
		f.StringVar(&p.database, "database", "", "`URL` of the database; default: DATABASE_URL, or PGHOST, PGUSER and the like, which other users of this machine cannot see")
	}}
	for n := range verbs {
		c.Verbs = append(c.Verbs, p.verb(&verbs[n]))
	}
	return c
}

// verb returns a verb of this program.
func (p *program) verb(v *verb) command.Verb {
	c := command.Verb{Name: v.name, Words: v.words, About: v.about, More: v.more, Variables: append([]string{"DATABASE_URL", "PGHOST"}, v.variables...)}
	for _, add := range v.flags {
		c.Flags = append(c.Flags, func(f *flag.FlagSet) { add(&p.options, f) })
	}
	c.Run = func(ctx context.Context, words []string) error {
		p.words = words
		if err := v.check(p); err != nil {
			return err
		}
		switch {
		case p.print: // which needs no database
			return p.printMigrations()
		case v.alone:
			return v.run(p, ctx)
		}
		switch err := p.open(ctx, v); {
		case err == nil:
			defer closePool(p.pool)
		case v.name == "doctor" && (errors.Is(err, errNoAnswer) || errors.Is(err, errRefused) || errors.Is(err, errFull)):
			p.unreached = err
		default:
			return err
		}
		return v.run(p, ctx)
	}
	return c
}

// variables are those of the environment.
var variables = []string{
	"DATABASE_URL the database's address, where -database does not say it",
	"PGHOST and PGPORT, PGUSER, PGPASSWORD, PGDATABASE, PGSSLMODE, PGOPTIONS and the like: what neither says, as Postgres's own programs read it",
	relaySecrets + " the relay's secret, for readmit; several with a space between",
	healthURL + " the address of each program's health, for doctor, where -health does not say it; several with a space between",
}

// hints are remedies for errors of Postgres that have one usual cause, by their codes.
var hints = map[string]string{
	"08P01": "the pooler refuses this parameter: remove it from the address, and set it for the role, as docs/postgres.md shows",
	"25006": "it is a replica, or read-only by its settings: give the address of the primary; idem doctor says more",
	"42501": "idem doctor says which rights are missing",
	"42703": altered, // no such column
	"42P01": altered, // no such table
	"42P05": pooled,  // duplicate prepared statement
	"26000": pooled,  // no such prepared statement
}

const altered = "idem doctor says what the tables lack; those of an older version get it by idem migrate"

const pooled = "a pooler is between: add default_query_exec_mode=exec to the database's address"

// explain returns an error's text for an operator, without the names of functions in the
// library.
func explain(err error) string {
	text := err.Error()
	for _, name := range []string{"idem: ", "doctor: ", "operator: ", "relay: "} {
		text = strings.ReplaceAll(text, name, "")
	}
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok && hints[pgErr.Code] != "" {
		text += ": " + hints[pgErr.Code]
	}
	return text
}

// The ends of a verb, beside an error.
var (
	errNothing = command.Error(command.Nothing, errors.New("no event matched"))
	errSaid    = command.Said(command.Failed)
)

// say prints to stderr.
func (p *program) say(format string, args ...any) { fmt.Fprintf(p.Stderr, format, args...) }
