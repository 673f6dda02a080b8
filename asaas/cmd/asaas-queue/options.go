package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"

	"github.com/paghooks/paghooks/asaas"
)

// options are what the command line says.
type options struct {
	command, id        string
	sandbox, json, yes bool
	lastEvent          time.Time // zero if it is not told
	handled            string    // a file; - is stdin
	every              time.Duration
}

const usage = `usage: ASAAS_API_KEY='$aact_prod_…' asaas-queue [flags] status
       ASAAS_API_KEY='$aact_prod_…' asaas-queue [flags] remove-penalty|resume|events ID
       ASAAS_API_KEY='$aact_prod_…' ASAAS_WEBHOOK_TOKEN=… asaas-queue [flags] recover ID
The exit status is 0 if all is well, 1 if something is held up, not recovered or
not subscribed to, 2 for wrong use or no answer. Flags:`

// commands tells which commands are about one webhook.
var commands = map[string]bool{"status": false, "remove-penalty": true, "resume": true, "recover": true, "events": true}

// parse reads flags and arguments in any order.
func (o *options) parse(args []string, complaints io.Writer) error {
	flags := flag.NewFlagSet("asaas-queue", flag.ContinueOnError)
	flags.SetOutput(complaints)
	flags.BoolVar(&o.sandbox, "sandbox", false, "the account is in Asaas's sandbox")
	flags.BoolVar(&o.json, "json", false, "print JSON; recover prints a line of it per step")
	flags.BoolVar(&o.yes, "yes", false, "change without asking; needed where nobody is at a terminal")
	flags.Func("last-event", "status: when the newest event that the application acknowledged came to be,\nas `2026-11-20T10:00:00-03:00`; it tells the time left", o.setLastEvent)
	flags.StringVar(&o.handled, "handled", "", "events: compare with the event types in this `FILE`, those that the application\nhandles, as Dispatcher.Types returns them, one per line; - reads them from stdin")
	flags.DurationVar(&o.every, "every", 5*time.Second, "recover: how often to look at the queue")
	flags.Usage = func() {
		fmt.Fprintln(complaints, usage)
		flags.PrintDefaults()
	}
	var words []string
	for {
		if err := flags.Parse(args); err != nil {
			return err
		}
		if flags.NArg() == 0 {
			return o.take(words)
		}
		words, args = append(words, flags.Arg(0)), flags.Args()[1:]
	}
}

// take reads the arguments that are no flags.
func (o *options) take(words []string) error {
	if len(words) == 0 {
		return errors.New("no command is given: status shows the queues, --help all commands")
	}
	o.command = words[0]
	isAboutOne, ok := commands[o.command]
	switch {
	case !ok:
		return fmt.Errorf("there is no command %q: --help prints all", o.command)
	case isAboutOne && len(words) == 1:
		return fmt.Errorf("%s is about one webhook: give its id, status prints them", o.command)
	case isAboutOne && len(words) > 2 || !isAboutOne && len(words) > 1:
		return fmt.Errorf("%q is one argument too many: --help prints what each command takes", words[len(words)-1])
	case o.every <= 0:
		return fmt.Errorf("--every is %s: give more than 0", o.every)
	case o.handled != "" && o.command != "events":
		return errors.New("--handled is for the command events")
	case !o.lastEvent.IsZero() && o.command != "status":
		return errors.New("--last-event is for the command status")
	}
	if isAboutOne {
		o.id = words[1]
	}
	return nil
}

func (o *options) setLastEvent(text string) (err error) {
	o.lastEvent, err = asaas.DateTime(text).Time()
	if err != nil {
		return errors.New("it is no time such as 2026-11-20T10:00:00-03:00")
	}
	return nil
}
