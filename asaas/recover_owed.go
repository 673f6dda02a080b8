package asaas

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/optional"
)

// EventStore holds an application's events: an [*idem.Processor] or
// [*idem.Inbox].
type EventStore interface {
	List(ctx context.Context, f idem.Filter) iter.Seq2[idem.StoredEvent, error]
	Replay(ctx context.Context, f idem.Filter) (idem.Replayed, error)
	LastArrival(ctx context.Context) (time.Time, error)
}

var (
	_ EventStore = (*idem.Processor)(nil)
	_ EventStore = (*idem.Inbox)(nil)
)

// Owed are the events of one type that an application has not finished,
// though Asaas has delivered them. An event that it never delivered is in no Owed:
// [Reconcile] finds that.
type Owed struct {
	Type     EventType
	Parked   int       // acknowledged: nothing happens to them until they are replayed
	Retrying int       // not acknowledged: Asaas delivers them again, unless it has deleted them
	Pending  int       // acknowledged and due for a minute or longer: no workers take them, or not fast enough
	Oldest   time.Time // when the first of them arrived
}

// String is "3 PAYMENT_RECEIVED parked, 1 retrying". It has no control characters,
// for any type that a body names.
func (o Owed) String() string {
	eventType := strings.Map(printable, string(o.Type))
	var parts []string
	add := func(n int, state idem.State) {
		switch {
		case n > 0 && len(parts) == 0:
			parts = append(parts, fmt.Sprintf("%d %s %s", n, eventType, state))
		case n > 0:
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	add(o.Parked, idem.StateParked)
	add(o.Retrying, idem.StateRetrying)
	add(o.Pending, idem.StatePending)
	return strings.Join(parts, ", ")
}

// owedAfter is the time for which a pending event may be due: workers take it, or are too few.
const owedAfter = time.Minute

// OwedStates are those of the events that [Recover] replays. It leaves those that are
// pending to their workers.
func OwedStates() []idem.State { return []idem.State{idem.StateParked, idem.StateRetrying} }

// ListOwed counts the events that are parked or retrying, and those that are pending and
// that no workers have taken for a minute, by their type, most of them first. To replay
// those that are parked or retrying, after a fix:
//
//	replayed, err := processor.Replay(ctx, idem.Filter{States: asaas.OwedStates()})
func ListOwed(ctx context.Context, events EventStore) ([]Owed, error) {
	found := make(map[EventType]Owed)
	if err := countOwed(ctx, events, found); err != nil {
		return nil, err
	}
	return mostFirst(found), nil
}

func countOwed(ctx context.Context, events EventStore, found map[EventType]Owed) error {
	for e, err := range events.List(ctx, idem.Filter{States: append(OwedStates(), idem.StatePending)}) {
		if err != nil {
			return err
		}
		if e.State == idem.StatePending && (e.DueAt.IsZero() || time.Since(e.DueAt) < owedAfter) {
			continue
		}
		o := found[EventType(e.Type)]
		o.Type = EventType(e.Type)
		switch e.State {
		case idem.StateParked:
			o.Parked++
		case idem.StatePending:
			o.Pending++
		default:
			o.Retrying++
		}
		if o.Oldest.IsZero() || e.ReceivedAt.Before(o.Oldest) {
			o.Oldest = e.ReceivedAt
		}
		found[o.Type] = o
	}
	return nil
}

func (o Owed) events() int { return o.Parked + o.Retrying + o.Pending }

func mostFirst(found map[EventType]Owed) []Owed {
	return slices.SortedFunc(maps.Values(found), func(a, b Owed) int {
		return cmp.Or(cmp.Compare(b.events(), a.events()), cmp.Compare(a.Type, b.Type))
	})
}

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
	owed, err := r.owed(ctx) // anew: Asaas has delivered meanwhile
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

func replayed(n idem.Replayed) string {
	said := fmt.Sprintf("replayed: %d done, %d failed again, %d without handler", n.Done, n.Failed, n.Unhandled)
	if len(n.Overtaken) > 0 {
		said += "; " + n.Overtaken[0].String()
	}
	if more := len(n.Overtaken) - 1; more > 0 {
		said += fmt.Sprintf("; %d more ran behind later ones", more)
	}
	return said
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
