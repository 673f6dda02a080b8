// Package queue is the command asaas-queue, for a program that has the
// application's handlers. With them it can replay the events that the application parked:
//
//	func main() {
//		events := asaas.NewDispatcher(os.Getenv("ASAAS_WEBHOOK_TOKEN"))
//		events.OnPaymentReceived(…)
//		command := queue.Command{Name: "shop-queue", Events: idem.NewProcessor(pool, events)}
//		command.Main() // shop-queue recover ID -replay
//	}
//
// The verbs and flags are those of github.com/paghooks/paghooks/asaas/cmd/asaas-queue.
package queue

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/asaas/webhook"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// Command is asaas-queue. Its zero value is the one without handlers.
type Command struct {
	// Name is the name of the program. Default: "asaas-queue".
	Name string

	// Events is the application's idem.Processor or idem.Inbox, with its handlers
	// registered: owed events are read from there, and recover -replay replays
	// them. Default: nil, owed events are read from the database of DATABASE_URL, and
	// nothing can be replayed.
	Events asaas.EventStore

	// Webhook holds the webhook's settings as the application wants them, for plan and
	// apply; flags override them. Default: the zero value, the flags say it all.
	Webhook webhook.Settings

	// Dispatcher has the handlers, for plan and apply: their event types are those that the
	// webhook is to get. Default: nil, -handled names them.
	Dispatcher *asaas.Dispatcher

	// Unmatched has the application's condition for unmatched. Default: nil, -known says it.
	Unmatched *charges.Unmatched
}

// program is the command with its surroundings.
type program struct {
	Command
	getenv     func(string) string
	wait       func(context.Context, time.Duration) error // nil waits in real time
	zone       *time.Location                             // of times in text
	in         io.Reader
	out        io.Writer
	complaints io.Writer
	asks       bool // a person sees complaints, and can answer on in
	width      int  // of the terminal that out is, 0 if it is none

	options
	command *command.Command
	client  *asaas.Client
}

var (
	// errAttention ends a command that has printed something that needs a person.
	errAttention = command.Said(command.Attention)
	// errNotRecovered is in the errors of a queue that is still held up.
	errNotRecovered = errors.New("not recovered")
)

// Main runs the command with the program's arguments, and exits.
func (c *Command) Main() {
	p := &program{
		Command: *c, getenv: os.Getenv, zone: time.Local,
		in: os.Stdin, out: os.Stdout, complaints: os.Stderr,
		asks: terminal.Is(os.Stdin) && terminal.Is(os.Stderr), width: terminal.Width(os.Stdout),
	}
	command.Main(func(ctx context.Context) int { return p.run(ctx, os.Args[1:]) })
}

// run executes the command line, and returns the exit status.
func (p *program) run(ctx context.Context, args []string) int {
	p.command = p.grammar(ctx)
	return p.command.Run(ctx, args)
}

// grammar returns the verbs, and the flags of each.
func (p *program) grammar(ctx context.Context) *command.Command {
	c := &command.Command{
		Name: cmp.Or(p.Name, "asaas-queue"), Variables: variables, Explain: func(err error) string { return p.explain(ctx, err) },
		In: p.in, Out: p.out, Err: p.complaints, Asks: p.asks, Width: p.width,
	}
	c.Flags = []command.Flags{c.JSON(&p.json, "print one JSON object per line"), p.sandboxed}
	for n := range verbs {
		c.Verbs = append(c.Verbs, p.bind(&verbs[n]))
	}
	return c
}

// bind returns a verb of this program.
func (p *program) bind(v *action) command.Verb {
	c := command.Verb{Name: v.name, About: v.about, More: v.more, Words: v.words, Needs: v.needs, Variables: v.env}
	if !v.offline {
		c.Variables = append([]string{"ASAAS_API_KEY", "ASAAS_BASE_URL"}, v.env...)
	}
	if v.isAboutOne {
		c.Words, c.Needs = "ID", "the id of one webhook: status prints them"
	}
	c.Flags = []command.Flags{func(f *flag.FlagSet) {
		for _, name := range v.flags {
			p.add(f, name)
		}
	}}
	c.Run = func(ctx context.Context, words []string) error {
		p.verb, p.id = &v.verb, strings.Join(words, "")
		if !v.offline {
			if err := p.connect(); err != nil {
				return err
			}
		}
		err := v.run(p, ctx)
		if e, ok := errors.AsType[*asaas.APIError](err); ok && e.Status == http.StatusNotFound && v.isAboutOne {
			return command.Error(command.Nothing, err)
		}
		return err
	}
	return c
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
		return command.Usage("ASAAS_API_KEY: %w", err)
	}
	if base := p.getenv("ASAAS_BASE_URL"); base != "" {
		if u, err := url.Parse(base); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return command.Usage("ASAAS_BASE_URL is not the API's address: give one such as https://api.asaas.com/v3")
		}
		client.BaseURL = base
	}
	client.Poll, client.Wait = p.every, p.wait
	p.client = client
	return nil
}

// explain returns the text of an error for an operator: the remedy, without the names of
// functions in the library.
func (p *program) explain(ctx context.Context, err error) string {
	text := err.Error()
	if e, ok := errors.AsType[*asaas.APIError](err); ok {
		text = strings.Replace(text, e.Op+"("+e.WebhookID+"): ", "", 1)
		text = strings.Replace(text, e.Op+": ", "", 1)
	}
	for _, name := range []string{"asaas/charges: ", "asaas: ", "Recover(" + p.id + "): ", "webhook: NewPlan: ", "webhook: Apply: ", "webhook: RotateToken: ", "idem: "} {
		text = strings.Replace(text, name, "", 1)
	}
	if ctx.Err() != nil && p.verb != nil && !slices.Contains(p.verb.flags, "yes") { // it only reads
		text = "nothing was changed: " + text
	}
	return text
}

// changing does a change, and notes its fate in its error.
func changing(what string, do func() error) error {
	err := do()
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*asaas.APIError](err); ok && e.Outcome == asaas.CallUnknown {
		return fmt.Errorf("it is not known whether %s: %w", what, err)
	}
	return fmt.Errorf("nothing was changed: %w", err)
}

// checkEnvironment returns an error for a key that needs the other -sandbox.
func (p *program) checkEnvironment(key string) error {
	switch {
	case !p.sandbox && strings.HasPrefix(key, "$aact_hmlg_"):
		return command.Usage("ASAAS_API_KEY is a key of the sandbox: give -sandbox, or set a key of production, which begins with $aact_prod_")
	case p.sandbox && strings.HasPrefix(key, "$aact_prod_"):
		return command.Usage("ASAAS_API_KEY is a key of production: leave -sandbox out, or set a key of the sandbox, which begins with $aact_hmlg_")
	}
	return nil
}

// printLine prints a value as a line of JSON.
func (p *program) printLine(value any) error { return terminal.PrintJSON(p.out, value) }

// advise prints the next step.
func (p *program) advise(next string) error {
	if p.json {
		return p.printLine(advice{p.id, next})
	}
	_, err := fmt.Fprintln(p.out, command.Text("next: %s", next))
	return err
}

// advice is a next step, as JSON.
type advice struct {
	ID   string `json:"id"`
	Next string `json:"next"`
}
