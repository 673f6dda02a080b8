package idem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/prune"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Discard gives up the events that f chooses: the events will not be processed, and a delivery of one is a
// duplicate. Their payloads are deleted, unless KeepPayloads is set; the reason stays in the table, as the
// last error, until Prune forgets the event. Later events of their entities are then processed, by workers or
// by [Processor.Run]. Events that are being processed are left. Discard returns the number of discarded
// events.
//
// Name the events to discard: the zero Filter is refused.
func (c *Common) Discard(ctx context.Context, f Filter, reason string) (int64, error) {
	return c.discard(ctx, f, reason, unrecorded)
}

// discard is Discard for a caller that records the discarded events: changed gets their row keys in the
// transaction that discards them. If changed returns an error, the transaction is rolled back.
func (c *Common) discard(ctx context.Context, f Filter, reason string, changed func(ctx context.Context, tx pgx.Tx, events []string) error) (int64, error) {
	if f.IsZero() {
		return 0, errDiscardAll
	}
	var discarded, lanes []string
	keys, err := c.find(ctx, f)
	if err == nil {
		err = c.change(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
			discarded, lanes, err = store.Discard(ctx, tx, keys, f.states(), errorText(errors.New("discarded: "+reason)), c.KeepPayloads)
			if err != nil {
				return err
			}
			if err := changed(ctx, tx, discarded); err != nil {
				return err
			}
			return store.PromoteHeld(ctx, tx, lanes)
		})
	}
	if err != nil {
		return 0, fmt.Errorf("idem: discarding events: %w", explain(err))
	}
	// Again, for events that were held back during a long transaction: the commit of an earlier event may
	// have chosen a row to promote that is gone now. If this fails, the workers find the events within a
	// minute.
	_ = c.change(ctx, func(ctx context.Context, tx pgx.Tx) error { return store.PromoteHeld(ctx, tx, lanes) })
	return int64(len(discarded)), nil
}

func unrecorded(context.Context, pgx.Tx, []string) error { return nil }

// errDiscardAll is the error of [Common.Discard] for the zero Filter.
var errDiscardAll = errors.New("idem: discarding events: the filter names none: set its IDs, Types, Keys, Scopes, Events, States or times")

// Requeue makes the events that f chooses pending, as if they had just arrived, each at its place in the
// order of its entity: workers process them. Events that are being processed are left. Requeue returns the
// number of requeued events.
//
// Requeue does not check that workers run: see operator.Operator.Requeue, which does.
func (i *Inbox) Requeue(ctx context.Context, f Filter) (int64, error) {
	return i.requeue(ctx, f, unrecorded)
}

// requeue is Requeue for a caller that records the requeued events: changed gets their row keys in the
// transaction that requeues them. If changed returns an error, the transaction is rolled back.
func (i *Inbox) requeue(ctx context.Context, f Filter, changed func(ctx context.Context, tx pgx.Tx, events []string) error) (int64, error) {
	var requeued []string
	keys, err := i.find(ctx, f)
	if err == nil {
		err = i.change(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
			if requeued, err = store.Requeue(ctx, tx, keys, f.states()); err != nil {
				return err
			}
			return changed(ctx, tx, requeued)
		})
	}
	if err != nil {
		return 0, fmt.Errorf("idem: requeueing events: %w", explain(err))
	}
	i.wakeAll()
	return int64(len(requeued)), nil
}

// maxSetAside is the number of bodies that may be set aside at a time.
const maxSetAside = 1000

// setAside stores a body that must reach no handler, for people to see: a message of a broker that no relay
// has signed, for example. The body becomes the payload of a parked event of store.SetAsideType, with the cause
// as its error: health is red until the event is readmitted, discarded or acknowledged, and [Common.Prune]
// does not forget it by default. The same body is stored once. No source is asked about such an event.
//
// About 1,000 bodies may be set aside at a time. Beyond that setAside returns an error, and the broker keeps
// the message.
func (c *Common) setAside(ctx context.Context, body []byte, cause error) error {
	if err := c.aside.admit(ctx, c); err != nil {
		return err
	}
	e := Event{
		ID:      BodyID([]byte(store.SetAsideType + "\n" + string(body))), // no event with an ID made of its body has this ID
		Type:    store.SetAsideType,
		Payload: body,
	}
	_, err := c.receive(ctx, delivery{event: e}, storeTime, func(ctx context.Context, e Event) result {
		return c.storeUnprocessed(ctx, e, StateParked, cause)
	})
	return err
}

// errSetAside is the error of routing a body that was set aside.
var errSetAside = errors.New("it was set aside, and reaches no handler: see idem readmit, or discard it")

