// Package diagnosis says what is wrong with the events of a source: once, for package health, doctor, the page and idem
// stats. A cause is one finding, and comes before what follows from it.
package diagnosis

import (
	"fmt"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/internal/lang"
	"github.com/paghooks/paghooks/internal/terminal"
)

// Defaults are the limits of package health.
var Defaults = check.Limits{
	MaxFailures: 5, MaxFailing: 10 * time.Minute, MaxParked: 1, MaxPending: maxPending, Timeout: 2 * time.Second,
}

const (
	maxPending = 5 * time.Minute
	// noWorkers is the time that counts with the default of MaxPending while no workers are alive: their last signs of
	// life are older than 10 seconds then.
	noWorkers = 15 * time.Second
	// behind is the time for which an event may be due until workers take it.
	behind = time.Minute
)

// Source is a source with its snapshot, and the limits that judge it.
type Source struct {
	Name     string
	Snapshot store.Snapshot
	Limits   check.Limits  // a limit of 0 is none
	Timeout  time.Duration // of the inbox: an event is due while it is being processed, too
}

// Findings returns what is wrong, causes first, in a language. Evidence names errors of handlers; the other texts name
// no more than an entity that stands still, and the event that it waits for.
func (s Source) Findings(l lang.Lang) (found []check.Finding) {
	t := &telling{Source: s, lang: l}
	t.workers()
	t.clock()
	t.failing()
	t.parked()
	t.standing()
	t.paused()
	t.acknowledged()
	return t.found
}

// telling collects findings.
type telling struct {
	Source
	lang  lang.Lang
	found []check.Finding
}

func (t *telling) say(text lang.Text, args ...any) string {
	return portuguese.Say(t.lang, text, args...)
}

func (t *telling) count(n int64, one, more lang.Text) string {
	return portuguese.Count(t.lang, n, one, more)
}

func (t *telling) add(f check.Finding) {
	f.Source = t.Name
	t.found = append(t.found, f)
}

// worse is Error where yes is true.
func worse(yes bool) check.Severity {
	if yes {
		return check.Error
	}
	return check.Warning
}

// workers finds events that are due, and that nobody processes.
func (t *telling) workers() {
	s, limit := t.Snapshot, t.Limits.MaxPending+t.Timeout
	oldest := t.say("the first has been due for %s", s.Due)
	switch {
	case t.Limits.MaxPending == 0:
	case s.Alive() == 0 && s.Due == 0:
		t.add(check.Finding{
			Check: "workers", Severity: check.Info, Problem: t.say("no workers are alive: what comes is stored, and waits for them"),
			Evidence: t.count(s.Pending.Events+s.Failing.Events, "%s event is pending", "%s events are pending"),
			Remedy:   t.say("start the program that processes events, unless it runs from time to time"),
		})
	case s.Alive() == 0:
		if t.Limits.MaxPending == maxPending {
			limit = noWorkers
		}
		n := s.Pending.Events + s.Pending.Known + s.Failing.Events + s.Failing.Known
		t.add(check.Finding{
			Check: "workers", Severity: worse(s.Due > limit), Evidence: oldest,
			Problem: t.count(n, "no workers are alive, and %s event waits for them", "no workers are alive, and %s events wait for them"),
			Remedy:  t.say("start the program that processes events, here or elsewhere; where none can run, the command with your handlers"),
			Command: "idem replay -source " + t.Name + " -state pending",
		})
	case s.Due > limit:
		t.add(check.Finding{
			Check: "workers", Severity: check.Error, Problem: t.say("workers run and do not keep up"), Evidence: oldest,
			Remedy:  t.say("see how long handlers take, and whether they hang; then run more workers or processes; the database's load may be the limit"),
			Command: "watch idem stats",
		})
	case s.Untaken > behind:
		t.add(check.Finding{
			Check: "workers", Severity: check.Warning, Problem: t.say("the workers are behind"), Evidence: oldest,
			Remedy:  t.say("see how long handlers take, and whether they hang; then run more workers or processes; the database's load may be the limit"),
			Command: "watch idem stats",
		})
	}
}

// clock finds that the database's clock was put back.
func (t *telling) clock() {
	if t.Limits.MaxPending == 0 || t.Snapshot.Ahead == 0 {
		return
	}
	t.add(check.Finding{
		Check: "clock", Severity: check.Error, Problem: t.say("the database's clock was put back: what arrived before waits until it is that late again"),
		Evidence: t.say("an event arrived %s in the future", t.Snapshot.Ahead),
		Remedy:   t.say("put the clock right, or have the events tried at once"), Command: "idem requeue -source " + t.Name + " -state pending",
	})
}

// failing finds events that fail, and are tried again.
func (t *telling) failing() {
	of := t.Snapshot.Failing
	if t.Limits.MaxFailing == 0 || of.Events == 0 {
		return
	}
	f := check.Finding{
		Check: "failing", Severity: worse(of.Oldest > t.Limits.MaxFailing), Evidence: t.evidence(of),
		Problem: t.count(of.Events, "%s event fails, and is tried again by itself", "%s events fail, and are tried again by themselves"),
		Remedy:  t.say("put right what the error says, and deploy it; a requeue has all tried at once, not when they are due"),
		Command: "idem requeue -source " + t.Name + " -state pending -failed",
	}
	if t.Snapshot.Alive() == 0 {
		f.Problem = t.count(of.Events, "%s event fails, and no workers are alive to try it again", "%s events fail, and no workers are alive to try them again")
		f.Remedy = t.say("put right what the error says, and deploy it; then start the program that processes events")
		f.Command = "idem list -source " + t.Name + " -failed" // a requeue is refused
	}
	f.Problem += t.waiting(of.Waiting)
	t.add(f)
}

