package idemcmd

import (
	"context"
	"flag"
	"time"
)

// verb is what the command can do.
type verb struct {
	name      string
	words     string // what may follow the flags: "ID"; "" for nothing
	needsWord bool
	about     string // a line
	more      string
	flags     []func(*options, *flag.FlagSet)
	audited   bool // it needs to know who asks
	noTables  bool // it works before the tables are there
	run       func(*program, context.Context) error
}

func verbNamed(name string) *verb {
	for n := range verbs {
		if verbs[n].name == name {
			return &verbs[n]
		}
	}
	return nil
}

var verbs []verb

func init() { // or it would refer to itself, through help
	limit := func(n int) func(*options, *flag.FlagSet) {
		return func(o *options, f *flag.FlagSet) {
			f.IntVar(&o.limit, "limit", n, "print at most this `many` of each source; 0 is all")
		}
	}
	verbs = []verb{
		{
			name: "stats", about: "how many events are not done, by state, and how old the oldest is",
			more: "Pending events are next for the workers of an inbox. The provider delivers retrying ones again. Parked ones\n" +
				"failed too often, unhandled ones had no handler: nothing happens to them by itself.",
			flags: with(bySource), run: (*program).stats,
		},
		{
			name: "list", words: "ID", about: "events that are not done, the newest first",
			flags: with(bySource, choosing, limit(50)), run: (*program).list,
		},
		{
			name: "show", words: "ID", needsWord: true, about: "one event, with its error; its body is hidden",
			more: "It also finds done events, but those of an account only if -account names it or the ID is source/account/id.\n" +
				"Done events have no body, unless the application keeps bodies. -payload shows the body, and records in the\n" +
				"audit trail who looked.",
			flags: with(bySource, onlyScope, acting, func(o *options, f *flag.FlagSet) {
				f.BoolVar(&o.payload, "payload", false, "show the body, which holds personal data; this is recorded")
			}), audited: true, run: (*program).show,
		},
		{
			name: "blocked", about: "entities whose events wait for an earlier one",
			more:  "Each line shows an entity and its first event. Once that is done or discarded, the others are processed.",
			flags: with(bySource), run: (*program).blocked,
		},
		{
			name: "audit", words: "ACTION", about: "who did what to which events, the latest first",
			more:  "With the number of an action it prints the events that this action chose.",
			flags: with(bySource, limit(20)), run: (*program).audit,
		},
		{
			name: "watch", about: "stats, again and again, until Ctrl-C",
			more: "In a terminal it redraws, elsewhere it adds lines. Each look costs the database as much as idem stats.",
			flags: with(bySource, func(o *options, f *flag.FlagSet) {
				f.DurationVar(&o.every, "every", 2*time.Second, "`time` between two looks, 1s at least")
				f.IntVar(&o.times, "times", 0, "end after this `many` looks; 0 is never")
			}), run: (*program).watch,
		},
		{
			name: "requeue", words: "ID", about: "have the workers of an inbox process events again, each in its place",
			more: "Workers must run somewhere, and have given a sign of life in the last seconds. An application with only a Processor has\n" +
				"none: use replay there.",
			flags: with(bySource, choosing, acting, confirming, func(o *options, f *flag.FlagSet) {
				f.BoolVar(&o.withoutWorkers, "without-workers", false, "requeue although no workers are alive: nothing happens until some are")
			}), audited: true, run: (*program).requeue,
		},
		{
			name: "replay", words: "ID", about: "process events here, with the application's handlers, one after the other",
			more: "It needs a program with the handlers, see github.com/paghooks/paghooks/idem/idemcmd. It is safe while deliveries\n" +
				"arrive, and while it runs elsewhere. Ctrl-C ends it after the event that is being processed; run it again for the rest.\n" +
				"-dry-run runs the handlers and rolls them back, but what they do outside of their transaction does happen.",
			flags: with(bySource, choosing, acting, confirming), audited: true, run: (*program).replay,
		},
		{
			name: "discard", words: "ID", about: "give events up: they will not be processed, and their bodies are deleted",
			more: "It needs -reason, and ids or flags that choose events. Later events of their entities are then processed.\n" +
				"A program whose receiver sets KeepPayloads keeps the bodies.",
			flags: with(bySource, choosing, acting, confirming), audited: true, run: (*program).discard,
		},
		{
			name: "prune", about: "forget old events, which idem.Serve does daily",
			more: "An event that is delivered again after that is processed again: keep -retention above 31 days. The prebuilt\n" +
				"command does not know the application's retention: give it. It also repairs what changing rows by hand left.",
			flags: with(bySource, acting, confirming, func(o *options, f *flag.FlagSet) {
				f.Func("retention", "forget done, unhandled and discarded events of this `age` or older; default: as the receiver is set, else 45d", setDuration(&o.retention))
				f.Func("parked-retention", "also forget parked events of this `age` or older; default: as the receiver is set, else never", setDuration(&o.parkedRetention))
			}), audited: true, run: (*program).prune,
		},
		{
			name: "migrate", about: "create or update the tables, in the first schema of the search_path",
			more: "If any are missing, the role needs the right to create tables.",
			flags: with(func(o *options, f *flag.FlagSet) {
				f.BoolVar(&o.dryRun, "dry-run", false, "say what is missing, and change nothing")
				f.BoolVar(&o.print, "print", false, "print the SQL of all migrations, and end; it may be run again without harm")
			}), noTables: true, run: (*program).migrate,
		},
		{
			name: "doctor", about: "what is wrong with the database or the events, and what to do",
			more: "It changes nothing. The exit status is 1 if it found an error, and 0 if it found only warnings. Settings such\n" +
				"as Retention are those of the program's receivers: the prebuilt command checks only the defaults.",
			flags: with(bySource), noTables: true, run: (*program).doctor,
		},
	}
}

func with(flags ...func(*options, *flag.FlagSet)) []func(*options, *flag.FlagSet) { return flags }

func onlyScope(o *options, f *flag.FlagSet) {
	f.Var((*each)(&o.filter.Scopes), "account", "the event's `account`; repeat it for more")
}

// check refuses what makes no sense, before anything is asked.
func (v *verb) check(p *program) error {
	if v.words == "ID" && v.name != "show" && len(p.words) > 0 {
		p.filter.IDs = append(p.filter.IDs, p.words...)
	}
	switch {
	case p.limit < 0:
		return usage("-limit is %d: give 0 for all", p.limit)
	case v.name == "watch" && p.every < time.Second:
		return usage("-every is %s: that would load the database; give 1s or more", p.every)
	case v.name == "replay" && p.Receivers == nil:
		return usage("this program has no handlers, so it cannot replay events. Where an inbox runs: idem requeue, and its workers process them. " +
			"Else build the ten-line program with your handlers: see https://pkg.go.dev/github.com/paghooks/paghooks/idem/idemcmd")
	case v.name == "discard" && p.reason == "":
		return usage("give a -reason: it stays with the events, and in the audit trail")
	case v.name == "discard" && p.isUnfiltered():
		return usage("say which events to discard, by ids or by flags such as -type and -state")
	}
	return nil
}

// isUnfiltered tells whether nothing chooses events.
func (p *program) isUnfiltered() bool {
	f := p.filter
	return f.States == nil && f.Scopes == nil && f.Types == nil && f.Keys == nil && f.IDs == nil && f.ReceivedFrom.IsZero() && f.ReceivedUntil.IsZero()
}
