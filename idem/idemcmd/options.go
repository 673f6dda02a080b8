package idemcmd

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
)

// options are what the command line says.
type options struct {
	database string
	sources  []string
	json     bool

	filter idem.Filter
	limit  int

	as, reason  string
	yes, dryRun bool

	withoutWorkers bool // requeue although none are alive

	payload bool
	every   time.Duration
	times   int
	print   bool

	retention, parkedRetention time.Duration // 0 is the receiver's
	allowProcessingTwice       bool

	schema string // of the tables to migrate; "" is the first of the search_path

	toAccount *string // nil is not said
	toSource  string

	words []string // what is no flag
}

// A flagSet of a verb is made of these.
var (
	everywhere = func(o *options, f *flag.FlagSet) {
		f.StringVar(&o.database, "database", "", "`URL` of the database; default: DATABASE_URL, or PGHOST, PGUSER and the like, which other users of this machine cannot see")
		f.BoolVar(&o.json, "json", false, "print one JSON object per line")
	}
	bySource = func(o *options, f *flag.FlagSet) {
		f.Var((*list)(&o.sources), "source", "only events of this `source`, a provider such as asaas; repeat it for more, or separate them by commas")
	}
	choosing = func(o *options, f *flag.FlagSet) {
		f.Func("state", "events in this `state`: pending, retrying, unhandled or parked; for more: as -source (default unhandled,parked)", o.addState)
		f.Var((*each)(&o.filter.Scopes), "account", "events of this `account`; repeat it for more")
		f.Var((*list)(&o.filter.Types), "type", "events of this `type`; for more: as -source")
		f.Var((*each)(&o.filter.Keys), "entity", "events about this `entity`, a payment's id for example; repeat it for more")
		f.Var((*each)(&o.filter.IDs), "id", "the event of this `id`; repeat it for more, or give ids after the verb")
		f.Func("from", "events that arrived at this `time` or later: 2026-11-20T10:00:00Z, 2026-11-20 or, for how long ago, 2h or 3d", setTime(&o.filter.ReceivedFrom))
		f.Func("until", "events that arrived before this `time`", setTime(&o.filter.ReceivedUntil))
	}
	acting = func(o *options, f *flag.FlagSet) {
		f.StringVar(&o.as, "as", "", "`who` does this, for the audit trail; default: user@host")
		f.StringVar(&o.reason, "reason", "", "`why`, for the audit trail")
	}
	confirming = func(o *options, f *flag.FlagSet) {
		f.BoolVar(&o.yes, "yes", false, "do not ask")
		f.BoolVar(&o.dryRun, "dry-run", false, "show what would happen, and change no event")
	}
)

// list is a flag with several values, also separated by commas.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }
func (l *list) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		if part == "" {
			return errors.New("it is empty")
		}
		*l = append(*l, part)
	}
	return nil
}

// each is a flag with several values, which may have commas. "" is one of them:
// the account of applications that have one.
type each []string

func (e *each) String() string        { return strings.Join(*e, " ") }
func (e *each) Set(text string) error { *e = append(*e, text); return nil }

// notDone are the states of events that are not done.
var notDone = []idem.State{idem.StatePending, idem.StateRetrying, idem.StateUnhandled, idem.StateParked}

func (o *options) addState(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		known := false
		for _, s := range notDone {
			if known = name == string(s); known {
				o.filter.States = append(o.filter.States, s)
				break
			}
		}
		if !known {
			return fmt.Errorf("%q is none of pending, retrying, unhandled and parked", name)
		}
	}
	return nil
}

// setTime reads a time, or how long ago it was.
func setTime(t *time.Time) func(string) error {
	return func(text string) (err error) {
		if ago, agoErr := parseDuration(text); agoErr == nil {
			*t = time.Now().Add(-ago)
			return nil
		}
		for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
			if *t, err = time.ParseInLocation(layout, text, time.Local); err == nil {
				return nil
			}
		}
		return errors.New("it is no time such as 2026-11-20T10:00:00Z or 2026-11-20, nor how long ago, such as 2h or 3d")
	}
}

// setDuration reads a duration, also in days.
func setDuration(d *time.Duration) func(string) error {
	return func(text string) (err error) {
		if *d, err = parseDuration(text); err != nil || *d <= 0 {
			return errors.New("it is no time such as 45d or 12h")
		}
		return nil
	}
}

func parseDuration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		hours, err := time.ParseDuration(days + "h")
		if hours > math.MaxInt64/24 || hours < math.MinInt64/24 {
			return 0, errors.New("it is longer than 290 years")
		}
		return hours * 24, err
	}
	return time.ParseDuration(text)
}
