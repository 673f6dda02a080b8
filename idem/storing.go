package idem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// store has the writer store the event, in one group with all events that arrive at the same time, and waits
// for the commit. While another transaction has locked the event's row, store tries again, in groups of such
// events. at is the time at which a first try has begun before; zero if none has.
func (i *Inbox) store(ctx context.Context, e Event, at time.Time) result {
	incoming := store.Incoming{Event: e.row(), Trace: i.carrier(ctx, e), At: at}
	r, ok := i.writer.Write(ctx, incoming)
	if !ok {
		return result{outcome: Retrying, err: errors.New("the event could not be stored in time: Postgres is unavailable, or the pool is too small")}
	}
	for pgtx.RowLocked(r.err) && sleep(ctx, lockedPause) {
		if again, ok := i.locked.Write(ctx, incoming); ok {
			r = again
		}
	}
	return r
}

// lockedPause is the time between two tries to store an event with a locked row.
const lockedPause = 100 * time.Millisecond

// storeTime is the time that storing a group may take.
const storeTime = 8 * time.Second

// storeAll stores events, all of them within storeTime.
func (i *Inbox) storeAll(events []store.Incoming) []result {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	return i.storeGroup(ctx, events)
}

// storeGroup stores events in one statement. If Postgres refuses the statement because of some events,
// storeGroup stores smaller groups, so that no event fails because of another.
func (i *Inbox) storeGroup(ctx context.Context, events []store.Incoming) []result {
	results, err := i.insert(ctx, events)
	if err == nil {
		return results
	}
	canceled := pgtx.Canceled(err) // by the statement_timeout of a role: fewer events take less time
	if len(events) > 1 && (!pgtx.Unavailable(err) || canceled) {
		results = nil
		size := 1
		if canceled || pgtx.RowLocked(err) { // each group with a locked row takes a moment to fail: eighths find few and many such rows in a short time
			size = (len(events) + 7) / 8
		}
		for group := range slices.Chunk(events, size) {
			results = append(results, i.storeGroup(ctx, group)...)
		}
		return results
	}
	results = make([]result, len(events))
	for n := range results {
		results[n] = result{outcome: Retrying, err: fmt.Errorf("storing the event: %w", store.Explain(err))}
	}
	return results
}

// insert stores events and returns the result of each. An event may be stored already, or be twice among
// events.
func (i *Inbox) insert(ctx context.Context, events []store.Incoming) ([]result, error) {
	inserted, err := query(ctx, i.pool, func(ctx context.Context, db store.DB) ([]store.Inserted, error) {
		return store.InsertPending(ctx, db, events)
	})
	if err != nil {
		return nil, err
	}
	results, found := make([]result, len(events)), make([]store.Found, len(events))
	looks, isNew := &pgx.Batch{}, false
	for n, one := range inserted {
		found[n].State = one.State
		switch {
		case one.New:
			results[n].outcome, isNew = Pending, true
		case one.State == "":
			store.Look(looks, events[n].Event, &found[n])
		}
	}
	if isNew {
		i.wakeAll()
	}
	if looks.Len() > 0 {
		if err := exec(ctx, i.pool, func(ctx context.Context, db store.DB) error { return store.ReadCommitted(ctx, db, looks) }); err != nil {
			return nil, err
		}
	}
	for n, e := range events {
		if results[n].outcome == "" {
			if results[n], err = i.storeAgain(ctx, e, found[n]); err != nil {
				return nil, err
			}
		}
	}
	return results, nil
}

// storeAgain returns the result of a delivery of a stored event. A parked or unhandled event becomes pending.
func (i *Inbox) storeAgain(ctx context.Context, e store.Incoming, found store.Found) (result, error) {
	i.logFirstConflict(ctx, Event(e.Event), found)
	switch {
	case isRevivable(found.State):
		revived, err := query(ctx, i.pool, func(ctx context.Context, db store.DB) (bool, error) { return store.Revive(ctx, db, e) })
		if err != nil || !revived {
			return result{outcome: Retrying, err: errors.New("the same event is being processed elsewhere")}, err
		}
		i.wakeAll()
		return result{outcome: Pending, conflict: found.Conflict}, nil
	case isStored(found.State):
		return result{outcome: Duplicate, conflict: found.Conflict}, nil
	case found.State == "":
		return result{outcome: Retrying, err: errForgotten}, nil
	}
	return result{outcome: Retrying, err: errState(found.State)}, nil
}

// errForgotten is the error of a stored event that is not found any more.
var errForgotten = errors.New("the event was being forgotten when it came again")

// errState is the error of a stored event with a state that this version does not know.
func errState(state string) error {
	return fmt.Errorf("the event is stored as %q, which only a newer version of this package knows: deploy that one everywhere", state)
}

// isStored reports whether an event in a state needs no further delivery.
func isStored(state string) bool {
	return slices.Contains([]string{store.Done, store.Pending, store.Discarded, store.Unhandled, store.Parked}, state)
}

// isRevivable reports whether another delivery makes an event in a state pending.
func isRevivable(state string) bool { return state == store.Unhandled || state == store.Parked }

// storeUnprocessed stores an event that no handler can process now, with its payload.
func (i *Inbox) storeUnprocessed(ctx context.Context, e Event, state State, cause error) result {
	stored, err := query(ctx, i.pool, func(ctx context.Context, db store.DB) (bool, error) {
		return store.StoreUnprocessed(ctx, db, e.row(), string(state), errorText(cause), i.PassParked)
	})
	switch {
	case err != nil:
		return result{outcome: Retrying, err: fmt.Errorf("storing the event: %w", store.Explain(err))}
	case stored:
		return result{outcome: Outcome(state), err: cause}
	}
	found, err := query(ctx, i.pool, func(ctx context.Context, db store.DB) (store.Found, error) { return store.LookUp(ctx, db, e.row()) })
	i.logFirstConflict(ctx, e, found)
	switch {
	case err != nil:
		return result{outcome: Retrying, err: fmt.Errorf("looking at the stored event: %w", store.Explain(err))}
	case isStored(found.State):
		return result{outcome: Duplicate, conflict: found.Conflict}
	case found.State == "":
		return result{outcome: Retrying, err: errForgotten}
	}
	return result{outcome: Retrying, err: errState(found.State)}
}

// wakeAll has the workers, here and in other processes, look for events now: call it once a transaction that
// stores events, as an outbox does, is committed. Without it the workers look every Poll.
func (i *Inbox) wakeAll() {
	i.wakeOwn()
	if !i.PollOnly {
		i.sender.Send()
	}
}

// wakeOwn wakes the workers of this process.
func (i *Inbox) wakeOwn() {
	select {
	case i.wake <- struct{}{}:
	default:
	}
}
