package idem

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// insert stores events that may have been stored before, or be among events
// twice, and returns what became of each.
func (i *Inbox) insert(ctx context.Context, events []store.Event) ([]accepted, error) {
	keys, first := make([]string, len(events)), make(map[string]int, len(events))
	var once []store.Event
	for n, e := range events {
		keys[n] = e.RowKey()
		if _, there := first[keys[n]]; !there {
			first[keys[n]] = n
			once = append(once, e)
		}
	}
	inserted, err := i.insertNew(ctx, once)
	if err != nil {
		return nil, err
	}
	results := make([]accepted, len(events))
	for _, key := range inserted {
		results[first[key]].outcome = Pending
	}
	for n, key := range keys {
		switch {
		case results[n].outcome == Pending:
		case first[key] != n && results[first[key]].outcome.Acknowledged() && string(events[n].Payload) == string(events[first[key]].Payload):
			results[n].outcome = Duplicate
		default:
			if results[n], err = i.insertAgain(ctx, events[n]); err != nil {
				return nil, err
			}
		}
	}
	if len(inserted) > 0 {
		i.wakeWorkers()
	}
	return results, nil
}

// insertNew stores the new ones of events. A first statement that is not
// answered means that others on this network will not be, either.
func (i *Inbox) insertNew(ctx context.Context, events []store.Event) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTime/2)
	defer cancel()
	inserted, err := store.InsertPending(ctx, i.pool, events)
	if errors.Is(err, context.DeadlineExceeded) {
		pgtx.Forget(i.pool)
	}
	return inserted, err
}

// insertAgain finds out about an event that is stored. One that is kept becomes
// pending: an application that processed inline has left it, or somebody sends
// it again.
func (i *Inbox) insertAgain(ctx context.Context, e store.Event) (accepted, error) {
	var found store.Found
	b := &pgx.Batch{}
	store.Look(b, e, &found)
	if err := i.pool.SendBatch(ctx, b).Close(); err != nil {
		return accepted{}, err
	}
	if found.First {
		i.logConflict(ctx, Event(e))
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
