package idemcmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/operator"
	"github.com/paghooks/paghooks/idem/relay"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// act is a verb that changes something.
type act struct {
	verb   string
	asks   string // the verb in the question
	what   string // would happen to the events, as a sentence
	always bool   // it does something even where no event matches
	choose func(context.Context, *operator.Operator) (chosen, error)
	do     func(context.Context, *operator.Operator, chosen) (done, error)
}

// chosen holds the events that a person is shown and asked about.
type chosen struct {
	filter idem.Filter        // which names these events; the zero value shows none
	events []idem.StoredEvent // of a verb that has no filter, to be shown
	n      int64
}

// done is the result of an action, as JSON.
type done struct {
	Source  string `json:"source"`
	Action  string `json:"action"`
	Matched int64  `json:"matched"`
	DryRun  bool   `json:"dry_run"`

	Changed   *int64 `json:"changed,omitempty"` // requeued, discarded, erased, forgotten
	Done      *int   `json:"done,omitempty"`    // of a replay
	Failed    *int   `json:"failed,omitempty"`
	Unhandled *int   `json:"unhandled,omitempty"`

	Overtaken []overtaken `json:"overtaken,omitempty"`
}

// overtaken is an event that was replayed behind a later one of its entity.
type overtaken struct {
	Scope  string `json:"scope"`
	ID     string `json:"id"`
	Type   string `json:"type"`
	By     string `json:"by"`
	ByType string `json:"by_type"`
}

// carryOut counts, shows, asks, and acts.
func (p *program) carryOut(ctx context.Context, a act) error {
	each := make([]chosen, len(p.operators))
	var total int64
	for n, o := range p.operators {
		var err error
		if each[n], err = a.choose(ctx, o); err != nil {
			return err
		}
		total += each[n].n
	}
	if total == 0 && !a.always {
		return p.nothing(ctx)
	}
	said := p.sayUnmatched(ctx)
	if said != nil && !errors.Is(said, errSaid) {
		return said
	}
	asks := !p.dryRun && !p.yes && total > 0
	if p.dryRun && !p.json || asks {
		if err := p.plan(ctx, a, each); err != nil {
			return err
		}
	}
	if asks {
		if err := p.confirm(ctx, a, total); err != nil {
			return err
		}
	}
	for n, o := range p.operators {
		if each[n].n == 0 && !a.always {
			continue
		}
		result, err := a.do(ctx, o, each[n])
		result.Source, result.Action, result.Matched, result.DryRun = o.SourceName(), a.verb, each[n].n, p.dryRun
		if errors.Is(err, errSaid) { // the next source is another matter
			said, err = errSaid, nil
		}
		if err == nil && p.json {
			err = p.printLine(result)
		}
		if err != nil {
			return err
		}
	}
	return said
}

// firstFew limits the events that a plan shows.
const firstFew = 5

// plan prints the effect that an action would have. It goes to where the question is, unless it is all
// that was asked for.
func (p *program) plan(ctx context.Context, a act, each []chosen) error {
	out, width := p.Stderr, terminal.Width(p.Stderr)
	if p.dryRun {
		out, width = p.Stdout, p.width
	}
	for n, o := range p.operators {
		if each[n].n == 0 && !a.always {
			continue
		}
		fmt.Fprintln(out, command.Text("%s of %s.", p.events(each[n].n), terminal.Clean(o.SourceName())))
		first := each[n].events[:min(len(each[n].events), firstFew)]
		if each[n].filter.Events != nil {
			var err error
			if first, err = p.first(ctx, o, each[n].filter); err != nil {
				return err
			}
		}
		if len(first) == 0 {
			continue
		}
		t := &terminal.Table{Indent: 2, Heads: []string{p.head("RECEIVED"), "ACCOUNT", "STATE", "TYPE", "ENTITY", "ID", "ERROR"}}
		for _, s := range first {
			t.Add(p.at(s.ReceivedAt), terminal.Clean(s.Scope), string(s.State), terminal.Clean(s.Type), terminal.Clean(s.Key), terminal.Clean(s.ID), terminal.Clean(s.LastError))
		}
		if err := t.Print(out, width, longest); err != nil {
			return err
		}
		if more := each[n].n - int64(len(first)); more > 0 {
			fmt.Fprintln(out, "  "+command.Text("and %s more", more))
		}
	}
	for line := range strings.SplitSeq(a.what, "\n") {
		if _, err := fmt.Fprintln(out, terminal.Wrap(line, width, 0)); err != nil {
			return err
		}
	}
	return nil
}