// asideCount holds the approximate number of bodies that are set aside.
type asideCount struct {
	mu     sync.Mutex
	n      int64
	looked time.Time // when the bodies were last counted
}

// lookAsideEvery is the interval at which the bodies are counted anew.
const lookAsideEvery = 10 * time.Second

// admit returns an error if no further body may be set aside.
func (a *asideCount) admit(ctx context.Context, c *Common) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if time.Since(a.looked) > lookAsideEvery {
		n, err := query(ctx, c.pool, func(ctx context.Context, db store.DB) (int64, error) {
			return store.CountSetAside(ctx, db, c.source.Name(), maxSetAside)
		})
		if err != nil {
			return fmt.Errorf("idem: counting what is set aside: %w", explain(err))
		}
		a.n, a.looked = n, time.Now()
	}
	if a.n >= maxSetAside {
		return fmt.Errorf("idem: %d messages are set aside, and no further one is: see why with idem list -type %s, then readmit or discard them", a.n, store.SetAsideType)
	}
	a.n++
	return nil
}

// Prune forgets the source's done, unhandled and discarded events that arrived longer ago than Retention.Events, by
// the database's clock, with their payloads, and returns their number. Pending and retrying events stay, and
// so do parked ones, unless Retention.Parked is set. Prune deletes archived bodies after Retention.Payloads, and
// entries of the audit trail after Retention.Audit. It also repairs the traces of events that were deleted by
// hand, and makes retrying events unhandled if their type is ignored by now.
//
// A jump of the clock forgets nothing at once. Prune counts the events of each day, in UTC, and remembers the
// counts. It forgets a whole day, Retention after its end by the clock of an earlier run, at least 23 hours
// ago: so the first run forgets nothing, and an event stays up to three days longer than Retention. If a day
// that is over suddenly has more events, they arrived while the clock was wrong: the day is forgotten
// Retention after Prune has found them. If the clock is behind the time of the last run, Prune returns an
// error.
//
// It reads the tables twice from end to end (there is no index for it, because every delivery would pay for
// that), a megabyte at a time, each committed on its own, and waits for no delivery: run it daily from any
// process. A forgotten event that is delivered again is processed again: so Prune returns an error if
// Retention.Events is shorter than 31 days, unless AllowProcessingTwice is set.
func (c *Common) Prune(ctx context.Context) (deleted int64, err error) {
	p, err := c.planPrune(ctx)
	if err != nil {
		return 0, err
	}
	deleted, err = p.Run(ctx)
	if err == nil {
		err = c.endIgnored(ctx)
	}
	if err != nil {
		return deleted, fmt.Errorf("idem: pruning events: %w", explain(err))
	}
	return deleted, nil
}

// endIgnored makes retrying events unhandled if their type is ignored by now: deliveries of an ignored type
// are not looked up.
func (c *Common) endIgnored(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	types, err := store.RetryingTypes(ctx, c.pool, c.source.Name())
	if err != nil {
		return err
	}
	types = slices.DeleteFunc(types, func(t string) bool { return !c.ignores(Event{Type: t}) })
	if len(types) == 0 {
		return nil
	}
	return store.EndRetrying(ctx, c.pool, c.source.Name(), types)
}

// dryPrune counts the events that [Common.Prune] would forget now. Like Prune it reads all of idem_events.
func (c *Common) dryPrune(ctx context.Context) (int64, error) {
	p, err := c.planPrune(ctx)
	if err != nil {
		return 0, err
	}
	return p.Events, nil
}

// planPrune counts the events, and finds the ones to forget.
func (c *Common) planPrune(ctx context.Context) (*prune.Plan, error) {
	if err := c.checkRetention(); err != nil {
		return nil, err
	}
	ages := prune.Ages{Events: c.Retention.Events, Parked: c.Retention.Parked, Archived: c.Retention.Payloads, Actions: c.Retention.Audit}
	p, err := prune.NewPlan(ctx, c.pool, c.source.Name(), ages)
	if err != nil {
		return nil, fmt.Errorf("idem: pruning events: %w", explain(err))
	}
	return p, nil
}

// checkRetention returns an error if Retention would have events processed twice.
func (c *Common) checkRetention() error {
	switch r := c.Retention; {
	case r.Events <= 0:
		return errors.New("idem: Retention is zero or less: every event would be forgotten")
	case r.Events < minRetention && !r.AllowProcessingTwice:
		return fmt.Errorf("idem: Retention is %s, and an event that is delivered again after that is processed again: "+
			"set %d days or more, or AllowProcessingTwice if that is meant", r.Events, minRetention/day)
	}
	return nil
}
