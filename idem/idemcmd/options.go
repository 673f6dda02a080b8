package idemcmd

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/command"
)

// options holds the flags and the words of the command line.
type options struct {
	database string
	sources  []string
	json     bool

	filter idem.Filter
	limit  int

	as, reason  string
	yes, dryRun bool

	withoutWorkers bool // requeue although none are alive
	eraseOpen      bool // also erase events that are not done

	payload bool
	every   time.Duration
	times   int
	print   bool

	retention, parkedRetention, auditRetention time.Duration // 0 is the receiver's
	allowProcessingTwice                       bool

	schema string // of the tables to migrate; "" is the first of the search_path

	toAccount *string // nil is not said
	toSource  string

	words []string // the arguments that are no flags
}

// A flagSet of a verb is made of these.
var (
	bySource = func(o *options, f *flag.FlagSet) {
		f.Var(command.List(&o.sources), "source", "only events of this `source`, a provider such as asaas; repeat it for more, or separate them by commas")
	}
	choosing = choosingAmong("unhandled,parked")
	acting   = func(o *options, f *flag.FlagSet) {
		f.StringVar(&o.as, "as", "", "`who` does this, for the audit trail; default: user@host")
		f.StringVar(&o.reason, "reason", "", "`why`, for the audit trail")
	}
	confirming = func(o *options, f *flag.FlagSet) {
		f.BoolVar(&o.yes, "yes", false, "change without asking; needed where nobody is at a terminal")
		f.BoolVar(&o.dryRun, "dry-run", false, "show what would happen, and change no event")
	}
)

// choosingAmong is the flags that choose events; without -state, among those in states.
func choosingAmong(states string) func(*options, *flag.FlagSet) {
	return func(o *options, f *flag.FlagSet) {
		f.Func("state", "events in this `state`: pending, retrying, unhandled or parked; for more: as -source (default "+states+")", o.addState)
		choosingInAnyState(o, f)
	}
}

// choosingInAnyState is the flags that choose events, but -state.
func choosingInAnyState(o *options, f *flag.FlagSet) {
	f.Var((*each)(&o.filter.Scopes), "account", "events of this `account`; repeat it for more")
	f.Var(command.List(&o.filter.Types), "type", "events of this `type`; for more: as -source")
	f.Var((*each)(&o.filter.Keys), "entity", "events about this `entity`, a payment's id for example; repeat it for more")
	f.Var((*each)(&o.filter.IDs), "id", "the event of this `id`; repeat it for more, or give ids after the verb")
	f.BoolVar(&o.filter.Failed, "failed", false, "only events of which an attempt has failed, also those that are tried again by themselves")
	f.Func("since", "events that arrived at this `time` or later: 2026-11-20T10:00:00Z, 2026-11-20 or, for how long ago, 2h or 3d", command.Time(&o.filter.ReceivedFrom, time.Local))
	f.Func("until", "events that arrived before this `time`", command.Time(&o.filter.ReceivedUntil, time.Local))
}

// each is a flag with several values, which may have commas. "" is one of them:
// the account of applications that have one.
type each []string

func (e *each) String() string        { return strings.Join(*e, " ") }
func (e *each) Set(text string) error { *e = append(*e, text); return nil }

// notDone are the states of events that are not done.
var notDone = []idem.State{idem.StatePending, idem.StateRetrying, idem.StateUnhandled, idem.StateParked}

func isOpen(s idem.StoredEvent) bool { return slices.Contains(notDone, s.State) }

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
			return fmt.Errorf("%q is none of pending, retrying, unhandled and parked; idem show finds events in any state, by id or -entity", name)
		}
	}
	return nil
}
