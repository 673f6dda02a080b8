// Package queue is the command asaas-queue, for a program that has the
// application's handlers. With them it can replay what the application parked:
//
//	func main() {
//		events := asaas.NewDispatcher(os.Getenv("ASAAS_WEBHOOK_TOKEN"))
//		events.OnPaymentReceived(…)
//		command := queue.Command{Name: "shop-queue", Events: idem.NewProcessor(pool, events)}
//		command.Main() // shop-queue recover ID --replay
//	}
//
// All else is as github.com/paghooks/paghooks/asaas/cmd/asaas-queue says.
package queue

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/internal/terminal"
)

// Command is asaas-queue. Its zero value is the one without handlers.
type Command struct {
	// Name is how the program is called. Default: "asaas-queue".
	Name string

	// Events is the application's idem.Processor or idem.Inbox, with its handlers
	// registered: what is owed is read from there, and recover --replay replays
	// it. Default: nil, what is owed is read from the database of DATABASE_URL, and
	// nothing can be replayed.
	Events asaas.EventStore

	// Charges has what reconcile asks the application: Open, Says, Scope, Types and
	// Retention. Default: the zero value, and only events are compared.
	Charges asaas.Reconciliation
}

// Main runs the command with the program's arguments, and exits.
func (c *Command) Main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	context.AfterFunc(ctx, stop) // a second one ends it at once
	p := &program{
		Command: *c, getenv: os.Getenv, stateDir: stateDir(),
		in: os.Stdin, terminal: terminal.Is(os.Stdin), out: os.Stdout, complaints: os.Stderr,
	}
	os.Exit(p.run(ctx, os.Args[1:]))
}

// stateDir is the user's cache, or else a folder of this user's for the time
// being.
func stateDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return filepath.Join(os.TempDir(), fmt.Sprintf("paghooks-%d", os.Getuid()))
	}
	return filepath.Join(dir, "paghooks")
}

// program is the command with its surroundings.
type program struct {
	Command
	getenv     func(string) string
	stateDir   string
	wait       func(context.Context, time.Duration) error // nil waits in real time
	in         io.Reader
	terminal   bool // a person can answer on in
	out        io.Writer
	complaints io.Writer

	options
	client *asaas.Client
}

var (
	// errAttention is what was printed, and needs somebody.
	errAttention = errors.New("attention is needed")
	// errNotRecovered is in the errors of a queue that is held up still.
	errNotRecovered = errors.New("not recovered")
)

// run does what the command line says, and returns the exit status.
func (p *program) run(ctx context.Context, args []string) int {
	if p.Name == "" {
		p.Name = "asaas-queue"
	}
	err := p.do(ctx, args)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errAttention):
		return 1
	}
	status := 2
	if errors.Is(err, errNotRecovered) || errors.Is(err, errDeclined) || errors.Is(err, asaas.ErrTooSoon) {
		status = 1
	}
	p.complain(p.told(ctx, err), status)
	return status
}

func (p *program) do(ctx context.Context, args []string) error {
	if err := p.parse(args); err != nil {
		return p.helped(err)
	}
	if err := p.connect(); err != nil {
		return err
	}
	return commands[p.command].run(p, ctx)
}

// connect makes the client.
func (p *program) connect() error {
	environment := asaas.Production
	if p.sandbox {
		environment = asaas.Sandbox
	}
	key := p.getenv("ASAAS_API_KEY")
	if err := p.checkEnvironment(key); err != nil {
		return err
	}
	client, err := asaas.NewClient(environment, key)
	if err != nil {
		return fmt.Errorf("ASAAS_API_KEY: %w", err)
	}
	if base := p.getenv("ASAAS_BASE_URL"); base != "" {
		client.BaseURL = base
	}
	client.Poll, client.StateDir, client.Wait = p.every, p.stateDir, p.wait
	p.client = client
	return nil
}
