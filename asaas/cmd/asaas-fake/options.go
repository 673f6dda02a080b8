package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

// options are what the command line says.
type options struct {
	to, id, key         string
	count               int
	twins, sparse, list bool
	sets                []setting
	types               []asaas.EventType
}

// setting is one --set.
type setting struct{ path, value string }

// parse reads flags and event types in any order.
func parse(args []string, complaints io.Writer) (*options, error) {
	o := new(options)
	flags := flag.NewFlagSet("asaas-fake", flag.ContinueOnError)
	flags.SetOutput(complaints)
	flags.StringVar(&o.to, "to", "", "deliver to this `URL`, as http://localhost:8080/webhooks/asaas")
	flags.Func("set", "give a field a value, as `payment.value=10.5`: JSON, else a string; again for more fields", o.addSet)
	flags.StringVar(&o.id, "id", "", "the event's `ID`; one of its own otherwise")
	flags.StringVar(&o.key, "key", "", "the `ID` of what the event is about, as payment.id")
	flags.IntVar(&o.count, "count", 1, "make `N` events of each type")
	flags.BoolVar(&o.twins, "twins", false, "deliver each event twice at the same moment")
	flags.BoolVar(&o.sparse, "sparse", false, "make events with as little in them as Asaas may send")
	flags.BoolVar(&o.list, "list", false, "print all event types, and deliver nothing")
	flags.Usage = func() {
		fmt.Fprintln(complaints, "usage: ASAAS_WEBHOOK_TOKEN=… asaas-fake --to URL [flags] TYPE...")
		flags.PrintDefaults()
	}
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		if flags.NArg() == 0 {
			return o, o.check()
		}
		o.types = append(o.types, asaas.EventType(flags.Arg(0)))
		args = flags.Args()[1:]
	}
}

func (o *options) addSet(text string) error {
	path, value, ok := strings.Cut(text, "=")
	if !ok || path == "" {
		return errors.New("it is no path=value")
	}
	o.sets = append(o.sets, setting{path, value})
	return nil
}

func (o *options) check() error {
	if o.list {
		return nil
	}
	u, err := url.Parse(o.to)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("--to is %q: give the URL of your server, as http://localhost:8080/webhooks/asaas", o.to)
	case len(o.types) == 0:
		return errors.New("no event type is given: name one or more, --list prints them all")
	case o.count < 1:
		return fmt.Errorf("--count is %d: give 1 or more", o.count)
	case o.id != "" && (o.count > 1 || len(o.types) > 1):
		return errors.New("--id is the id of one event: give one event type, and no --count")
	}
	for _, eventType := range o.types {
		if !slices.Contains(asaastest.Types(), eventType) {
			return fmt.Errorf("there is no event type %q: --list prints them all", eventType)
		}
	}
	return nil
}
