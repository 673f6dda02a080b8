package operator

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker/relay"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/internal/lang"
)

// Plan is an action that is not begun: its events, and its effect on them. Show both, ask, and call [Plan.Do],
// which acts on these events, and on no others:
//
//	plan, err := ana.PlanReplay(ctx, idem.Filter{Types: []string{"PAYMENT_RECEIVED"}})
//	first, err := plan.First(ctx)
//	… // show plan.Count, first and plan.Effect, and ask
//	result, err := plan.Do(ctx, "the order is there now")
type Plan struct {
	Action  string      // as the audit trail has it
	Did     string      // in the past, as it goes on after "3 events:"
	Effect  []string    // what would happen, a paragraph each, in English
	Filter  idem.Filter // names the events; its Events are nil of PlanRescope and PlanPrune, which take what is there then
	Count   int64       // of the events
	NotDone int64       // of the events that PlanErase has found: those that it leaves alone unless EraseNotDone is set
	Always  bool        // it does something even where Count is 0
	Atomic  bool        // an error of Do means that nothing was changed

	o     *Operator
	asked *idem.Filter // that has chosen the events; nil where they were named
	keep  func(rowKey string) bool
	do    func(ctx context.Context, reason string) (Result, error)
}

// Result is the end of an action.
type Result struct {
	Acted    int64         // events that the action was done to
	Left     []Left        // events of the plan that it was not done to
	Replayed idem.Replayed // of a replay or dry replay
	Short    bool          // a person has something left to do: an event failed, none was done, or events of an erase or a readmit were left
}

// Left is a number of events that an action left alone.
type Left struct {
	Events int64
	Why    string // goes on after "left alone:"
}

// PlanReplay plans [Operator.Replay].
func (o *Operator) PlanReplay(ctx context.Context, f idem.Filter) (*Plan, error) {
	return o.planReplay(ctx, "replay", "replayed", o.Replay, f,
		"The handler of each would run here, the oldest first, one after the other, each in its own transaction.")
}

// PlanDryReplay plans [Operator.DryReplay].
func (o *Operator) PlanDryReplay(ctx context.Context, f idem.Filter) (*Plan, error) {
	return o.planReplay(ctx, "dry replay", "tried, and rolled back", o.DryReplay, f,
		"The handler of each runs here, and is rolled back. What it does outside of its transaction does happen.")
}

// PlanRequeue plans [Operator.Requeue].
func (o *Operator) PlanRequeue(ctx context.Context, f idem.Filter) (*Plan, error) {
	return o.planChange(ctx, Plan{Action: "requeue", Did: "requeued for the workers", Atomic: true}, o.Requeue, otherState, f,
		"The workers of the inbox would process them again, each in its place in the order of its entity. One for which they have no handler is unhandled again.")
}

// PlanDiscard plans [Operator.Discard].
func (o *Operator) PlanDiscard(ctx context.Context, f idem.Filter) (*Plan, error) {
	return o.planChange(ctx, Plan{Action: "discard", Did: "discarded", Atomic: true}, o.Discard, otherState, f,
		"They would not be processed, and their bodies would be deleted, unless the application keeps bodies. This cannot be undone.")
}

// PlanAcknowledge plans [Operator.Acknowledge]. Where f names no event, the plan is about those that have failed.
func (o *Operator) PlanAcknowledge(ctx context.Context, f idem.Filter) (*Plan, error) {
	f.Failed = f.Failed || f.IDs == nil && f.Events == nil
	return o.planChange(ctx, Plan{Action: "acknowledge", Did: "acknowledged, not processed", Atomic: true}, o.Acknowledge,
		"waiting for their turn and never tried, being processed, or done by now", noted(f),
		"They would stay as they are, and would not make health red any more: a parked one until it fails again, one that is tried again by itself until it is parked.")
}

// PlanUnacknowledge plans [Operator.Unacknowledge].
func (o *Operator) PlanUnacknowledge(ctx context.Context, f idem.Filter) (*Plan, error) {
	p, err := o.planChange(ctx, Plan{Action: "unacknowledge", Did: "acknowledged no more", Atomic: true}, o.Unacknowledge, otherState, noted(f),
		"They would make health red again.")
	if err != nil {
		return nil, err
	}
	chosen, err := o.ByKey(ctx, p.Filter.Events)
	acknowledged := map[string]bool{}
	for _, s := range chosen {
		acknowledged[store.Event(s.Event).RowKey()] = !s.AcknowledgedAt.IsZero()
	}
	p.Keep(func(key string) bool { return acknowledged[key] })
	return p, err
}

// otherState is the reason for which most actions leave events alone.
const otherState = "done, in another state by now, or being processed"

