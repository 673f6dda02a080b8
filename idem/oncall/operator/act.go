package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker/relay"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/internal/lang"
)

// PlanReplay plans [idem.Inbox.Replay]. It returns an error if events are paused, unless ReplayPaused is set. Do leaves
// events that are done by then. If it was broken off, plan it again: it goes on with the rest.
func (o *Operator) PlanReplay(ctx context.Context, f idem.Filter) (*Plan, error) {
	return o.planReplay(ctx, f, false, &Plan{Action: "replay", Did: "replayed", Effect: []string{
		"The handler of each would run here, the oldest first, one after the other, each in its own transaction.",
	}})
}

// PlanDryReplay plans [idem.Inbox.DryReplay].
func (o *Operator) PlanDryReplay(ctx context.Context, f idem.Filter) (*Plan, error) {
	return o.planReplay(ctx, f, true, &Plan{Action: "dry replay", Did: "tried, and rolled back", Effect: []string{
		"The handler of each runs here, and is rolled back. What it does outside of its transaction does happen.",
	}})
}

// planReplay plans a replay or dry replay.
func (o *Operator) planReplay(ctx context.Context, f idem.Filter, dry bool, p *Plan) (*Plan, error) {
	p.do = func(ctx context.Context, reason string) (r Result, err error) {
		r.Replayed, err = o.replay(ctx, p, reason, dry)
		r.Acted = int64(r.Replayed.Done + r.Replayed.Failed + r.Replayed.Unhandled)
		r.Short = r.Replayed.Failed > 0 || r.Replayed.Left > 0 || r.Replayed.Done == 0
		r.leaves(p.Count-r.Acted, otherState)
		return r, err
	}
	if err := p.choose(ctx, o, f); err != nil || dry || o.ReplayPaused {
		return p, err
	}
	return p, o.refusePaused(ctx, p, ", or replay them all the same: -paused of idem replay")
}

// replay records and runs a replay or dry replay. Its result names the first event that failed.
func (o *Operator) replay(ctx context.Context, p *Plan, reason string, dry bool) (sum idem.Replayed, err error) {
	err = o.act(ctx, p, reason, func(ctx context.Context, on *acting, chosen idem.Filter) (string, error) {
		left := make(map[string]bool, len(chosen.Events))
		for _, key := range chosen.Events {
			left[key] = true
		}
		first, last := "", idem.Replayed{}
		sum, err = o.in.Replay(ctx, chosen, dry, func(sum idem.Replayed, e idem.Event, failure error) {
			key := store.Event(e).RowKey()
			result := became(sum, last)
			if result != "left" { // or somebody else has done it
				delete(left, key)
			}
			on.note(ctx, key, result)
			last = sum
			if failure != nil && first == "" {
				first = fmt.Sprintf("; first failure: %s %s", e.Type, e.ID) // without its error, which may name a person
			}
			if o.Failed != nil && failure != nil {
				o.Failed(e, failure)
			}
			if o.Progress != nil {
				o.Progress(sum, len(chosen.Events))
			}
		})
		rest := ""
		if err == nil {
			rest = p.skipped(len(chosen.Events) - len(left))
		}
		done := fmt.Sprintf("%d done, %d failed, %d without a handler", sum.Done, sum.Failed, sum.Unhandled)
		return done + behind(sum) + rest + first, err
	})
	return sum, err
}

// behind names the first event of a replay that ran behind a later one.
func behind(sum idem.Replayed) string {
	switch n := len(sum.Overtaken); n {
	case 0:
		return ""
	case 1:
		return "; " + sum.Overtaken[0].String()
	default:
		return fmt.Sprintf("; %s; %d more ran behind later ones", sum.Overtaken[0], n-1)
	}
}

// became returns the result of an event, by the sums after and before it.
func became(sum, last idem.Replayed) string {
	switch {
	case sum.Done > last.Done:
		return "done"
	case sum.Failed > last.Failed:
		return "failed"
	case sum.Unhandled > last.Unhandled:
		return "unhandled"
	}
	return "left"
}

// PlanRequeue plans [idem.Inbox.Requeue]. It returns an error if events are paused. Do returns [ErrNoWorkers] where
// no workers of the source are alive in any process: the requeued events would wait, and the provider's next delivery
// of one would be a duplicate.
func (o *Operator) PlanRequeue(ctx context.Context, f idem.Filter) (*Plan, error) {
	p := &Plan{Action: "requeue", Did: "requeued for the workers", needsWorkers: true, Effect: []string{
		"The workers of the inbox would process them again, each in its place in the order of its entity. One for which they have no handler is unhandled again.",
	}}
	_, err := o.planChange(ctx, p, f, otherState, func(ctx context.Context, on *acting, chosen idem.Filter, _ string) (int64, error) {
		return o.in.Requeue(ctx, chosen, on.changed(p, "requeued"))
	})
	if err == nil {
		err = o.refusePaused(ctx, p, " first")
	}
	return p, err
}

