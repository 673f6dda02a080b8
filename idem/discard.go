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
	// Again, for events that were held back while this took long: the commit of an earlier event may have
	// chosen a row to promote that is gone now. If this fails, the workers find it within a minute.
	_ = c.change(ctx, func(ctx context.Context, tx pgx.Tx) error { return store.PromoteHeld(ctx, tx, lanes) })
	return int64(len(discarded)), nil
}

func unrecorded(context.Context, pgx.Tx, []string) error { return nil }

// ErrDiscardAll is the error of [Common.Discard] for the zero Filter.
var ErrDiscardAll = errors.New("idem: discarding events: the filter names none: set its IDs, Types, Keys, Scopes, Events, States or times")

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
	i.Wake()
	return int64(len(requeued)), nil
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
		n, err := query(ctx, c.pool, func(ctx context.Context, db store.DB) (int64, error) {
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

// Prune forgets the source's done, unhandled and discarded events that arrived
// longer ago than Retention, by the database's clock, with their payloads, and
// returns how many. Pending and retrying ones stay, and parked ones until they are
// replayed or discarded, unless ParkedRetention is set. PayloadRetention deletes
// archived bodies before that, and AuditRetention old entries of the audit trail. Prune also repairs the
// traces of events that were deleted by hand, and makes retrying events unhandled if their type is
// ignored by now.
//
// A jump of the clock forgets nothing at once. Prune counts the events of each day, in
// UTC, and remembers the counts. It forgets a whole day, Retention after its end by the clock of
// an earlier run, at least 23 hours ago: so the first run forgets nothing, and an event stays up
// to three days longer than Retention. A day that is over and suddenly has more events got
// them while the clock was wrong: they are forgotten Retention after Prune has found
// that. While the clock is behind that of the last run, Prune returns an error.
//
// It reads the tables twice from end to end (there is no index for it, because
// every delivery would pay for that), a megabyte at a time, each committed on
// its own, and waits for no delivery: run it daily from any process. After it an
// event that comes again would run again: it returns an error if Retention is shorter than 31
// days, unless AllowProcessingTwice is set.
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

// endIgnored makes retrying events unhandled if their type is ignored since: when the
// provider delivers them again, that is not looked up.
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

// DryPrune counts the events that [Common.Prune] would forget now. It reads all
// of idem_events, as that does.
func (c *Common) DryPrune(ctx context.Context) (int64, error) {
	p, err := c.planPrune(ctx)
	if err != nil {
		return 0, err
	}
	return p.Events, nil
}

// planPrune counts the events, and finds those to forget.
func (c *Common) planPrune(ctx context.Context) (*prune.Plan, error) {
	if err := c.checkRetention(); err != nil {
		return nil, err
	}
	ages := prune.Ages{Events: c.Retention, Parked: c.ParkedRetention, Archived: c.PayloadRetention, Actions: c.AuditRetention}
	p, err := prune.NewPlan(ctx, c.pool, c.source.Name(), ages)
	if err != nil {
		return nil, fmt.Errorf("idem: pruning events: %w", explain(err))
	}
	return p, nil
}

// checkRetention finds a Retention that has events processed twice.
func (c *Common) checkRetention() error {
	switch {
	case c.Retention <= 0:
		return errors.New("idem: Retention is zero or less: every event would be forgotten")
	case c.Retention < minRetention && !c.AllowProcessingTwice:
		return fmt.Errorf("idem: Retention is %s, and an event that is delivered again after that is processed again: "+
			"set %d days or more, or AllowProcessingTwice if that is meant", c.Retention, minRetention/(24*time.Hour))
	}
	return nil
}
