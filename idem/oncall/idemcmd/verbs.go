package idemcmd

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/command"
)

// verb is one of the command.
type verb struct {
	name      string
	words     string // the words that may follow the flags: "[ID...]"; "" for nothing
	about     string // a line
	more      string
	flags     []func(*options, *flag.FlagSet)
	audited   bool     // it needs the name of the person
	acts      bool     // it changes something: it says first in which database
	noTables  bool     // it works before the tables are there
	alone     bool     // it works without a database
	variables []string // of the environment, beside the database's
	run       func(*program, context.Context) error
}

func limit(n int) func(*options, *flag.FlagSet) {
	return func(o *options, f *flag.FlagSet) {
		f.IntVar(&o.limit, "limit", n, "print at most `N` of each source; 0 is all")
	}
}

var verbs = []verb{
	{
		name: "stats", about: "how many events are not done, by state, and how old the oldest is",
		more: "Pending events are next for the workers of an inbox. Parked ones failed too often, unhandled ones had no handler:\n" +
			"nothing happens to them by itself. To see them go: watch idem stats.",
		flags: with(bySource), run: (*program).stats,
	},
	{
		name: "list", words: "[ID...]", about: "events that are not done, the newest first",
		more: "Pending ones are next for the workers of an inbox, or wait for their next attempt. Stats counts them by state; show\n" +
			"says of each why it is not done.",
		flags: with(bySource, choosingAmong("all of these"), limit(50)), run: (*program).list,
	},
	{
		name: "show", words: "[ID...]", about: "one event, why it is not done, and its last errors; or what became of an entity",
		more: "It also finds done events. They have no body, unless the application keeps bodies. -payload shows the body, and\n" +
			"records in the audit trail who looked.\n" +
			"-entity lists the events of a payment, say, also done ones, and why the first that is not done is not. It reads the\n" +
			"row of every event in the database, ten million in a second or two, unless somebody made an index:\n" +
			"  create index concurrently idem_events_key on idem_events (key)\n" +
			"With it the answer is there at once, and storing an event takes more work: docs/oncall.md has the numbers.",
		flags: with(bySource, onlyScope, entity, acting, limit(200), func(o *options, f *flag.FlagSet) {
			f.BoolVar(&o.payload, "payload", false, "show the body, which holds personal data; this is recorded")
		}), audited: true, run: (*program).show,
	},
	{
		name: "blocked", about: "entities whose events wait for an earlier one",
		more:  "Each line shows an entity and its first event. The oldest come first. Once it is done or discarded, the others are processed.",
		flags: with(bySource, limit(50)), run: (*program).blocked,
	},
	{
		name: "conflicts", about: "events that came again with another body: only one of the two was processed",
		more:  "An id was used twice, or two accounts deliver to one address. The latest come first, until prune forgets the events.",
		flags: with(bySource, limit(50)), run: (*program).conflicts,
	},
	{
		name: "audit", words: "[ACTION]", about: "who did what to which events, the latest first",
		more:  "With the number of an action it prints the events that this action chose, as other verbs take them.",
		flags: with(bySource, limit(20)), run: (*program).audit,
	},
	{
		name: "console", about: "a page with all of this, read-only, for this machine alone",
		more: "It is the page of github.com/paghooks/paghooks/idem/oncall/console, without bodies and without buttons: an application\n" +
			"mounts it with both, behind its login. Ctrl-C ends it.",
		flags: with(bySource, func(o *options, f *flag.FlagSet) {
			f.StringVar(&o.listen, "listen", "127.0.0.1:8070", "the `address` to serve on, of this machine alone; port 0 is any free one")
		}), run: (*program).console,
	},
	{
		name: "tail", words: "[URL]", about: "each delivery as it comes, with its answer, also those that are refused",
		more: "It stands in front of the program: give it the program's address, and the tunnel, or the provider's fake, its own.\n" +
			"Deliveries go on unchanged. A line has the event's type and id, and the answer; no body, and no token. It is for the\n" +
			"first hours and a test environment: a program in production has its log and its metrics.\n" +
			"-keep writes each body into a file, before it goes on, with the personal data that it has. Without a program's\n" +
			"address it answers 200 then: to see real bodies, from the sandbox, before there is a program.",
		flags: []func(*options, *flag.FlagSet){func(o *options, f *flag.FlagSet) {
			f.StringVar(&o.listen, "listen", "127.0.0.1:8081", "the `address` to receive at; port 0 is any free one")
			f.StringVar(&o.keep, "keep", "", "the `folder` for a file of each body")
		}}, alone: true, run: (*program).tail,
	},
	{
		name: "requeue", words: "[ID...]", about: "have the workers of an inbox process events again, each in its place",
		more:  "Workers must run somewhere, and have given a sign of life in the last seconds. To see them go: watch idem stats.",
		flags: with(bySource, choosing, acting, confirming, withoutWorkers), audited: true, acts: true, run: acts(chosen((*operator.Operator).PlanRequeue)),
	},
	{
		name: "replay", words: "[ID...]", about: "process events here, with the application's handlers, one after the other",
		more: "It needs a program with the handlers, see github.com/paghooks/paghooks/idem/oncall/idemcmd. It is safe while deliveries\n" +
			"arrive, and while it runs elsewhere. Ctrl-C or, from elsewhere, idem stop ends it after the event that is being processed;\n" +
			"the same command again goes on with the rest.\n" +
			"-dry-run runs the handlers and rolls them back, but what they do outside of their transaction does happen.",
		flags: with(bySource, choosing, acting, confirming, func(o *options, f *flag.FlagSet) {
			f.BoolVar(&o.replayPaused, "paused", false, "also events that are paused")
		}), audited: true, acts: true, run: acts((*program).planReplay),
	},
	{
		name: "rerun", words: "ID", about: "run the handler of a done event once more, on purpose",
		more: "It needs -reason, a program with the handlers, as replay does, and a body that is kept: a receiver with KeepPayloads.\n" +
			"It makes a dry run, shows what it means, asks, and makes one attempt. What the handler does takes effect a second time.\n" +
			"The event stays done, also if the attempt fails.",
		flags: with(bySource, onlyScope, acting, confirming), audited: true, acts: true, run: (*program).rerun,
	},
	{
		name: "pause", about: "have no event begin for a time: of a source, a type or an entity",
		more: "It needs -for and -reason. Without -type and -entity it pauses all events of the source. Running handlers go on to\n" +
			"their ends. Deliveries are stored and answered 200 meanwhile, also by a program that works first, if workers run\n" +
			"somewhere. Later events of an entity wait for those that are paused. To change a pause, pause again.",
		flags: with(bySource, ofPause, forTime, acting, confirming), audited: true, acts: true, run: (*program).pause,
	},
	{
		name: "resume", about: "end a pause before its time: the events are due then",
		more:  "The flags are those of the pause. Where there is no such pause it lists those that there are.",
		flags: with(bySource, ofPause, acting, confirming), audited: true, acts: true, run: (*program).resume,
	},
	{
		name: "acknowledge", words: "[ID...]", about: "take note of events that fail or are parked: they make health red no more",
		more: "It needs -reason, and ids or flags that choose events. Nothing else happens to them. It is of these events: another one\n" +
			"makes health red again, and so does one of these that was parked and fails again, or that is tried again by itself and\n" +
			"is parked in the end. Events that wait for another one, or for their first attempt, are left alone. -undo takes it back.",
		flags: with(bySource, choosingInAnyState, acting, confirming, func(o *options, f *flag.FlagSet) {
			f.BoolVar(&o.undo, "undo", false, "take it back: the events make health red again")
		}), audited: true, acts: true, run: acts((*program).planAcknowledge),
	},
	{
		name: "discard", words: "[ID...]", about: "give events up: they will not be processed, and their bodies are deleted",
		more: "It needs -reason, and ids or flags that choose events. Later events of their entities are then processed.\n" +
			"A program whose receiver sets KeepPayloads keeps the bodies.",
		flags: with(bySource, choosing, acting, confirming), audited: true, acts: true, run: acts(chosen((*operator.Operator).PlanDiscard)),
	},
	{
		name: "stop", words: "ACTION", about: "ask a running action to end, whichever process runs it",
		more: "ACTION is its number, which idem audit prints. A replay ends after the event that is being processed. A requeue, a\n" +
			"discard and an erase change nothing, unless they are committed by then. To go on, give the command of that action again:\n" +
			"it shows the events that are left, and asks anew. Stop changes no event, so it does not ask.",
		flags: with(bySource, acting), audited: true, acts: true, run: (*program).stop,
	},
	{
		name: "readmit", about: "have messages of a relay that were set aside verified again, and accept those that are genuine",
		more: "For after consumers had a wrong secret, or were older than the relay. It needs " + relaySecrets + " in the environment:\n" +
			"the relay's secret, or several with a space between. Events are stored for the workers of an inbox, which must run\n" +
			"somewhere. What is not genuine stays set aside.",
		flags: with(bySource, acting, confirming, withoutWorkers), audited: true, acts: true, variables: []string{relaySecrets}, run: acts((*program).planReadmit),
	},
	{
		name: "erase", words: "[ID...]", about: "delete the bodies, errors and traces of events, also done ones",
		more: "It is for a person who asks for it. It needs -reason, which is recorded as it is: write no name into it. An event that\n" +
			"is not done is left alone, as it may be an unprocessed payment, unless -discard is given. What stays is that the event\n" +
			"came: its ids, type, state and times, and a hash of its body. So it is a duplicate if it comes again, also from a\n" +
			"broker, and nothing is stored of it. -entity reads the row of every event in the database: see idem help show.\n" +
			"Not reached: the application's own tables, what brokers keep, messages of an outbox under other ids,\n" +
			"logs, traces and backups. docs/private-data.md has each place, and how to erase it.",
		flags: with(bySource, onlyScope, entity, acting, confirming, func(o *options, f *flag.FlagSet) {
			f.BoolVar(&o.eraseOpen, "discard", false, "give up events that are not done, and erase them: they will not be processed")
		}), audited: true, acts: true, run: acts((*program).planErase),
	},
	{
		name: "prune", about: "forget old events, which idem.Serve does daily",
		more: "An event that is delivered again after that is processed again: -retention is 31 days or more. The prebuilt\n" +
			"command does not know the application's retention: give it. A wrong clock forgets nothing at once: what is old by\n" +
			"one run is forgotten by a run 23 hours later, so the first one forgets nothing. It also repairs what changing\n" +
			"rows by hand left.",
		flags: with(bySource, acting, confirming, func(o *options, f *flag.FlagSet) {
			f.Func("retention", "forget done, unhandled and discarded events of this `age` or older; default: as the receiver is set, else 45d", command.Duration(&o.retention))
			f.BoolVar(&o.allowProcessingTwice, "allow-processing-twice", false, "accept a -retention below 31 days: an event that is delivered again after that is processed a second time")
			f.Func("parked-retention", "also forget parked events of this `age` or older; default: as the receiver is set, else never", command.Duration(&o.parkedRetention))
			f.Func("audit-retention", "also delete entries of the audit trail of this `age` or older; default: as the receiver is set, else never", command.Duration(&o.auditRetention))
		}), audited: true, acts: true, run: (*program).prune,
	},
	{
		name: "rescope", about: "move the events of an account to another scope or source, before the application uses its new name",
		more: "An event is recognized by source, account and id. An account that gets a scope, or another one, or a source that\n" +
			"is renamed, without this, has every event that comes again done twice.\n" +
			"  1. Stop every process that receives or processes events of the source, or books charges. The provider\n" +
			"     repeats what fails meanwhile.\n" +
			"  2. See that consumers have received all that relays published: what comes from there\n" +
			"     later has the old name, and is stored under that.\n" +
			"  3. idem rescope -source asaas -account \"\" -to-account shop-1 moves what has no account to shop-1.\n" +
			"  4. Start the version with the new name.\n" +
			"What the provider's package stores for each account, such as charges, moves with the events. All moves, or\n" +
			"nothing: it refuses while workers hold events, and where both have an event of the same id. It waits\n" +
			"for running transactions, and others wait for it. After renaming a source, use the prebuilt command.",
		flags: with(bySource, onlyScope, acting, confirming, func(o *options, f *flag.FlagSet) {
			f.Func("to-account", "the `account` that the events get; \"\" is none", func(text string) error { o.toAccount = &text; return nil })
			f.StringVar(&o.toSource, "to-source", "", "the `source` that the events get; default: the one they have")
		}), audited: true, acts: true, run: acts((*program).planRescope),
	},
	{
		name: "migrate", about: "create or update the tables, in the first schema of the search_path",
		more: "If any are missing, the role needs the right to create tables. It refuses where the tables are in a later schema of\n" +
			"the search_path: the first one would get a second set, and events that were done would be done again.",
		flags: with(func(o *options, f *flag.FlagSet) {
			f.StringVar(&o.schema, "schema", "", "create or update the tables of this `schema`, which must exist, whatever the search_path is")
			f.BoolVar(&o.dryRun, "dry-run", false, "say what is missing, and change nothing")
			f.BoolVar(&o.again, "again", false, "run all migrations once more: tables, indexes and a view that are gone come back, and the rest stays as it is")
			f.BoolVar(&o.print, "print", false, "print the SQL of all migrations, and end; it may be run again without harm")
		}), noTables: true, acts: true, run: (*program).migrate,
	},
	{
		name: "doctor", about: "what is wrong, and what to do",
		more: "It changes nothing, and says first what fails, what is parked, whether workers are alive, and who keeps the tables\n" +
			"locked; then what the program says of itself; then the database. A line with run: is typed as it is, in a shell, or\n" +
			"in psql where it is SQL. The exit status is 4 if anything is wrong. Refused deliveries and the provider's queue show\n" +
			"in no table: -health asks the program. Settings such as Retention are those of the program's receivers: the prebuilt\n" +
			"command checks only the defaults.",
		flags: with(bySource, func(o *options, f *flag.FlagSet) {
			f.Func("health", "the `URL` of the program's health.Health; repeat it for each process", command.Each(&o.health))
			f.BoolVar(&o.all, "all", false, "also hints, and what this role may not see")
		}), noTables: true, variables: []string{healthURL}, run: (*program).doctor,
	},
}