// parked finds events to which nothing happens by itself.
func (t *telling) parked() {
	of := t.Snapshot.Parked
	if t.Limits.MaxParked == 0 || of.Events == 0 {
		return
	}
	f := check.Finding{
		Check: "parked", Severity: worse(of.Events >= int64(t.Limits.MaxParked)), Evidence: t.evidence(of),
		Problem: t.count(of.Events, "%s event is parked, until a person acts", "%s events are parked, until a person acts") +
			t.say(": first %s, %s", of.First, of.FirstType) + t.waiting(of.Waiting),
		Remedy: t.say("put right what the error says, and deploy it; then requeue them"), Command: "idem requeue -source " + t.Name + " -state parked",
	}
	if t.Snapshot.Alive() == 0 {
		f.Remedy = t.say("put right what the error says, and deploy it; then replay them with your handlers, as no workers are alive")
		f.Command = "idem replay -source " + t.Name + " -state parked"
	}
	t.unreadable(&f, of)
	t.add(f)
}

// unreadable says what to do about bodies that name no event, which replays do not help.
func (t *telling) unreadable(f *check.Finding, all store.Open) {
	remedy := t.say("have what is in front of the receiver pass bodies on unchanged, see the error; have the provider deliver those events again, " +
		"or book what they said in another way; then discard these")
	for _, of := range all.Types {
		switch {
		case of.Type != store.UnreadableType:
		case of.Events == all.Events:
			f.Remedy, f.Command = remedy, "idem list -source "+t.Name+" -type "+store.UnreadableType
		default:
			f.Remedy = t.say("for the %s of type %s: %s. For the others: %s", of.Events, store.UnreadableType, remedy, f.Remedy)
		}
	}
}

// evidence says which events they are, and with what they fail.
func (t *telling) evidence(of store.Open) string {
	var types []string
	for _, o := range of.Types {
		types = append(types, fmt.Sprintf("%s %s", o.Type, t.lang.Number(o.Events)))
	}
	text := t.say("%s; the oldest came %s ago", strings.Join(types, ", "), of.Oldest)
	if of.Error != "" {
		text += t.say("; last error of %s: %s", of.Same, of.Error)
	}
	if of.Known > 0 {
		text += t.say("; acknowledged are %s more", of.Known)
	}
	if t.Snapshot.Most > 0 {
		text += t.say("; so many events are not done that this is said of %s of them", int64(t.Snapshot.Most))
	}
	return text
}

func (t *telling) waiting(n int64) string {
	if n == 0 {
		return ""
	}
	return t.count(n, "; %s event waits behind", "; %s events wait behind")
}

// standing finds events that wait for a parked one. Where somebody takes care of that one, later ones came since.
func (t *telling) standing() {
	of := t.Snapshot.Standing
	if of.Entities == 0 {
		return
	}
	t.add(check.Finding{
		Check: "standing", Severity: check.Error,
		Problem:  t.count(of.Waiting, "%s event waits for a parked one", "%s events wait for parked ones") + t.say(": the first for %s, of %s", of.First, of.Key),
		Evidence: t.count(of.Entities, "%s entity stands still", "%s entities stand still"),
		Remedy:   t.say("put right what its error says, and requeue it, or discard it to give it up"),
		Command:  "idem blocked -source " + t.Name,
	})
}

// paused finds events that do not begin because a person has decided so.
func (t *telling) paused() {
	pauses := t.Snapshot.Pauses
	if len(pauses) == 0 {
		return
	}
	f := check.Finding{
		Check: "paused", Severity: check.Warning, Problem: t.say("events are paused: deliveries are stored, and none of these events begins"),
		Remedy: t.say("let it end, or end it"), Command: "idem resume -source " + t.Name,
	}
	if of := pauses[0]; of.Type != "" {
		f.Command += " -type " + terminal.Quoted(of.Type)
	}
	if of := pauses[0]; of.Key != "" {
		f.Command += " -entity " + terminal.Quoted(of.Key)
	}
	var all []string
	for _, p := range pauses {
		which := strings.TrimSpace(p.Type + " " + p.Key)
		if which == "" {
			which = t.say("all events")
		}
		all = append(all, t.say("%s until %s, by %s: %s", which, p.Until.UTC().Format("2006-01-02 15:04 MST"), p.Actor, p.Reason))
	}
	f.Evidence = strings.Join(all, "; ")
	t.add(f)
}

// acknowledged says that somebody takes care of events, where no finding does.
func (t *telling) acknowledged() {
	failing, parked := t.Snapshot.Failing, t.Snapshot.Parked
	n := failing.Known + parked.Known
	if n == 0 || failing.Events+parked.Events > 0 {
		return
	}
	t.add(check.Finding{
		Check: "acknowledged", Severity: check.Info, Problem: t.say("somebody has acknowledged what fails or is parked"),
		Evidence: t.count(n, "%s event", "%s events"), Command: "idem list -source " + t.Name + " -failed",
	})
}