// confirm asks a person.
func (p *program) confirm(ctx context.Context, a act, total int64) error {
	question := command.Text("%s these %s?", a.asks, p.events(total))
	if total == 1 {
		question = command.Text("%s this event?", a.asks)
	}
	return p.command.Confirm(ctx, question)
}

// choose returns the events that the flags choose.
func (p *program) choose(ctx context.Context, o *operator.Operator) (chosen, error) {
	f, err := o.Choose(ctx, p.named(o))
	f.Events = slices.DeleteFunc(f.Events, func(key string) bool { return !p.mayBeMeant(key) })
	for _, key := range f.Events {
		p.matched = append(p.matched, key, store.EventOf(key).ID)
	}
	return chosen{filter: f, n: int64(len(f.Events))}, err
}

// first returns the oldest events of a filter.
func (p *program) first(ctx context.Context, o *operator.Operator, f idem.Filter) (few []idem.StoredEvent, err error) {
	for s, err := range o.List(ctx, f) {
		if err != nil {
			return nil, err
		}
		if few = append(few, s); len(few) == firstFew {
			break
		}
	}
	return few, nil
}

// The reasons for which an action leaves events alone.
const (
	otherState string = "%s of the %s of %s left alone: done, in another state by now, or being processed"
	notFailed  string = "%s of the %s of %s left alone: waiting behind a parked one and never tried, or not parked any more"
)

// sayLeft says how many of the events that a person was shown are not to be acted upon any more, and how many came
// since. acted is how many events were.
func (p *program) sayLeft(ctx context.Context, o *operator.Operator, c chosen, acted int64, why string) error {
	if left := c.n - acted; left > 0 {
		p.tell(why, left, p.events(c.n), terminal.Clean(o.SourceName()))
	}
	now, err := o.Choose(ctx, p.filter)
	if err != nil {
		return err
	}
	shown := map[string]bool{}
	for _, key := range c.filter.Events {
		shown[key] = true
	}
	came := int64(0)
	for _, key := range now.Events {
		if !shown[key] {
			came++
		}
	}
	if came > 0 {
		p.tell("%s of %s came since, left alone: run it again to see them", p.events(came), terminal.Clean(o.SourceName()))
	}
	return nil
}

// brokenOff returns the error of an action that changes all of its events in one transaction. If
// somebody has ended it, it says how to go on.
func (p *program) brokenOff(ctx context.Context, err error) error {
	if ctx.Err() == nil && !errors.Is(err, operator.ErrStopped) {
		return err
	}
	return fmt.Errorf("%w: nothing was changed, unless idem audit has its result. Give the command again: it shows the events that are left, and asks anew", err)
}

// changed prints how many events were changed.
func (p *program) changed(o *operator.Operator, did string, n int64) done {
	if !p.json {
		fmt.Fprintln(p.Stdout, command.Text("%s of %s: %s", p.events(n), terminal.Clean(o.SourceName()), did))
	}
	return done{Changed: &n}
}

func (p *program) replay(ctx context.Context) error {
	a := act{
		verb: "replay", asks: "Replay", choose: p.choose, do: p.replayOf,
		what: "The handler of each would run here, the oldest first, one after the other, each in its own transaction.",
	}
	if p.dryRun {
		a.what = "The handler of each runs here now, and is rolled back."
	}
	return p.carryOut(ctx, a)
}

// replayOf replays events of a source, or tries to.
func (p *program) replayOf(ctx context.Context, o *operator.Operator, c chosen) (done, error) {
	doing, did, run := command.Text("replaying %s", o.SourceName()), "replayed", o.Replay
	if p.dryRun {
		doing, did, run = command.Text("trying %s", o.SourceName()), "tried, and rolled back", o.DryReplay
	}
	bar := p.newProgress(doing)
	o.Progress, o.Failed = bar.show, bar.failure
	sum, err := run(ctx, c.filter, p.reason)
	bar.end()
	if err == nil {
		if err := p.sayLeft(ctx, o, c, int64(sum.Done+sum.Failed+sum.Unhandled), otherState); err != nil {
			return done{}, err
		}
		return p.replayed(o, did, sum)
	}
	if !p.dryRun {
		handled := int64(sum.Done + sum.Failed + sum.Unhandled)
		p.tell("%s of %s were replayed (%s), the rest is as it was: run it again to go on", handled, p.events(c.n), p.sum(sum))
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("stopped: %w", context.Cause(ctx))
	}
	return done{}, err
}

