package operator

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
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
	Atomic  bool        // it changes all of its events or none; after an error of Do the trail has the result if it did

	o            *Operator
	needsWorkers bool
	asked        *idem.Filter // that has chosen the events; nil where they were named
	keep         func(rowKey string) bool
	do           func(ctx context.Context, reason string) (Result, error)
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

// first is the number of events that a person is shown of those that an action is about.
const first = 5

// First returns the first five events, in the order of arrival, without their payloads.
func (p *Plan) First(ctx context.Context) ([]idem.StoredEvent, error) {
	return p.o.ByKey(ctx, p.Filter.Events[:min(len(p.Filter.Events), first)])
}

// Behind counts the later events of the same entities that wait for those of the plan: they go on once these are
// discarded.
func (p *Plan) Behind(ctx context.Context) (int64, error) {
	return query(ctx, p.o, "counting the events that wait", func(ctx context.Context, db *pgxpool.Pool) (int64, error) {
		return store.CountBehind(ctx, db, p.Filter.Events)
	})
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

// Do acts on the events of the plan, and records it with the reason. It leaves alone an event that came since the plan
// was made, and one that is in none of the states any more that the plan was about.
func (p *Plan) Do(ctx context.Context, reason string) (Result, error) {
	if p.needsWorkers {
		if err := p.o.findWorkers(ctx); err != nil {
			return Result{}, fmt.Errorf("operator: %s: %w", p.Action, err)
		}
	}
	return p.do(ctx, reason)
}

// Came counts the events that the plan's filter chooses now and did not choose before. Do leaves them alone.
func (p *Plan) Came(ctx context.Context) (n int64, err error) {
	if p.asked == nil {
		return 0, nil
	}
	now, err := p.o.in.Choose(ctx, *p.asked)
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

// choose has the plan be about the events that f chooses now.
func (p *Plan) choose(ctx context.Context, o *Operator, f idem.Filter) (err error) {
	p.o, p.asked = o, &f
	if p.Filter, err = o.in.Choose(ctx, f); err != nil {
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

// otherState is the reason for which most actions leave events alone.
const otherState = "done, in another state by now, or being processed"

// skipped returns, in words, the number of events of the plan that an action left alone.
func (p *Plan) skipped(acted int) string {
	if n := len(p.Filter.Events) - acted; n > 0 {
		return fmt.Sprintf("; %d left alone: %s", n, otherState)
	}
	return ""
}

// planChange plans an action that changes its events in one transaction, and records that in it; why it leaves others.
func (o *Operator) planChange(
	ctx context.Context, p *Plan, f idem.Filter, why string,
	change func(ctx context.Context, on *acting, chosen idem.Filter, reason string) (int64, error),
) (*Plan, error) {
	p.Atomic = true
	p.do = func(ctx context.Context, reason string) (r Result, err error) {
		err = o.act(ctx, p, reason, func(ctx context.Context, on *acting, chosen idem.Filter) (string, error) {
			r.Acted, err = change(ctx, on, chosen, reason)
			return "", err
		})
		r.leaves(p.Count-r.Acted, why)
		return r, err
	}
	return p, p.choose(ctx, o, f)
}

// act records an action on those events of the plan that its filter still chooses. do gets the filter that names them.
func (o *Operator) act(ctx context.Context, p *Plan, reason string, do func(context.Context, *acting, idem.Filter) (string, error)) error {
	chosen, err := o.in.Choose(ctx, p.Filter)
	if err != nil {
		return fmt.Errorf("operator: %s: %w", p.Action, err)
	}
	a := store.Action{Actor: o.name, Action: p.Action, Source: o.SourceName(), Filter: p.Filter.String(), Reason: reason}
	named := idem.Filter{States: p.Filter.States, Events: chosen.Events} // nothing else of an event changes
	return o.record(ctx, a, chosen.Events, func(ctx context.Context, on *acting) (string, error) { return do(ctx, on, named) })
}

// changed returns a function that records the result of the action on the events of a plan.
func (a *acting) changed(p *Plan, did string) func(context.Context, pgx.Tx, []string) error {
	return func(ctx context.Context, tx pgx.Tx, events []string) error {
		return a.record(ctx, tx, events, fmt.Sprintf("%d %s", len(events), did)+p.skipped(len(events)), did)
	}
}
