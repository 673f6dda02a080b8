package queue

import (
	"encoding/json"
	"errors"
	"flag"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/internal/command"
)

// verb is one of asaas-queue.
type verb struct {
	name       string
	isAboutOne bool
	about      string // a line
	more       string
	flags      []string
	env        []string
}

// options holds the flags and the words of the command line.
type options struct {
	verb                              *verb
	id                                string
	sandbox, json, yes, force, replay bool

	database  string
	lastEvent time.Time // zero if it is not told
	handled   string    // a file; - is stdin
	every     time.Duration

	since, until time.Time // of reconcile
	calls        int
	resumeAt     *asaas.ReconcileCursor

	webhook, url, email string // as it is wanted
}

// sandboxed is the flag of every verb.
func (o *options) sandboxed(f *flag.FlagSet) {
	f.BoolVar(&o.sandbox, "sandbox", false, "the account is in Asaas's sandbox")
}

// add adds the flag of that name.
func (o *options) add(f *flag.FlagSet, name string) {
	const moment = "2026-11-20T10:00:00-03:00, without a zone for Brasília, or how long ago, 3d"
	switch name {
	case "yes":
		f.BoolVar(&o.yes, name, false, "change without asking; needed where nobody is at a terminal")
	case "force":
		f.BoolVar(&o.force, name, false, "also where Asaas counts no failures; what it counts is not documented")
	case "replay":
		f.BoolVar(&o.replay, name, false, "replay the events that are parked or wait for another delivery; needs a program with the application's handlers")
	case "database":
		f.StringVar(&o.database, name, "", "`URL` of the application's database; default: DATABASE_URL, which other users of this machine cannot see")
	case "last-event":
		f.Func(name, "the `time` when the newest event that the application acknowledged came to be: "+moment+"; it tells the time left", command.Time(&o.lastEvent, asaas.Brasilia()))
	case "handled":
		f.StringVar(&o.handled, name, "", "compare with the event types in this `file`, those that asaas.Dispatcher.Types returns, one per line or as fmt prints them; - reads them from stdin")
	case "every":
		f.Var(command.Duration(&o.every, 5*time.Second), name, "the `time` between two looks at the queue")
	case "since":
		f.Func(name, "the `time` before which every event is known to have arrived: "+moment, command.Time(&o.since, asaas.Brasilia()))
	case "until":
		f.Func(name, "the `time` at which the gap ends; now by default", command.Time(&o.until, asaas.Brasilia()))
	case "calls":
		f.IntVar(&o.calls, name, 1000, "make `N` calls of the API at most, of 25,000 in 12 hours")
	case "resume-at":
		f.Func(name, "the `cursor` that a run printed which came not to its end, in single quotes", o.setCursor)
	case "name":
		f.StringVar(&o.webhook, name, "", "the webhook's `name` at Asaas; the webhook of this name or URL is the application's")
	case "url":
		f.StringVar(&o.url, name, "", "the `URL` that Asaas delivers to")
	case "email":
		f.StringVar(&o.email, name, "", "the `address` that Asaas writes to when deliveries fail; a new webhook needs one")
	default:
		panic("asaas-queue: there is no flag " + name)
	}
}

func (o *options) setCursor(text string) error {
	o.resumeAt = new(asaas.ReconcileCursor)
	if json.Unmarshal([]byte(text), o.resumeAt) != nil {
		return errors.New("it is no cursor: copy it whole, in single quotes")
	}
	return nil
}