// findWorkers returns an error if nothing would process the requeued events.
func (o *Operator) findWorkers(ctx context.Context) error {
	if o.RequeueWithoutWorkers {
		return nil
	}
	var alive []store.Worker
	err := pgtx.Ask(ctx, o.in.Pool(), func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		alive, err = store.LivingWorkers(ctx, conn, o.SourceName())
		return err
	})
	switch {
	case err != nil:
		return store.Explain(err)
	case len(alive) == 0:
		return ErrNoWorkers
	}
	return nil
}

// ErrNoWorkers is the error of [Plan.Do] where no workers of the source have given a sign of life.
var ErrNoWorkers = errors.New("no workers of this source are alive, and what is requeued would wait for them: " +
	"replay the events, or start the program that runs the inbox; if it starts later, say that you requeue without workers")

// PlanDiscard plans [idem.Inbox.Discard].
func (o *Operator) PlanDiscard(ctx context.Context, f idem.Filter) (*Plan, error) {
	p := &Plan{Action: "discard", Did: "discarded", Effect: []string{
		"They would not be processed, and their bodies would be deleted, unless the application keeps bodies. This cannot be undone.",
	}}
	return o.planChange(ctx, p, f, otherState, func(ctx context.Context, on *acting, chosen idem.Filter, reason string) (int64, error) {
		return o.in.Discard(ctx, chosen, reason, on.changed(p, "discarded"))
	})
}

// PlanAcknowledge plans to record that a person takes care of events that are parked, or have failed and are tried
// again by themselves. They do not make [health] red any more: a parked one until it fails again, another one until
// it is parked. They stay as they are, and so does what is done to them. It leaves alone an event that waits for
// another one or for its first attempt, and one that is being processed. Where later events of an entity wait for
// a parked one, those that come afterwards make health red again. f's States are not used; where it names no event, the
// plan is about those that have failed. [Operator.PlanUnacknowledge] takes it back.
//
// [health]: https://pkg.go.dev/github.com/paghooks/paghooks/idem/health
func (o *Operator) PlanAcknowledge(ctx context.Context, f idem.Filter) (*Plan, error) {
	f.Failed = f.Failed || f.IDs == nil && f.Events == nil
	p := &Plan{Action: "acknowledge", Did: "acknowledged, not processed", Effect: []string{
		"They would stay as they are, and would not make health red any more: a parked one until it fails again, one that is tried again by itself until it is parked.",
	}}
	return o.planNote(ctx, p, f, true, "waiting for their turn and never tried, being processed, or done by now")
}

