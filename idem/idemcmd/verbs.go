package idemcmd

import (
	"context"
	"flag"
	"io"
	"slices"
	"time"

	"github.com/paghooks/paghooks/idem"
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

func (v *verb) flagSet(o *options) *flag.FlagSet {
	f := flag.NewFlagSet("idem "+v.name, flag.ContinueOnError)
	f.SetOutput(io.Discard) // run prints the error, once
	f.Usage = func() {}
	for _, add := range v.flags {
		add(o, f)
	}
	everywhere(o, f)
	return f
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
			more: "An event that is delivered again after that is processed again: -retention is 31 days or more. The prebuilt\n" +
				"command does not know the application's retention: give it. A wrong clock forgets nothing at once: what is old by\n" +
				"one run is forgotten by a run 23 hours later, so the first one forgets nothing. It also repairs what changing\n" +
				"rows by hand left.",
			flags: with(bySource, acting, confirming, func(o *options, f *flag.FlagSet) {
				f.Func("retention", "forget done, unhandled and discarded events of this `age` or older; default: as the receiver is set, else 45d", setDuration(&o.retention))
				f.BoolVar(&o.allowProcessingTwice, "allow-processing-twice", false, "accept a -retention below 31 days: an event that is delivered again after that is processed a second time")
				f.Func("parked-retention", "also forget parked events of this `age` or older; default: as the receiver is set, else never", setDuration(&o.parkedRetention))
			}), audited: true, run: (*program).prune,
		},
		{
			name: "rescope", about: "move the events of an account to another scope or source, before the application uses its new name",
			more: "An event is recognized by source, account and id. An account that gets a scope, or another one, or a source that\n" +
				"is renamed, without this, has every event that comes again done twice.\n" +
				"  1. Stop every process that receives or processes events of the source. The provider repeats what fails meanwhile.\n" +
				"  2. See that spools are empty, and that consumers have received all that relays published: what comes from there\n" +
				"     later has the old name, and is stored under that.\n" +
				"  3. idem rescope -source asaas -account \"\" -to-account shop-1 moves what has no account to shop-1.\n" +
				"  4. Start the version with the new name.\n" +
				"All moves, or nothing: it refuses while workers hold events, and where both have an event of the same id. It waits\n" +
				"for running transactions, and others wait for it. After renaming a source, use the prebuilt command.",
			flags: with(bySource, onlyScope, acting, confirming, func(o *options, f *flag.FlagSet) {
				f.Func("to-account", "the `account` that the events get; \"\" is none", func(text string) error { o.toAccount = &text; return nil })
				f.StringVar(&o.toSource, "to-source", "", "the `source` that the events get; default: the one they have")
			}), audited: true, run: (*program).rescope,
		},
		{
			name: "migrate", about: "create or update the tables, in the first schema of the search_path",
			more: "If any are missing, the role needs the right to create tables. It refuses where the tables are in a later schema of\n" +
				"the search_path: the first one would get a second set, and events that were done would be done again.",
			flags: with(func(o *options, f *flag.FlagSet) {
				f.StringVar(&o.schema, "schema", "", "create or update the tables of this `schema`, which must exist, whatever the search_path is")
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

// minRetention is the shortest -retention without -allow-processing-twice: see idem.Common.Retention.
const minRetention = 31 * 24 * time.Hour

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
	case v.name == "prune" && p.retention > 0 && p.retention < minRetention && !p.allowProcessingTwice:
		return usage("-retention is %s, and an event that a provider delivers again after that is processed a second time: give 31d or more, or -allow-processing-twice if that is meant", longAge(p.retention))
	case v.name == "replay" && p.Receivers == nil:
		return usage("this program has no handlers, so it cannot replay events. Where an inbox runs: idem requeue, and its workers process them. " +
			"Else build the ten-line program with your handlers: see https://pkg.go.dev/github.com/paghooks/paghooks/idem/idemcmd")
	case v.name == "rescope" && (len(p.filter.Scopes) != 1 || p.toAccount == nil):
		return usage("say what to move where: -account and -to-account, once each; \"\" is no account")
	case v.name == "discard" && p.reason == "":
		return usage("give a -reason: it stays with the events, and in the audit trail")
	case v.name == "discard" && p.isUnfiltered():
		return usage("say which events to discard, by ids or by flags such as -type: all of them cannot be discarded at once")
	}
	return nil
}

// isUnfiltered reports whether no flag narrows the events: all states are as good as none.
func (p *program) isUnfiltered() bool {
	f := p.filter
	isWanted := func(s idem.State) bool { return slices.Contains(f.States, s) }
	everyState := f.States == nil || !slices.ContainsFunc(notDone, func(s idem.State) bool { return !isWanted(s) })
	return everyState && f.Scopes == nil && f.Types == nil && f.Keys == nil && f.IDs == nil && f.ReceivedFrom.IsZero() && f.ReceivedUntil.IsZero()
}