// replayed prints the result of a replay. It is an error if an event failed, or if
// none was done.
func (p *program) replayed(o *operator.Operator, did string, sum idem.Replayed) (done, error) {
	if !p.json {
		fmt.Fprintln(p.Stdout, command.Text("%s of %s: %s", p.events(int64(sum.Done+sum.Failed+sum.Unhandled)), terminal.Clean(o.SourceName()), did)+": "+p.sum(sum))
	}
	if sum.Unhandled > 0 {
		p.tell("this program has no handler for %s, which stay as they are", p.events(int64(sum.Unhandled)))
	}
	p.sayOvertaken(sum)
	d := done{Done: &sum.Done, Failed: &sum.Failed, Unhandled: &sum.Unhandled}
	for _, o := range sum.Overtaken {
		d.Overtaken = append(d.Overtaken, overtaken{o.Event.Scope, o.Event.ID, o.Event.Type, o.By.ID, o.By.Type})
	}
	if sum.Failed > 0 {
		p.tell("%s failed, and stay: idem list shows why", p.events(int64(sum.Failed)))
	}
	if sum.Failed > 0 || sum.Done == 0 {
		return d, errSaid
	}
	return d, nil
}

// shownOvertaken is the number of names that are printed of events that ran behind later ones.
const shownOvertaken = 20

// sayOvertaken names the events that ran, or would run, behind later ones of their entities.
func (p *program) sayOvertaken(sum idem.Replayed) {
	if len(sum.Overtaken) == 0 {
		return
	}
	p.tell("%s behind later ones of the same entity, which were done before: see that what the handler did is right", p.events(int64(len(sum.Overtaken))))
	for n, o := range sum.Overtaken {
		if n == shownOvertaken {
			p.say("  %s\n", command.Text("and %s more", len(sum.Overtaken)-n))
			return
		}
		p.say("  %s\n", terminal.Clean(command.Text("%s (%s) behind %s (%s)", o.Event.ID, o.Event.Type, o.By.ID, o.By.Type)))
	}
}

func (p *program) sum(r idem.Replayed) string {
	return command.Text("%s done, %s failed, %s without a handler", r.Done, r.Failed, r.Unhandled)
}

func (p *program) requeue(ctx context.Context) error {
	return p.carryOut(ctx, act{
		verb: "requeue", asks: "Requeue", what: "The workers of the inbox would process them again, each in its place in the order of its entity.",
		choose: p.choose,
		do: func(ctx context.Context, o *operator.Operator, c chosen) (done, error) {
			if p.dryRun {
				return done{}, nil
			}
			o.RequeueWithoutWorkers = p.withoutWorkers
			n, err := o.Requeue(ctx, c.filter, p.reason)
			if err != nil {
				return done{}, p.brokenOff(ctx, err)
			}
			return p.changed(o, "requeued for the workers; idem stats -every 2s shows them go", n), p.sayLeft(ctx, o, c, n, otherState)
		},
	})
}

func (p *program) discard(ctx context.Context) error {
	return p.carryOut(ctx, act{
		verb: "discard", asks: "Discard", what: "They would not be processed, and their bodies would be deleted. This cannot be undone.",
		choose: p.choose,
		do: func(ctx context.Context, o *operator.Operator, c chosen) (done, error) {
			if p.dryRun {
				return done{}, nil
			}
			n, err := o.Discard(ctx, c.filter, p.reason)
			if err != nil {
				return done{}, p.brokenOff(ctx, err)
			}
			return p.changed(o, "discarded", n), p.sayLeft(ctx, o, c, n, otherState)
		},
	})
}

func (p *program) acknowledge(ctx context.Context) error {
	p.filter.States = []idem.State{idem.StateParked}
	return p.carryOut(ctx, act{
		verb: "acknowledge", asks: "Acknowledge", what: "They would stay parked, and would not make health red any more.",
		choose: p.choose,
		do: func(ctx context.Context, o *operator.Operator, c chosen) (done, error) {
			if p.dryRun {
				return done{}, nil
			}
			n, err := o.Acknowledge(ctx, c.filter, p.reason)
			if err != nil {
				return done{}, err
			}
			return p.changed(o, "acknowledged, still parked", n), p.sayLeft(ctx, o, c, n, notFailed)
		},
	})
}

