package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

// options are what the arguments say.
type options struct {
	types  []zeltapay.EventType
	to     string
	id     string
	sets   []setting
	count  int
	layout zeltapaytest.Layout
	twins  bool
	sparse bool
	plain  bool
	list   bool
}

// setting is one --set.
type setting struct{ path, value string }

func (o *options) flags() *flag.FlagSet {
	flags := flag.NewFlagSet("zeltapay-fake", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // run prints the error, once
	flags.StringVar(&o.to, "to", "", "`URL` to deliver to")
	flags.Func("set", "`path=value` of a field: JSON, else a string; again for more fields", o.set)
	flags.StringVar(&o.id, "id", "", "the event's `ID`; one of its own otherwise")
	flags.IntVar(&o.count, "count", 1, "`number` of events of each type")
	flags.BoolVar(&o.twins, "twins", false, "deliver each event twice at the same moment")
	flags.BoolVar(&o.sparse, "sparse", false, "with as little in the events as Zelta Pay may send")
	flags.Func("layout", "flat or nested, the `layout` of the events (default flat)", o.setLayout)
	flags.BoolVar(&o.plain, "plain", false, "sign <timestamp>.<body>, not t=<timestamp>.<body>")
	flags.BoolVar(&o.list, "list", false, "print all event types, and deliver nothing")
	return flags
}

func help(flags *flag.FlagSet, complaints io.Writer) {
	fmt.Fprintln(complaints, "usage: ZELTAPAY_WEBHOOK_SECRET=… zeltapay-fake --to URL [flags] TYPE...")
	flags.SetOutput(complaints)
	flags.PrintDefaults()
}

// parse reads the arguments. Flags may also come after types, where package flag would not look for them.
func parse(args []string, complaints io.Writer) (*options, error) {
	o := &options{layout: zeltapaytest.Flat}
	flags := o.flags()
	for {
		switch err := flags.Parse(args); {
		case errors.Is(err, flag.ErrHelp):
			help(flags, complaints)
			return nil, err
		case err != nil:
			return nil, fmt.Errorf("%w; --help shows all flags", err)
		}
		if flags.NArg() == 0 {
			return o, o.check()
		}
		o.types = append(o.types, zeltapay.EventType(flags.Arg(0)))
		args = flags.Args()[1:]
	}
}

func (o *options) check() error {
	to, err := url.Parse(o.to)
	switch {
	case o.list:
		return nil
	case err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https":
		return fmt.Errorf("--to is %q: give the URL of your server, as http://localhost:8080/webhooks/zeltapay", o.to)
	case len(o.types) == 0:
		return errors.New("no event type is given: name one or more, --list prints them all")
	case o.count < 1:
		return fmt.Errorf("--count is %d: give 1 or more", o.count)
	case o.id != "" && o.count*len(o.types) > 1:
		return errors.New("--id is the id of one event: leave it out to deliver several")
	}
	return nil
}

func (o *options) set(text string) error {
	path, value, ok := strings.Cut(text, "=")
	switch {
	case !ok || path == "":
		return errors.New("it is no path=value, as transaction.amount=2990")
	case path == "eventId" || path == "type":
		return errors.New("it names the event itself: use --id, or another event type")
	}
	o.sets = append(o.sets, setting{path, value})
	return nil
}

func (o *options) setLayout(name string) error {
	o.layout = zeltapaytest.Layout(name)
	if o.layout != zeltapaytest.Flat && o.layout != zeltapaytest.Nested {
		return errors.New("there are flat and nested")
	}
	return nil
}