// PlanUnacknowledge plans to take back what [Operator.PlanAcknowledge] has done to events, whoever did it.
func (o *Operator) PlanUnacknowledge(ctx context.Context, f idem.Filter) (*Plan, error) {
	p := &Plan{Action: "unacknowledge", Did: "acknowledged no more", Effect: []string{"They would make health red again."}}
	if _, err := o.planNote(ctx, p, f, false, otherState); err != nil {
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

// planNote plans to acknowledge events, or to take that back.
func (o *Operator) planNote(ctx context.Context, p *Plan, f idem.Filter, yes bool, why string) (*Plan, error) {
	f.States = []idem.State{idem.StatePending, idem.StateParked}
	return o.planChange(ctx, p, f, why, func(ctx context.Context, on *acting, chosen idem.Filter, _ string) (n int64, err error) {
		err = pgtx.Change(ctx, o.in.Pool(), func(ctx context.Context, tx pgx.Tx) error {
			keys, err := store.Acknowledge(ctx, tx, chosen.Events, yes)
			if err != nil {
				return store.Explain(err)
			}
			n = int64(len(keys))
			return on.record(ctx, tx, keys, fmt.Sprintf("%d %sd", n, p.Action), p.Action+"d")
		})
		if err != nil {
			return 0, fmt.Errorf("operator: %s: %w", p.Action, err)
		}
		return n, nil
	})
}

// PlanErase plans to delete the stored data of events beyond the fact that they came, in one transaction: their bodies,
// also those that [idem.Inbox.KeepPayloads] has archived, their errors, the history of their attempts, and their
// traces. It is for a person that asks for it, and cannot be undone. Do needs a reason.
//
// f names the events, in any state, by Events, or by IDs or Keys, which are those of the accounts in Scopes, or of all
// accounts. Its other fields are not used.
//
// What stays is that the event came: its ids, type, entity, state, times and numbers of attempts, and a hash of
// its body. So it has no effect and stores nothing if it comes again, from the provider or from a broker.
// [idem.Inbox.Prune] forgets that, too.
//
// Events that are done or discarded are erased. One that is not done is left alone, as it may be an unprocessed
// payment, unless EraseNotDone is set: then it is discarded in the same transaction, and later events of its entity are
// processed.
//
// The audit trail gets the row keys of the events that were erased, and the reason as it is: write no name into that.
//
// It does not reach the application's own tables; messages of an outbox, which are events of another source: erase
// them through an operator of that; what a broker keeps; logs, traces and backups. See docs/private-data.md.
func (o *Operator) PlanErase(ctx context.Context, f idem.Filter) (*Plan, error) {
	found, err := o.findNamed(ctx, f)
	if err != nil {
		return nil, err
	}
	p := &Plan{Action: "erase", Did: "erased", Atomic: true, o: o, Count: int64(len(found)), Filter: idem.Filter{Events: []string{}}, Effect: []string{
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
	p.do = func(ctx context.Context, reason string) (r Result, err error) {
		gone, err := o.erase(ctx, p.Filter.Events, reason)
		r.Acted, r.Short = int64(len(gone.Events)), gone.Open+gone.Busy > 0
		r.leaves(gone.Open, "not done; process them, or have them given up and erased")
		r.leaves(gone.Busy, "being processed or changed; erase them again in a moment")
		return r, err
	}
	return p, nil
}

// notDone are the states of events that are not done.
var notDone = []idem.State{idem.StatePending, idem.StateUnhandled, idem.StateParked}

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

// erase records and erases events. Of those that it leaves, Open are not done, and Busy are being changed.
func (o *Operator) erase(ctx context.Context, keys []string, reason string) (gone store.Erased, err error) {
	if reason == "" {
		return gone, errors.New("operator: erasing events: give a reason: it is all that says why they are gone")
	}
	open := idem.Filter{States: notDone, Events: []string{}}
	if o.EraseNotDone {
		open.Events = keys
	}
	a := store.Action{Actor: o.name, Action: "erase", Source: o.SourceName(), Filter: fmt.Sprintf("%d by row key", len(keys)), Reason: reason}
	err = o.record(ctx, a, keys, func(ctx context.Context, on *acting) (string, error) {
		_, err := o.in.Discard(ctx, open, reason, func(ctx context.Context, tx pgx.Tx, _ []string) (err error) {
			if gone, err = store.Erase(ctx, tx, keys, o.EraseNotDone); err != nil {
				return err
			}
			if o.EraseNotDone {
				gone.Open, gone.Busy = 0, gone.Busy+gone.Open
			}
			result := fmt.Sprintf("%d erased", len(gone.Events))
			if gone.Open > 0 {
				result += fmt.Sprintf("; %d left alone: not done", gone.Open)
			}
			if gone.Busy > 0 {
				result += fmt.Sprintf("; %d left alone: being processed or changed", gone.Busy)
			}
			return on.record(ctx, tx, gone.Events, result, "erased")
		})
		if err != nil {
			gone = store.Erased{}
			return "nothing was erased", fmt.Errorf("operator: erasing events: %w", store.Explain(err))
		}
		return "", nil
	})
	return gone, err
}

// PlanReadmit plans [relay.Readmit] of the messages that are set aside, with the relay's secrets. As
// [Operator.PlanRequeue], it needs workers.
func (o *Operator) PlanReadmit(ctx context.Context, secrets ...string) (*Plan, error) {
	p := &Plan{Action: "readmit", Did: "accepted", needsWorkers: true, Effect: []string{
		"They would be verified again, and what is genuine would be stored for the workers.",
	}}
	p.do = func(ctx context.Context, reason string) (r Result, err error) {
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

// PlanPrune plans [idem.Inbox.Prune].
func (o *Operator) PlanPrune(ctx context.Context) (*Plan, error) {
	age := func(d time.Duration) string {
		if d <= 0 {
			return "never"
		}
		return lang.English.Age(d)
	}
	keep := o.Inbox.Retention
	ages := fmt.Sprintf("older than %s; parked ones: %s; the audit trail: %s", age(keep.Events), age(keep.Parked), age(keep.Audit))
	n, err := o.in.DryPrune(ctx)
	p := &Plan{Action: "prune", Did: "forgotten", Always: true, o: o, Count: n, Effect: []string{
		"A forgotten event that is delivered again is processed again.", "The ages: " + o.SourceName() + " " + ages + ".",
	}}
	p.do = func(ctx context.Context, reason string) (r Result, err error) {
		err = o.Record(ctx, "prune", ages, reason, func(ctx context.Context) (string, error) {
			r.Acted, err = o.Inbox.Prune(ctx)
			return fmt.Sprintf("%d forgotten", r.Acted), err
		})
		return r, err
	}
	return p, err
}
