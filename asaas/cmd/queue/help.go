package queue

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
)

// command is what asaas-queue can do.
type command struct {
	isAboutOne bool
	about      string // a line
	more       string
	flags      []string
	env        []string
	run        func(*program, context.Context) error
}

// everywhere are the flags of all commands.
var everywhere = []string{"sandbox", "json", "version"}

var (
	names    = []string{"status", "recover", "remove-penalty", "resume", "events", "reconcile"}
	commands map[string]command
)

func init() { // or it would refer to itself, through help
	commands = map[string]command{
		"status": {
			about: "the webhooks, the state of their queues, and what the application owes",
			more: "A queue is ok, penalized (Asaas waits longer and longer between attempts), or stopped (after 15\n" +
				"failures in a row). For a webhook that is disabled Asaas makes no events, and none comes later.",
			flags: []string{"last-event"}, env: []string{"DATABASE_URL"},
			run: (*program).status,
		},
		"recover": {
			isAboutOne: true,
			about:      "try the receiver, get the queue going again, and watch it",
			more: "Sends a made-up event of each type that the webhook subscribes to. The application's handlers run for\n" +
				"real, and what they wrote is rolled back: HTTP requests and e-mails that they send are sent, unless\n" +
				"they ask idem.IsDryRun first. If all that it handles pass, it resumes the queue or removes its penalty, and watches until Asaas counts no\n" +
				"failures any more. It ends with what the application owes.",
			flags: []string{"yes", "every", "replay"}, env: []string{"ASAAS_WEBHOOK_TOKEN", "DATABASE_URL", "XDG_CACHE_HOME"},
			run: (*program).change,
		},
		"remove-penalty": {
			isAboutOne: true,
			about:      "have Asaas deliver at once again, without trying the receiver",
			more: "The next failure leads to a penalty again. Once a minute at most, for all who use this machine's\n" +
				"account: Asaas limits it strictly, without saying how.",
			flags: []string{"yes", "force"}, env: []string{"DATABASE_URL", "XDG_CACHE_HOME"},
			run: (*program).change,
		},
		"resume": {
			isAboutOne: true,
			about:      "start a queue again that Asaas stopped, without trying the receiver",
			more:       "What has waited is delivered in its order.",
			flags:      []string{"yes"}, env: []string{"DATABASE_URL"},
			run: (*program).change,
		},
		"events": {
			isAboutOne: true,
			about:      "the event types that the webhook subscribes to",
			flags:      []string{"handled"},
			run:        (*program).events,
		},
		"reconcile": {
			isAboutOne: true,
			about:      "name the charges of which an event never came; it changes nothing",
			more: "For after a queue that was stopped for more than 14 days, or a webhook that was disabled. Compares what\n" +
				"Asaas says since a time with the events that are stored. Its calls come out of the account's own quota.",
			flags: []string{"since", "until", "calls", "resume-at"}, env: []string{"DATABASE_URL"},
			run: (*program).reconcile,
		},
	}
}

// variables are what the environment may say, beside what it says to any Go program.
var variables = map[string]string{
	"ASAAS_API_KEY":       "the API key, in single quotes because of its $",
	"ASAAS_BASE_URL":      "the API's address, for a fake Asaas for example",
	"ASAAS_WEBHOOK_TOKEN": "the webhook's token, as the application verifies with it",
	"DATABASE_URL":        "the application's database, to tell what is owed",
	"XDG_CACHE_HOME":      "where removals of penalties are noted",
}

func commandsWith(flagName string) (out []string) {
	for _, name := range names {
		if slices.Contains(commands[name].flags, flagName) {
			out = append(out, name)
		}
	}
	return out
}

// helped prints help or the version where that was asked for.
func (p *program) helped(err error) error {
	if !errors.Is(err, flag.ErrHelp) {
		return err
	}
	c, ok := commands[p.command]
	switch {
	case p.version:
		fmt.Fprintln(p.out, p.Name, version())
	case ok:
		p.helpOn(c)
	case p.command != "":
		return fmt.Errorf("there is no command %q: help prints all", p.command)
	default:
		p.helpAll()
	}
	return err
}

func (p *program) helpAll() {
	fmt.Fprintf(p.out, "usage: %s [flags] COMMAND [ID]\n\nCommands:\n", p.Name)
	for _, name := range names {
		fmt.Fprintf(p.out, "  %-15s %s\n", name, commands[name].about)
	}
	fmt.Fprintf(p.out, "  %-15s all about a command\n\nFlags of all commands:\n", "help COMMAND")
	p.printFlags(everywhere)
	fmt.Fprintln(p.out, "\nEnvironment:")
	p.printVariables([]string{"ASAAS_API_KEY", "ASAAS_BASE_URL", "ASAAS_WEBHOOK_TOKEN", "DATABASE_URL", "XDG_CACHE_HOME"})
	fmt.Fprintln(p.out, "  HTTPS_PROXY, HTTP_PROXY, NO_PROXY, SSL_CERT_FILE, SSL_CERT_DIR as of any Go program")
	fmt.Fprintln(p.out, "\nThe exit status is 0 if all is well, 1 if something is held up, disabled, owed, not recovered\n"+
		"or not subscribed to, 2 for wrong use or no answer.")
}

func (p *program) helpOn(c command) {
	id := ""
	if c.isAboutOne {
		id = " ID"
	}
	fmt.Fprintf(p.out, "usage: %s [flags] %s%s\n\n%s.\n", p.Name, p.command, id, strings.ToUpper(c.about[:1])+c.about[1:])
	if c.more != "" {
		fmt.Fprintln(p.out, c.more)
	}
	fmt.Fprintln(p.out, "\nFlags:")
	p.printFlags(append(slices.Clone(c.flags), everywhere...))
	fmt.Fprintln(p.out, "\nEnvironment:")
	p.printVariables(append([]string{"ASAAS_API_KEY", "ASAAS_BASE_URL"}, c.env...))
}

func (p *program) printFlags(which []string) {
	all := new(options).flags()
	some := flag.NewFlagSet("", flag.ContinueOnError)
	some.SetOutput(p.out)
	for _, name := range which {
		f := all.Lookup(name)
		some.Var(f.Value, f.Name, f.Usage)
	}
	some.PrintDefaults()
}

func (p *program) printVariables(which []string) {
	for _, name := range which {
		fmt.Fprintf(p.out, "  %-19s %s\n", name, variables[name])
	}
}

// version is that of the module, also where another program has it built in.
func version() string {
	const modulePath = "github.com/paghooks/paghooks"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == modulePath && m.Version != "" {
				return m.Version
			}
		}
	}
	return "(devel)"
}