func with(flags ...func(*options, *flag.FlagSet)) []func(*options, *flag.FlagSet) { return flags }

func withoutWorkers(o *options, f *flag.FlagSet) {
	f.BoolVar(&o.withoutWorkers, "without-workers", false, "although no workers are alive: nothing happens until some are")
}

func entity(o *options, f *flag.FlagSet) {
	f.Func("entity", "events about this `entity`, a payment's id for example; repeat it for more", command.Each(&o.filter.Keys))
}

func onlyScope(o *options, f *flag.FlagSet) {
	f.Func("account", "the event's `account`; repeat it for more", command.Each(&o.filter.Scopes))
}

// minRetention is the shortest -retention without -allow-processing-twice: see idem.Inbox.Retention.
const minRetention = 31 * 24 * time.Hour

// check refuses flags that make no sense, before anything is asked.
func (v *verb) check(p *program) error {
	if v.words == "[ID...]" && v.name != "show" && len(p.words) > 0 {
		p.filter.IDs = append(p.filter.IDs, p.words...)
	}
	if v.name == "list" && p.filter.States == nil {
		p.filter.States = notDone
	}
	if v.words == "ACTION" || v.words == "[ACTION]" && len(p.words) > 0 {
		if _, err := p.actionID(); err != nil {
			return err
		}
	}
	switch {
	case v.name == "show" && p.filter.Keys == nil && len(p.words) == 0:
		return command.Usage("show what? give the id of an event, or -entity")
	case v.name == "show" && p.filter.Keys != nil && (len(p.words) > 0 || p.payload):
		return command.Usage("-entity shows all events of an entity, without their bodies: give it alone, or the ids of events")
	case p.limit < 0:
		return command.Usage("-limit is %d: give 0 for all", p.limit)
	case v.name == "prune" && p.retention > 0 && p.retention < minRetention && !p.allowProcessingTwice:
		return command.Usage("-retention is %s, and an event that a provider delivers again after that is processed a second time: give 31d or more, or -allow-processing-twice if that is meant", command.Text("%s", p.retention))
	case v.name == "readmit" && os.Getenv(relaySecrets) == "":
		return command.Usage("%s is not set: set it in the environment to the relay's secret, to several with a space between", relaySecrets)
	case v.name == "rerun" && len(p.words) != 1:
		return command.Usage("say which event to run once more, by its id")
	case v.name == "rerun" && p.Receivers == nil:
		return command.Usage("this program has no handlers, so it cannot run any: build the ten-line program with yours: see https://pkg.go.dev/github.com/paghooks/paghooks/idem/oncall/idemcmd")
	case v.name == "rerun" && p.reason == "":
		return command.Usage("give a -reason: it is all that says why the event took effect twice")
	case v.name == "replay" && p.Receivers == nil:
		return command.Usage("this program has no handlers, so it cannot replay events. Where an inbox runs: idem requeue, and its workers process them. " +
			"Else build the ten-line program with your handlers: see https://pkg.go.dev/github.com/paghooks/paghooks/idem/oncall/idemcmd")
	case v.name == "rescope" && (len(p.filter.Scopes) != 1 || p.toAccount == nil):
		return command.Usage("say what to move where: -account and -to-account, once each; \"\" is no account")
	case v.name == "discard" && p.reason == "":
		return command.Usage("give a -reason: it stays with the events, and in the audit trail")
	case v.name == "pause":
		return p.checkPause()
	case v.name == "erase" && p.filter.IDs == nil && p.filter.Keys == nil:
		return command.Usage("say what to erase, by the ids of events or by -entity")
	case v.name == "erase" && p.reason == "":
		return command.Usage("give a -reason: it is all that says why they are gone; write no name into it")
	case v.name == "acknowledge" && p.reason == "":
		return command.Usage("give a -reason: it stays in the audit trail, for the next person")
	case v.name == "acknowledge" && p.isUnfiltered():
		return command.Usage("say which events to acknowledge, by ids or by flags such as -type: nobody has seen all of them")
	case v.name == "discard" && p.isUnfiltered():
		return command.Usage("say which events to discard, by ids or by flags such as -type: all of them cannot be discarded at once")
	}
	return nil
}

