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
func (i *Inbox) insert(ctx context.Context, events []store.Incoming) ([]accepted, error) {
	first := make(map[string]int, len(events)) // of those with the same row key
	var once []store.Incoming
	for n, e := range events {
		if key := e.RowKey(); !has(first, key) {
			first[key] = n
			once = append(once, e)
		}
	}
	inserted, err := i.insertNew(ctx, once)
	if err != nil {
		return nil, err
	}
	results, found := make([]accepted, len(events)), make([]store.Found, len(events))
	isNew := false
	for n, one := range inserted {
		at := first[once[n].RowKey()]
		if one.New {
			results[at].outcome = Pending
			isNew = true
		}
		found[at] = one.Found
	}
	if isNew {
		i.wakeWorkers()
	}
	return results, i.insertAgain(ctx, events, found, results)
}

func has(m map[string]int, key string) bool {
	_, ok := m[key]
	return ok
}

// insertNew stores the new ones of events.
func (i *Inbox) insertNew(ctx context.Context, events []store.Incoming) (inserted []store.Inserted, err error) {
	err = pgtx.Ask(ctx, i.pool, func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		inserted, err = store.InsertPending(ctx, conn, events)
		return err
	})
	return inserted, err
}

// insertAgain finds out about the events that have no result, because they were
// stored before: about those of which nothing is found yet it asks.
func (i *Inbox) insertAgain(ctx context.Context, events []store.Incoming, found []store.Found, results []accepted) (err error) {
	b := &pgx.Batch{}
	for n, e := range events {
		if results[n].outcome == "" && found[n].State == "" {
			store.Look(b, e.Event, &found[n])
		}
	}
	if b.Len() > 0 {
		err = i.pool.SendBatch(ctx, b).Close()
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
func (i *Inbox) acceptAgain(ctx context.Context, e store.Incoming, found store.Found) (accepted, error) {
	if found.First {
		i.logConflict(ctx, Event(e.Event))
	}
	switch {
	case found.State == "":
		return accepted{outcome: Retrying, err: errors.New("the event was being forgotten when it came again")}, nil
	case isKept(found.State):
		revived, err := store.Revive(ctx, i.pool, e)
		if err != nil || !revived {
			return accepted{outcome: Retrying, err: errors.New("a delivery of the same event is being processed elsewhere")}, err
		}
		i.wakeWorkers()
		return accepted{outcome: Pending, conflict: found.Conflict}, nil
	}
	return accepted{outcome: Duplicate, conflict: found.Conflict}, nil
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
