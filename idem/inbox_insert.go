package idem

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// insert stores events that may have been stored before, or be among events
// twice, and returns the result of each.
func (i *Inbox) insert(ctx context.Context, events []store.Incoming) ([]result, error) {
	results, found := make([]result, len(events)), make([]store.Found, len(events))
	isNew, err := i.insertNew(ctx, events, results, found)
	if err != nil {
		return nil, err
	}
	if isNew {
		i.Wake()
	}
	if err := i.lookAtStored(ctx, events, results, found); err != nil {
		return nil, err
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

// insertNew stores the events that are not stored, and sets their results. Of most
// others it finds the state. isNew reports whether any was stored.
func (i *Inbox) insertNew(ctx context.Context, events []store.Incoming, results []result, found []store.Found) (isNew bool, err error) {
	seen := make(map[string]bool, len(events))
	var once []store.Incoming
	var places []int // of those among events
	for n, e := range events {
		if key := e.RowKey(); !seen[key] {
			seen[key] = true
			once, places = append(once, e), append(places, n)
		}
	}
	inserted, err := ask(ctx, i.pool, func(ctx context.Context, db store.DB) ([]store.Inserted, error) {
		return store.InsertPending(ctx, db, once)
	})
	if err != nil {
		return false, err
	}
	for n, one := range inserted {
		if one.New {
			results[places[n]].outcome = Pending
			isNew = true
		}
		found[places[n]].State = one.State
	}
	return isNew, nil
}

// lookAtStored finds the states that are missing, of events that were stored before.
func (i *Inbox) lookAtStored(ctx context.Context, events []store.Incoming, results []result, found []store.Found) error {
	b := &pgx.Batch{}
	for n, e := range events {
		if results[n].outcome == "" && found[n].State == "" {
			store.Look(b, e.Event, &found[n])
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return pgtx.Ask(ctx, i.pool, func(ctx context.Context, conn *pgxpool.Conn) error { return store.ReadCommitted(ctx, conn, b) })
}

// storeAgain returns the result of a delivery of a stored event. One that is repeatable
// becomes pending: an application that processed inline has left it, or it is sent again
// by hand.
func (i *Inbox) storeAgain(ctx context.Context, e store.Incoming, found store.Found) (result, error) {
	i.logFirstConflict(ctx, Event(e.Event), found)
	switch {
	case found.State == "":
		return result{outcome: Retrying, err: errForgotten}, nil
	case isRepeatable(found.State):
		revived, err := ask(ctx, i.pool, func(ctx context.Context, db store.DB) (bool, error) { return store.Revive(ctx, db, e) })
		if err != nil || !revived {
			return result{outcome: Retrying, err: errors.New("a delivery of the same event is being processed elsewhere")}, err
		}
		i.Wake()
		return result{outcome: Pending, conflict: found.Conflict}, nil
	}
	return result{outcome: Duplicate, conflict: found.Conflict}, nil
}