// isUnfiltered reports whether no flag narrows the events: all states are as good as none.
func (p *program) isUnfiltered() bool {
	f := p.filter
	isWanted := func(s idem.State) bool { return slices.Contains(f.States, s) }
	everyState := f.States == nil || !slices.ContainsFunc(notDone, func(s idem.State) bool { return !isWanted(s) })
	return everyState && f.Scopes == nil && f.Types == nil && f.Keys == nil && f.IDs == nil && !f.Failed && f.ReceivedFrom.IsZero() && f.ReceivedUntil.IsZero()
}

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
	replayPaused   bool // also events that are paused
	undo           bool // take an acknowledgement back
	eraseOpen      bool // also erase events that are not done

	payload bool
	print   bool

	retention, parkedRetention, auditRetention time.Duration // 0 is the receiver's
	allowProcessingTwice                       bool

	paused   operator.Pause // what to pause, or to resume
	pauseFor time.Duration

	all    bool     // findings of doctor
	health []string // URLs; nil is those of the environment

	listen string // address of the page, or of tail
	keep   string // the folder for bodies; "" is none

	again  bool   // migrate
	schema string // of the tables to migrate; "" is the first of the search_path

	toAccount *string // nil is not said
	toSource  string

	words []string // the arguments that are no flags
}