// erase deletes all that is stored of events beyond the fact that they came.
func (p *program) erase(ctx context.Context) error {
	what := "Their bodies, errors and traces would be deleted. This cannot be undone."
	if p.eraseOpen {
		what = "Their bodies, errors and traces would be deleted, and those that are not done would not be processed. This cannot be undone."
	}
	return p.carryOut(ctx, act{
		verb: "erase", asks: "Erase",
		what:   what + "\n" + "Not reached: brokers, an outbox's messages under other names, logs, backups: see docs/private-data.md.",
		choose: p.chooseToErase,
		do: func(ctx context.Context, o *operator.Operator, c chosen) (done, error) {
			if p.dryRun {
				return done{}, p.sayNotDone(c.events)
			}
			o.EraseNotDone = p.eraseOpen
			erased, err := o.Erase(ctx, c.events, p.reason)
			if err != nil {
				return done{}, p.brokenOff(ctx, err)
			}
			return p.changed(o, "erased", erased.Events), p.sayKept(o, erased)
		},
	})
}

// chooseToErase returns the events that are named, or that are about an entity, in any of
// their states.
func (p *program) chooseToErase(ctx context.Context, o *operator.Operator) (c chosen, err error) {
	add := func(s idem.StoredEvent) {
		if !slices.ContainsFunc(c.events, func(other idem.StoredEvent) bool { return other.Scope == s.Scope && other.ID == s.ID }) {
			c.events = append(c.events, s)
		}
	}
	for _, id := range p.filter.IDs {
		all, err := find(ctx, o, p.filter.Scopes, id)
		if err != nil {
			return c, err
		}
		for _, s := range all {
			p.matched = append(p.matched, id)
			add(s)
		}
	}
	for _, key := range p.filter.Keys {
		all, err := o.OfKey(ctx, p.filter.Scopes, key, p.most())
		if err != nil {
			return c, err
		}
		for _, s := range all {
			add(s)
		}
	}
	c.n = int64(len(c.events))
	return c, nil
}

// sayNotDone names the events that would be left alone.
func (p *program) sayNotDone(all []idem.StoredEvent) error {
	open := int64(0)
	for _, s := range all {
		if isOpen(s) {
			open++
		}
	}
	if open == 0 || p.eraseOpen {
		return nil
	}
	p.tell("%s would be left alone: not done; -discard gives them up and erases them", p.events(open))
	return errSaid
}

// sayKept names the events that were left alone.
func (p *program) sayKept(o *operator.Operator, e operator.Erased) error {
	if e.NotDone > 0 {
		p.tell("%s of %s left alone: not done; process them, or give -discard, which gives them up and erases them", p.events(e.NotDone), terminal.Clean(o.SourceName()))
	}
	if e.Busy > 0 {
		p.tell("%s of %s left alone: being processed or changed; run it again in a moment", p.events(e.Busy), terminal.Clean(o.SourceName()))
	}
	if e.NotDone+e.Busy > 0 {
		return errSaid
	}
	return nil
}

// relaySecrets is the variable of the environment that has the relay's secrets.
const relaySecrets = "IDEM_RELAY_SECRETS"

func (p *program) readmit(ctx context.Context) error {
	secrets := strings.Fields(os.Getenv(relaySecrets))
	if len(secrets) == 0 {
		return command.Usage("%s is not set: set it in the environment to the relay's secret, to several with a space between", relaySecrets)
	}
	p.filter = idem.Filter{Types: []string{idem.SetAsideType}, States: []idem.State{idem.StateParked}}
	return p.carryOut(ctx, act{
		verb: "readmit", asks: "Readmit", what: "They would be verified again, and what is genuine would be stored for the workers, or processed here.",
		choose: p.choose,
		do: func(ctx context.Context, o *operator.Operator, c chosen) (done, error) {
			if p.dryRun {
				return done{}, nil
			}
			return p.readmitOf(ctx, o, c, secrets)
		},
	})
}

func (p *program) readmitOf(ctx context.Context, o *operator.Operator, c chosen, secrets []string) (done, error) {
	receiver := p.receiverOf(o)
	if p.Receivers == nil && !p.withoutWorkers {
		alive, err := store.HasWorkers(ctx, p.pool, o.SourceName())
		if err == nil && !alive {
			err = operator.ErrNoWorkers
		}
		if err != nil {
			return done{}, err
		}
	}
	var r relay.Readmitted
	err := o.Record(ctx, "readmit", "messages that were set aside", p.reason, func(ctx context.Context) (result string, err error) {
		r, err = relay.Readmit(ctx, receiver, c.filter, secrets...)
		return fmt.Sprintf("%d accepted, %d left", r.Accepted, r.Left), err
	})
	if err != nil {
		return done{}, err
	}
	d := p.changed(o, "accepted", int64(r.Accepted))
	if err := p.sayLeft(ctx, o, c, int64(r.Accepted+r.Left), otherState); err != nil {
		return d, err
	}
	if r.Left > 0 {
		p.tell("%s of %s left set aside: %s", p.events(int64(r.Left)), terminal.Clean(o.SourceName()), short(r.Why.Error()))
		return d, errSaid
	}
	return d, nil
}

