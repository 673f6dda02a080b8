package queue

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/paghooks/paghooks/asaas"
)

// options are what the command line says.
type options struct {
	command, id                                string
	sandbox, json, yes, force, replay, version bool
	lastEvent                                  time.Time // zero if it is not told
	handled                                    string    // a file; - is stdin
	every                                      time.Duration
	help                                       bool
	reconciling
}

func (o *options) flags() *flag.FlagSet {
	flags := flag.NewFlagSet("asaas-queue", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // run prints the error, once
	flags.BoolVar(&o.sandbox, "sandbox", false, "the account is in Asaas's sandbox")
	flags.BoolVar(&o.json, "json", false, "print JSON, also on failure; recover prints a line of it per step")
	flags.BoolVar(&o.version, "version", false, "print the version")
	flags.BoolVar(&o.yes, "yes", false, "change without asking; needed where nobody is at a terminal")
	flags.BoolVar(&o.force, "force", false, "also where Asaas counts no failures; what it counts is not documented")
	flags.BoolVar(&o.replay, "replay", false, "replay the events that are parked or wait for another delivery; needs a program with the application's handlers")
	flags.Func("last-event", "when the newest event that the application acknowledged came to be, as `2026-11-20T10:00:00-03:00`; it tells the time left", o.setLastEvent)
	flags.StringVar(&o.handled, "handled", "", "compare with the event types in this `FILE`, those that the application handles, one per line; - reads them from stdin")
	flags.DurationVar(&o.every, "every", 5*time.Second, "how often to look at the queue")
	o.reconciling.add(flags)
	return flags
}

// parse reads flags and arguments in any order.
func (o *options) parse(args []string) error {
	flags := o.flags()
	var words []string
	for {
		switch err := flags.Parse(args); {
		case errors.Is(err, flag.ErrHelp):
			o.help = true
			args = flags.Args()
			continue
		case err != nil:
			o.json = o.json || slices.Contains(args, "--json") || slices.Contains(args, "-json")
			return fmt.Errorf("%w: help prints all flags", err)
		}
		if flags.NArg() == 0 {
			break
		}
		words, args = append(words, flags.Arg(0)), flags.Args()[1:]
	}
	if len(words) > 0 && words[0] == "help" {
		o.help, words = true, words[1:]
	}
	if o.help || o.version {
		o.command = strings.Join(words[:min(len(words), 1)], "")
		return flag.ErrHelp
	}
	return errors.Join(o.take(words), o.checkFlags(flags))
}

// take reads the arguments that are no flags.
func (o *options) take(words []string) error {
	if len(words) == 0 {
		return errors.New("no command is given: status shows the queues, help all commands")
	}
	o.command = words[0]
	c, ok := commands[o.command]
	switch {
	case !ok:
		return fmt.Errorf("there is no command %q: help prints all", o.command)
	case c.isAboutOne && len(words) == 1:
		return fmt.Errorf("%s is about one webhook: give its id, status prints them", o.command)
	case c.isAboutOne && len(words) > 2 || !c.isAboutOne && len(words) > 1:
		return fmt.Errorf("%q is one argument too many: help %s prints what it takes", words[len(words)-1], o.command)
	case o.every <= 0:
		return fmt.Errorf("--every is %s: give more than 0", o.every)
	}
	if c.isAboutOne {
		o.id = words[1]
	}
	return nil
}

// checkFlags refuses flags that the command would not look at.
func (o *options) checkFlags(flags *flag.FlagSet) (err error) {
	c, ok := commands[o.command]
	if !ok {
		return nil
	}
	flags.Visit(func(f *flag.Flag) {
		if !slices.Contains(c.flags, f.Name) && !slices.Contains(everywhere, f.Name) {
			err = fmt.Errorf("--%s is for the command %s", f.Name, strings.Join(commandsWith(f.Name), " or "))
		}
	})
	return err
}

func (o *options) setLastEvent(text string) (err error) {
	o.lastEvent, err = asaas.DateTime(text).Time()
	if err != nil {
		return errors.New("it is no time such as 2026-11-20T10:00:00-03:00")
	}
	return nil
}
