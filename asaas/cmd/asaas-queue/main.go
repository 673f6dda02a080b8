// Asaas-queue shows the queues of an account's webhooks at Asaas, and gets those
// going again that Asaas has slowed down or stopped:
//
//	export ASAAS_API_KEY='$aact_prod_…' ASAAS_WEBHOOK_TOKEN='the token of the webhook'
//	go run github.com/paghooks/paghooks/asaas/cmd/asaas-queue status
//	go run github.com/paghooks/paghooks/asaas/cmd/asaas-queue recover ID
//
// The commands:
//
//	status              the webhooks, the state of their queues, and how long until Asaas deletes what waits
//	recover ID          try the receiver with an event that is rolled back; if it is sound, resume the queue or
//	                    remove its penalty, and watch until there are no failures any more
//	remove-penalty ID   have Asaas deliver at once again, without trying the receiver
//	resume ID           start a queue again that Asaas stopped, without trying the receiver
//	events ID           the event types that the webhook subscribes to
//
// The flags, before or after the command:
//
//	--sandbox           the account is in Asaas's sandbox
//	--json              print JSON; recover prints a line of it per step
//	--yes               change without asking; needed where nobody is at a terminal
//	--last-event TIME   status: when the newest event that the application acknowledged came to be, its dateCreated:
//	                    2026-11-20T10:00:00-03:00, or without a zone for Brasília. It tells the time left
//	--handled FILE      events: compare with the types that the application handles, those that
//	                    asaas.Dispatcher.Types returns, one per line or as fmt prints them; - reads them from stdin
//	--every DURATION    recover: how often to look at the queue; 5s by default
//
// Keys are read from the environment, so that they are in no shell's history and
// no list of processes: ASAAS_API_KEY, in single quotes because of its $, and for
// recover ASAAS_WEBHOOK_TOKEN. ASAAS_BASE_URL takes the place of Asaas's address,
// for a fake Asaas of package asaastest for example.
//
// The time left counts from the creation of an event, which package idem does not
// keep once an event is done: hence --last-event. Asaas keeps events for 14 days.
//
// The exit status is 0 if all is well; 1 if a queue is held up, was not recovered,
// or if events are handled that are not subscribed to; 2 if asaas-queue was used
// in a wrong way, or Asaas did not answer as it should. Of go run it is 1 for both.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/paghooks/paghooks/asaas"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	p := &program{getenv: os.Getenv, in: os.Stdin, terminal: isTerminal(os.Stdin), out: os.Stdout, complaints: os.Stderr}
	status := p.run(ctx, os.Args[1:])
	stop()
	os.Exit(status)
}

// program is the command with its surroundings.
type program struct {
	getenv     func(string) string
	in         io.Reader
	terminal   bool // a person can answer on in
	out        io.Writer
	complaints io.Writer

	options
	client *asaas.Client
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

var (
	// errAttention is what was printed, and needs somebody.
	errAttention = errors.New("attention is needed")
	// errNotRecovered is in the errors of a queue that is held up still.
	errNotRecovered = errors.New("not recovered")
)

// run does what the command line says, and returns the exit status.
func (p *program) run(ctx context.Context, args []string) int {
	switch err := p.do(ctx, args); {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errAttention):
		return 1
	case errors.Is(err, errNotRecovered), errors.Is(err, errDeclined):
		fmt.Fprintln(p.complaints, "asaas-queue:", err)
		return 1
	default:
		fmt.Fprintln(p.complaints, "asaas-queue:", err)
		return 2
	}
}

func (p *program) do(ctx context.Context, args []string) error {
	if err := p.parse(args, p.complaints); err != nil {
		return err
	}
	if err := p.connect(); err != nil {
		return err
	}
	switch p.command {
	case "status":
		return p.status(ctx)
	case "events":
		return p.events(ctx)
	}
	return p.change(ctx)
}

// connect makes the client.
func (p *program) connect() error {
	environment := asaas.Production
	if p.sandbox {
		environment = asaas.Sandbox
	}
	client, err := asaas.NewClient(environment, p.getenv("ASAAS_API_KEY"))
	if err != nil {
		return fmt.Errorf("ASAAS_API_KEY: %w", err)
	}
	if base := p.getenv("ASAAS_BASE_URL"); base != "" {
		client.BaseURL = base
	}
	client.Poll = p.every
	p.client = client
	return nil
}
