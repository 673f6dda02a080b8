package asaas

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/optional"
)

// owed is ListOwed for all that Recover was given.
func (r *recovery) owed(ctx context.Context) ([]Owed, error) {
	found := make(map[EventType]Owed)
	for _, events := range r.events {
		if err := countOwed(ctx, events, found); err != nil {
			return nil, fmt.Errorf("what the application owes is not known: %w", err)
		}
	}
	return mostFirst(found), nil
}

// settle replays the owed events, and reports those that are owed then.
func (r *recovery) settle(ctx context.Context, q queue) error {
	owed, err := r.owed(ctx) // anew: Asaas has delivered since
	if err != nil || len(r.events) == 0 {
		return err
	}
	if slices.ContainsFunc(owed, func(o Owed) bool { return o.Parked+o.Retrying > 0 }) {
		if err := r.replay(ctx, q); err != nil {
			return err
		}
		if owed, err = r.owed(ctx); err != nil {
			return err
		}
	}
	return r.tell(RecoveryProgress{Step: RecoveryOwed, Owed: owed, LastArrival: q.lastArrival}, q)
}

// lastArrival is when the application got its last event; zero if that is not
// known.
func (r *recovery) lastArrival(ctx context.Context) (last time.Time, err error) {
	for _, events := range r.events {
		at, err := events.LastArrival(ctx)
		if err != nil {
			return last, fmt.Errorf("what the application owes is not known: %w", err)
		}
		if at.After(last) {
			last = at
		}
	}
	return last, nil
}

func (r *recovery) replay(ctx context.Context, q queue) error {
	var total idem.Replayed
	for _, events := range r.events {
		n, err := events.Replay(ctx, idem.Filter{States: OwedStates()})
		total.Done, total.Failed, total.Unhandled = total.Done+n.Done, total.Failed+n.Failed, total.Unhandled+n.Unhandled
		total.Overtaken = append(total.Overtaken, n.Overtaken...)
		if err != nil {
			r.did(replayed(total))
			return err
		}
	}
	r.did(replayed(total))
	return r.tell(RecoveryProgress{Step: RecoveryReplayed, Replayed: total}, q)
}

// owedFirst is w with the types that are owed before the others.
func owedFirst(w *Webhook, owed []Owed) *Webhook {
	types := slices.Clone(w.Events.Or(nil))
	slices.SortStableFunc(types, func(a, b EventType) int { return placeIn(owed, a) - placeIn(owed, b) })
	out := *w
	if len(types) > 0 {
		out.Events = optional.Of(types)
	}
	return &out
}

func placeIn(owed []Owed, t EventType) int {
	if i := slices.IndexFunc(owed, func(o Owed) bool { return o.Type == canonical(t) }); i >= 0 {
		return i
	}
	return len(owed)
}