// receiverOf is the receiver of an operator's source.
func (p *program) receiverOf(o *operator.Operator) idem.Receiver {
	for n := range p.operators {
		if p.operators[n] == o {
			return p.receivers[n]
		}
	}
	return nil
}

// rescope moves the rows of one account to another.
func (p *program) rescope(ctx context.Context) error {
	if len(p.operators) != 1 {
		return command.Usage("say whose events to move with -source: there are several sources")
	}
	from, to := p.filter.Scopes[0], operator.Account{Source: p.operators[0].SourceName(), Scope: *p.toAccount}
	if p.toSource != "" {
		to.Source = p.toSource
	}
	return p.carryOut(ctx, act{
		verb: "rescope", asks: "Rescope", what: command.Text("All of account %s would be moved to %s. Every process that receives or processes events of the source\n"+
			"has to be stopped, and its broker drained: what comes later under the old name is a new event.", strconv.Quote(terminal.Clean(from)), terminal.Clean(to.String())),
		choose: func(ctx context.Context, o *operator.Operator) (chosen, error) {
			n, err := o.CountScope(ctx, from)
			return chosen{n: n}, err
		},
		do: func(ctx context.Context, o *operator.Operator, _ chosen) (done, error) {
			if p.dryRun {
				return done{}, nil
			}
			n, err := o.Rescope(ctx, from, to, p.reason)
			if err != nil {
				return done{}, err
			}
			return p.changed(o, command.Text("moved to %s", terminal.Clean(to.String())), n), nil
		},
	})
}

// prune forgets old events, by the application's settings or the flags, and repairs
// the traces of rows that were changed by hand.
func (p *program) prune(ctx context.Context) error {
	for _, o := range p.operators {
		if p.retention > 0 {
			o.Retention, o.AllowProcessingTwice = p.retention, p.allowProcessingTwice
		}
		if p.parkedRetention > 0 {
			o.ParkedRetention = p.parkedRetention
		}
		if p.auditRetention > 0 || p.Receivers == nil { // the prebuilt command does not know the application's
			o.AuditRetention = p.auditRetention
		}
	}
	return p.carryOut(ctx, act{
		verb: "prune", asks: "Prune", what: command.Text("A forgotten event that is delivered again is processed again.\nThe ages: %s.", p.ages()), always: true,
		choose: func(ctx context.Context, o *operator.Operator) (chosen, error) {
			n, err := o.DryPrune(ctx)
			return chosen{n: n}, err
		},
		do: func(ctx context.Context, o *operator.Operator, _ chosen) (result done, err error) {
			if p.dryRun {
				return done{}, nil
			}
			err = o.Record(ctx, "prune", agesOf(o), p.reason, func(ctx context.Context) (string, error) {
				n, err := o.Prune(ctx)
				if err == nil {
					result = p.changed(o, "forgotten", n)
				}
				return fmt.Sprintf("%d forgotten", n), err
			})
			return result, err
		},
	})
}

// ages are those from which events are forgotten, by the source.
func (p *program) ages() string {
	var all []string
	for _, o := range p.operators {
		all = append(all, terminal.Clean(o.SourceName())+" "+command.Text("older than %s; parked ones: %s; the audit trail: %s", p.longAge(o.Retention), p.longAge(o.ParkedRetention), p.longAge(o.AuditRetention)))
	}
	return strings.Join(all, "; ")
}

func agesOf(o *operator.Operator) string {
	return fmt.Sprintf("older than %s; parked ones: %s; the audit trail: %s", longAge(o.Retention), longAge(o.ParkedRetention), longAge(o.AuditRetention))
}

// longAge is an age in the reader's language.
func (p *program) longAge(d time.Duration) string {
	if d <= 0 {
		return "never"
	}
	return age(d)
}

func longAge(d time.Duration) string {
	if d <= 0 {
		return "never"
	}
	return age(d)
}
