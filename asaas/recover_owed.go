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
