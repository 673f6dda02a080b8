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
// twice, and returns what became of each.
func (i *Inbox) insert(ctx context.Context, events []store.Incoming) ([]result, error) {
	first := make(map[string]int, len(events)) // where a row key is first among events
	var once []store.Incoming
	for n, e := range events {
		key := e.RowKey()
		if _, twice := first[key]; !twice {
			first[key] = n
			once = append(once, e)
		}
	}
	inserted, err := ask(ctx, i.pool, func(ctx context.Context, db store.DB) ([]store.Inserted, error) {
		return store.InsertPending(ctx, db, once)
	})
	if err != nil {
		return nil, err
	}
	results, found := make([]result, len(events)), make([]store.Found, len(events))
	isNew := false
	for n, one := range inserted {
		at := first[once[n].RowKey()]
		if one.New {
			results[at].outcome = Pending
			isNew = true
		}
		found[at].State = one.State
	}
	if isNew {
		i.wakeWorkers()
	}
	return results, i.resolveStored(ctx, events, found, results)
}

// resolveStored sets the results that are missing, of events that were stored before.
// It asks about those whose state is not found yet.
func (i *Inbox) resolveStored(ctx context.Context, events []store.Incoming, found []store.Found, results []result) (err error) {
	b := &pgx.Batch{}
	for n, e := range events {
		if results[n].outcome == "" && found[n].State == "" {
			store.Look(b, e.Event, &found[n])
		}
	}
	if b.Len() > 0 {
		err = pgtx.Ask(ctx, i.pool, func(ctx context.Context, conn *pgxpool.Conn) error { return conn.SendBatch(ctx, b).Close() })
	}
	for n, e := range events {
		if results[n].outcome == "" && err == nil {
			results[n], err = i.acceptAgain(ctx, e, found[n])
		}
	}
	return err
}

// acceptAgain is what becomes of a delivery whose event is stored. One that is
// kept becomes pending: an application that processed inline has left it, or
// somebody sends it again.
func (i *Inbox) acceptAgain(ctx context.Context, e store.Incoming, found store.Found) (result, error) {
	i.logFirstConflict(ctx, Event(e.Event), found)
	switch {
	case found.State == "":
		return result{outcome: Retrying, err: errForgotten}, nil
	case isKept(found.State):
		revived, err := ask(ctx, i.pool, func(ctx context.Context, db store.DB) (bool, error) { return store.Revive(ctx, db, e) })
		if err != nil || !revived {
			return result{outcome: Retrying, err: errors.New("a delivery of the same event is being processed elsewhere")}, err
		}
		i.wakeWorkers()
		return result{outcome: Pending, conflict: found.Conflict}, nil
	}
	return result{outcome: Duplicate, conflict: found.Conflict}, nil
}

// wakeWorkers wakes workers, here and in other processes.
func (i *Inbox) wakeWorkers() {
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