func (o *Operator) planReplay(ctx context.Context, action, did string, run func(context.Context, idem.Filter, string) (idem.Replayed, error), f idem.Filter, effect string) (*Plan, error) {
	p := &Plan{Action: action, Did: did, Effect: []string{effect}}
	p.do = func(ctx context.Context, reason string) (r Result, err error) {
		r.Replayed, err = run(ctx, p.Filter, reason)
		r.Acted = int64(r.Replayed.Done + r.Replayed.Failed + r.Replayed.Unhandled)
		r.Short = r.Replayed.Failed > 0 || r.Replayed.Done == 0
		r.leaves(p.Count-r.Acted, otherState)
		return r, err
	}
	return p, p.choose(ctx, o, f)
}

func (o *Operator) planChange(ctx context.Context, of Plan, change func(context.Context, idem.Filter, string) (int64, error), why string, f idem.Filter, effect string) (*Plan, error) {
	p := &of
	p.Effect = []string{effect}
	p.do = func(ctx context.Context, reason string) (r Result, err error) {
		r.Acted, err = change(ctx, p.Filter, reason)
		r.leaves(p.Count-r.Acted, why)
		return r, err
	}
	return p, p.choose(ctx, o, f)
}

// PlanErase plans [Operator.Erase] of named events, in any state. f names them by Events, or by IDs or Keys,
// which are those of the accounts in Scopes, or of all accounts. Its other fields are not used.
func (o *Operator) PlanErase(ctx context.Context, f idem.Filter) (*Plan, error) {
	found, err := o.findNamed(ctx, f)
	if err != nil {
		return nil, err
	}
	p := &Plan{Action: "erase", Did: "erased", Atomic: true, o: o, Filter: idem.Filter{Events: []string{}}, Effect: []string{
		"Their bodies, errors and traces would be deleted. This cannot be undone.",
		"It stays that they came: their ids, types, entities, states and times, so that a delivery of them is a duplicate. It stays in the audit trail who erased them, and why: name no person in the reason.",
		"Not reached: the application's own tables, messages of an outbox, what a broker keeps, logs, traces and backups: see docs/private-data.md.",
	}}
	for _, s := range found {
		p.Filter.Events = append(p.Filter.Events, store.Event(s.Event).RowKey())
		if slices.Contains(notDone, s.State) {
			p.NotDone++
		}
	}
	p.Count = int64(len(found))
	p.do = func(ctx context.Context, reason string) (r Result, err error) {
		if p.keep != nil {
			found = slices.DeleteFunc(found, func(s idem.StoredEvent) bool { return !p.keep(store.Event(s.Event).RowKey()) })
		}
		erased, err := o.Erase(ctx, found, reason)
		r.Acted, r.Short = erased.Events, erased.NotDone+erased.Busy > 0
		r.leaves(erased.NotDone, "not done; process them, or have them given up and erased")
		r.leaves(erased.Busy, "being processed or changed; erase them again in a moment")
		return r, err
	}
	return p, nil
}

// notDone are the states of events that are not done.
var notDone = []idem.State{idem.StatePending, idem.StateRetrying, idem.StateUnhandled, idem.StateParked}

// findNamed returns the events that f names, in any state, each once.
func (o *Operator) findNamed(ctx context.Context, f idem.Filter) (all []idem.StoredEvent, err error) {
	seen := map[string]bool{}
	add := func(found []idem.StoredEvent, failed error) {
		for _, s := range found {
			if key := store.Event(s.Event).RowKey(); s.Source == o.SourceName() && !seen[key] {
				seen[key], all = true, append(all, s)
			}
		}
		if err == nil {
			err = failed
		}
	}
	add(o.ByKey(ctx, f.Events))
	for _, id := range f.IDs {
		found, err := o.WithID(ctx, id)
		add(slices.DeleteFunc(found, func(s idem.StoredEvent) bool { return f.Scopes != nil && !slices.Contains(f.Scopes, s.Scope) }), err)
	}
	for _, key := range f.Keys {
		add(o.OfKey(ctx, f.Scopes, key, 1<<30))
	}
	return all, err
}

// PlanRescope plans [Operator.Rescope].
func (o *Operator) PlanRescope(ctx context.Context, scope string, to Account) (*Plan, error) {
	n, err := o.CountScope(ctx, scope)
	p := &Plan{Action: "rescope", Did: "moved to " + to.String(), Atomic: true, o: o, Count: n, Effect: []string{
		fmt.Sprintf("All of account %s would be moved to %s. Every process that receives or processes events of the source has to be stopped, "+
			"and its broker drained: what comes later under the old name is a new event.", strconv.Quote(scope), to),
	}}
	p.do = func(ctx context.Context, reason string) (r Result, err error) {
		r.Acted, err = o.Rescope(ctx, scope, to, reason)
		return r, err
	}
	return p, err
}

