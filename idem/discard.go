package idem

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// Discard gives up the events that f chooses: they will not be processed, and a
// delivery of one is a duplicate. Their payloads go, unless KeepPayloads is set;
// the reason stays in the table, as their last error, until Prune forgets them.
// Later events of their entities are then processed: by workers, or by [Processor.Run].
// Events that are being processed are left.
// It returns how many were discarded.
//
// Name the events to discard: the zero Filter is refused.
func (c *Common) Discard(ctx context.Context, f Filter, reason string) (int64, error) {
	return c.DiscardFunc(ctx, f, reason, unrecorded)
}

// DiscardFunc is Discard for a caller that records it: changed gets the row keys of the discarded
// events in the transaction that discards them, which is rolled back if it returns an error.
func (c *Common) DiscardFunc(ctx context.Context, f Filter, reason string, changed func(ctx context.Context, tx pgx.Tx, events []string) error) (int64, error) {
	if f.IsZero() {
		return 0, ErrDiscardAll
	}
	keys, err := c.find(ctx, f)
	if err != nil {
		return 0, fmt.Errorf("idem: discarding events: %w", explain(err))
	}
	return c.discardAll(ctx, keys, f.states(), reason, changed)
}

// ErrDiscardAll is the error of [Common.Discard] for the zero Filter.
var ErrDiscardAll = errors.New("idem: discarding events: the filter names none: set its IDs, Types, Keys, Scopes, Events, States or times")

// recordChange records the changes of a transaction, by row keys, in that transaction.
type recordChange = func(ctx context.Context, tx pgx.Tx, changed []string) error

func unrecorded(context.Context, pgx.Tx, []string) error { return nil }

// discardAll gives up events by their row keys, if they are in one of states.
func (c *Common) discardAll(ctx context.Context, keys, states []string, reason string, record recordChange) (n int64, err error) {
	var discarded, lanes []string
	err = c.change(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		discarded, lanes, err = store.Discard(ctx, tx, keys, states, errorText(errors.New("discarded: "+reason)), c.KeepPayloads)
		if err != nil {
			return err
		}
		if err := record(ctx, tx, discarded); err != nil {
			return err
		}
		return store.PromoteHeld(ctx, tx, lanes)
	})
	if err != nil {
		return 0, fmt.Errorf("idem: discarding events: %w", explain(err))
	}
	// Again, for events that were held back while this took long: the commit of an earlier event may have
	// chosen a row to promote that is gone now. If this fails, the workers find it within a minute.
	_ = c.change(ctx, func(ctx context.Context, tx pgx.Tx) error { return store.PromoteHeld(ctx, tx, lanes) })
	return int64(len(discarded)), nil
}

// Requeue has the workers process the events that f chooses again, as if they had
// just arrived, each in its place in the order of its entity. Events that are
// being processed are left. It returns how many it requeued.
//
// It does not ask whether workers run, here or elsewhere, now or later: see
// operator.Operator.Requeue, which does.
func (i *Inbox) Requeue(ctx context.Context, f Filter) (int64, error) {
	return i.RequeueFunc(ctx, f, unrecorded)
}

// RequeueFunc is Requeue for a caller that records it: changed gets the row keys of the requeued
// events in the transaction that requeues them, which is rolled back if it returns an error.
func (i *Inbox) RequeueFunc(ctx context.Context, f Filter, changed func(ctx context.Context, tx pgx.Tx, events []string) error) (int64, error) {
	keys, err := i.find(ctx, f)
	if err != nil {
		return 0, fmt.Errorf("idem: requeueing events: %w", explain(err))
	}
	return i.requeueAll(ctx, keys, f.states(), changed)
}

// requeueAll makes events pending by their row keys, if they are in one of states.
func (i *Inbox) requeueAll(ctx context.Context, keys, states []string, record recordChange) (n int64, err error) {
	err = i.change(ctx, func(ctx context.Context, tx pgx.Tx) error {
		requeued, err := store.Requeue(ctx, tx, keys, states)
		if err != nil {
			return err
		}
		n = int64(len(requeued))
		return record(ctx, tx, requeued)
	})
	if err != nil {
		return 0, fmt.Errorf("idem: requeueing events: %w", explain(err))
	}
	i.Wake()
	return n, nil
}

// maxSetAside is the number of bodies that may be set aside at a time.
const maxSetAside = 1000

// SetAside stores a body that must reach no handler, for people to see: a message of a
// broker that no relay has signed, for example. It becomes a parked event of
// [SetAsideType], with the cause as its error: health is red until it is readmitted, discarded
// or acknowledged, and no [Common.Prune] forgets it by default. The same body is stored once.
//
// About 1,000 are set aside at a time. Then it returns an error, and the broker keeps what comes.
func (c *Common) SetAside(ctx context.Context, body []byte, cause error) error {
	if err := c.aside.admit(ctx, c); err != nil {
		return err
	}
	e := Event{
		ID:      BodyID([]byte(SetAsideType + "\n" + string(body))), // that of no event with an ID made of its body
		Type:    SetAsideType,
		Payload: body,
	}
	_, err := c.receive(ctx, Delivery{Event: e}, storeTime, func(ctx context.Context, e Event) result {
		return c.storeUnprocessed(ctx, e, StateParked, cause)
	})
	return err
}

// errSetAside is the error of a body that was set aside, where a handler is looked for.
var errSetAside = errors.New("it was set aside, and reaches no handler: see idem readmit, or discard it")

// asideCount knows about how many bodies are set aside.
type asideCount struct {
	mu     sync.Mutex
	n      int64
	looked time.Time // when they were counted
}

// lookAsideEvery is the time for which a count is believed.
const lookAsideEvery = 10 * time.Second

// admit returns an error if no further body may be set aside.
func (a *asideCount) admit(ctx context.Context, c *Common) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.looked) > lookAsideEvery {
		n, err := ask(ctx, c.pool, func(ctx context.Context, db store.DB) (int64, error) {
			return store.CountSetAside(ctx, db, c.source.Name(), maxSetAside)
		})
		if err != nil {
			return fmt.Errorf("idem: counting what is set aside: %w", explain(err))
		}
		a.n, a.looked = n, time.Now()
	}
	if a.n >= maxSetAside {
		return fmt.Errorf("idem: %d messages are set aside, and no further one is: see why with idem list -type %s, then readmit or discard them", a.n, SetAsideType)
	}
	a.n++
	return nil
}