// A flagSet of a verb is made of these.
var (
	bySource = func(o *options, f *flag.FlagSet) {
		f.Func("source", "only events of this `source`, a provider such as asaas; repeat it for more, or separate them by commas", command.List(&o.sources))
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
		f.Func("state", "events in this `state`: pending, unhandled or parked; for more: as -source (default "+states+")", o.addState)
		choosingInAnyState(o, f)
	}
}

// choosingInAnyState is the flags that choose events, but -state.
func choosingInAnyState(o *options, f *flag.FlagSet) {
	f.Func("account", "events of this `account`; repeat it for more", command.Each(&o.filter.Scopes))
	f.Func("type", "events of this `type`; for more: as -source", command.List(&o.filter.Types))
	entity(o, f)
	f.Func("id", "the event of this `id`; repeat it for more, or give ids after the verb", command.Each(&o.filter.IDs))
	f.BoolVar(&o.filter.Failed, "failed", false, "only events of which an attempt has failed, also those that are tried again by themselves; in all states, unless -state is given")
	f.Func("since", "events that arrived at this `time` or later: 2026-11-20T10:00:00Z, 2026-11-20 or, for how long ago, 2h or 3d", command.Time(&o.filter.ReceivedFrom, time.Local))
	f.Func("until", "events that arrived before this `time`", command.Time(&o.filter.ReceivedUntil, time.Local))
}

// notDone are the states of events that are not done.
var notDone = []idem.State{idem.StatePending, idem.StateUnhandled, idem.StateParked}

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
			return fmt.Errorf("%q is none of pending, unhandled and parked; idem show finds events in any state, by id or -entity", name)
		}
	}
	return nil
}