// PlanPrune plans [idem.Common.Prune], and records it.
func (o *Operator) PlanPrune(ctx context.Context) (*Plan, error) {
	age := func(d time.Duration) string {
		if d <= 0 {
			return "never"
		}
		return lang.English.Age(d)
	}
	ages := fmt.Sprintf("older than %s; parked ones: %s; the audit trail: %s", age(o.Retention.Events), age(o.Retention.Parked), age(o.Retention.Audit))
	n, err := o.in.DryPrune(ctx)
	p := &Plan{Action: "prune", Did: "forgotten", Always: true, o: o, Count: n, Effect: []string{
		"A forgotten event that is delivered again is processed again.", "The ages: " + o.SourceName() + " " + ages + ".",
	}}
	p.do = func(ctx context.Context, reason string) (r Result, err error) {
		err = o.Record(ctx, "prune", ages, reason, func(ctx context.Context) (string, error) {
			r.Acted, err = o.Prune(ctx)
			return fmt.Sprintf("%d forgotten", r.Acted), err
		})
		return r, err
	}
	return p, err
}

// PlanReadmit plans [relay.Readmit] of the messages that are set aside, with the relay's secrets, and records it. As
// [Operator.Requeue], it needs workers where the receiver has any.
func (o *Operator) PlanReadmit(ctx context.Context, secrets ...string) (*Plan, error) {
	p := &Plan{Action: "readmit", Did: "accepted", Effect: []string{"They would be verified again, and what is genuine would be stored for the workers, or processed here."}}
	p.do = func(ctx context.Context, reason string) (r Result, err error) {
		if o.workers != nil {
			if err := o.findWorkers(ctx); err != nil {
				return r, err
			}
		}
		err = o.Record(ctx, "readmit", "messages that were set aside", reason, func(ctx context.Context) (string, error) {
			sum, err := relay.Readmit(ctx, o.receiver, p.Filter, secrets...)
			r.Acted, r.Short = int64(sum.Accepted), sum.Left > 0
			r.leaves(p.Count-int64(sum.Accepted+sum.Left), otherState)
			if sum.Why != nil {
				r.leaves(int64(sum.Left), "set aside still: "+sum.Why.Error())
			}
			return fmt.Sprintf("%d accepted, %d left", sum.Accepted, sum.Left), err
		})
		return r, err
	}
	return p, p.choose(ctx, o, idem.Filter{Types: []string{store.SetAsideType}, States: []idem.State{idem.StateParked}})
}

// choose has the plan be about the events that f chooses now.
func (p *Plan) choose(ctx context.Context, o *Operator, f idem.Filter) (err error) {
	p.o, p.asked = o, &f
	if p.Filter, err = o.Choose(ctx, f); err != nil {
		return fmt.Errorf("operator: %s: %w", p.Action, err)
	}
	p.Count = int64(len(p.Filter.Events))
	return nil
}

func (r *Result) leaves(n int64, why string) {
	if n > 0 {
		r.Left = append(r.Left, Left{n, why})
	}
}

// Keep narrows the plan to those of its events that keep returns true for. The plan must name its events.
func (p *Plan) Keep(keep func(rowKey string) bool) {
	if before := p.keep; before != nil {
		also := keep
		keep = func(key string) bool { return before(key) && also(key) }
	}
	p.keep = keep
	p.Filter.Events = slices.DeleteFunc(p.Filter.Events, func(key string) bool { return !keep(key) })
	p.Count = int64(len(p.Filter.Events))
}

// first is the number of events that a person is shown of those that an action is about.
const first = 5

// First returns the first five events, in the order of arrival, without their payloads.
func (p *Plan) First(ctx context.Context) ([]idem.StoredEvent, error) {
	return p.o.ByKey(ctx, p.Filter.Events[:min(len(p.Filter.Events), first)])
}

// Do acts on the events of the plan, and records it with the reason.
func (p *Plan) Do(ctx context.Context, reason string) (Result, error) { return p.do(ctx, reason) }

// Came counts the events that the plan's filter chooses now and did not choose before. Do leaves them alone.
func (p *Plan) Came(ctx context.Context) (n int64, err error) {
	if p.asked == nil {
		return 0, nil
	}
	now, err := p.o.Choose(ctx, *p.asked)
	if err != nil {
		return 0, fmt.Errorf("operator: %s: %w", p.Action, err)
	}
	known := make(map[string]bool, len(p.Filter.Events))
	for _, key := range p.Filter.Events {
		known[key] = true
	}
	for _, key := range now.Events {
		if !known[key] && (p.keep == nil || p.keep(key)) {
			n++
		}
	}
	return n, nil
}
