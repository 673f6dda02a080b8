// Package queue is the command asaas-queue, for a program that has the
// application's handlers. With them it can replay the events that the application parked:
//
//	func main() {
//		events := asaas.NewDispatcher(os.Getenv("ASAAS_WEBHOOK_TOKEN"))
//		events.OnPaymentReceived(…)
//		command := queue.Command{Name: "shop-queue", Events: idem.NewInbox(pool, events)}
//		command.Main() // shop-queue recover ID -replay
//	}
//
// The verbs and flags are those of github.com/paghooks/paghooks/asaas/cmd/asaas-queue.
package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"os"
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

	// Events is the application's idem.Inbox, with its handlers
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

	// Accounts lists the accounts of a platform, as asaas.Clients does: the verbs go over all of them. A file of
	// -accounts overrides it. Default: nil, the account of ASAAS_API_KEY.
	Accounts iter.Seq2[string, *asaas.Client]

	// WebhookOf returns the settings of an account's webhook, where there are several accounts. Default: nil, Webhook
	// is that of each, with {account} in its URL for the account's name.
	WebhookOf func(account string) webhook.Settings

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

	options
	listed    listed
	command   *command.Command
	client    *asaas.Client
	unprinted error // of the first line that could not be printed
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
		asks: terminal.Is(os.Stdin) && terminal.Is(os.Stderr),
	}
	command.Main(func(ctx context.Context) int { return p.run(ctx, os.Args[1:]) })
}

// run executes the command line, and returns the exit status.
func (p *program) run(ctx context.Context, args []string) int {
	p.Name = cmp.Or(p.Name, "asaas-queue")
	p.command = &command.Command{
		Name: p.Name, Verbs: p.verbs(), Variables: variables, Explain: p.explain,
		In: p.in, Out: p.out, Err: p.complaints, Asks: p.asks,
	}
	p.command.Flags = []command.Flags{p.command.JSON(&p.json, "print one JSON object per line"), p.named("sandbox")}
	return p.command.Run(ctx, args)
}

// connect makes the client.
func (p *program) connect() error {
	environment, as := asaas.Production, "without -sandbox"
	if p.sandbox {
		environment, as = asaas.Sandbox, "with -sandbox"
	}
	client, err := asaas.NewClient(environment, p.getenv("ASAAS_API_KEY"))
	if err != nil {
		return command.Usage("ASAAS_API_KEY, %s: %w", as, err)
	}
	return p.use(client)
}

// use has the command call the API with a client.
func (p *program) use(client *asaas.Client) error {
	if base := p.getenv("ASAAS_BASE_URL"); base != "" {
		if u, err := url.Parse(base); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return command.Usage("ASAAS_BASE_URL is not the API's address: give one such as https://api.asaas.com/v3")
		}
		client.BaseURL = base
	}
	client.Poll = p.every
	if p.wait != nil {
		client.Wait = p.wait
	}
	p.client = client
	return nil
}

// explain returns the text of an error for an operator: the remedy, without the names of
// functions in the library.
func (p *program) explain(err error) string {
	text := err.Error()
	names := []string{"asaas/charges: ", "asaas: ", "Recover(" + p.id + "): ", "webhook: NewPlan: ", "webhook: Apply: ", "webhook: RotateToken: ", "idem: "}
	if e, ok := errors.AsType[*asaas.APIError](err); ok {
		names = append(names, e.Op+"("+e.WebhookID+"): ", e.Op+": ")
	}
	for _, name := range names {
		text = strings.Replace(text, name, "", 1)
	}
	return text
}

// typed returns a command as it is to be typed next.
func (p *program) typed(verb string, words ...string) string {
	line := []string{p.Name, verb}
	if p.sandbox {
		line = append(line, "-sandbox")
	}
	line = append(line, p.listed.flags()...)
	return terminal.Clean(strings.Join(append(line, words...), " "))
}

// print prints a line. Where that fails, the command goes on, and has failed in the end.
func (p *program) print(line ...any) {
	_, err := fmt.Fprintln(p.out, line...)
	p.unprinted = cmp.Or(p.unprinted, err)
}

// printJSON prints a value as a line of JSON.
func (p *program) printJSON(value any) {
	if p.listed.isAny {
		value = p.listed.named(value)
	}
	p.unprinted = cmp.Or(p.unprinted, terminal.PrintJSON(p.out, value))
}

func (p *program) printTable(t *terminal.Table) {
	p.unprinted = cmp.Or(p.unprinted, t.Print(p.out, 0))
}

// tell prints a value, as JSON or as its String.
func (p *program) tell(value fmt.Stringer) {
	if p.json {
		p.printJSON(value)
		return
	}
	p.print(terminal.Text(value.String()))
}

// advice is a next step.
type advice struct {
	ID   string `json:"id,omitempty"` // of the webhook that it is about
	Next string `json:"next"`
}

func (a advice) String() string { return "next: " + a.Next }
