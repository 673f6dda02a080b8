package idem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/paghooks/paghooks/idem/internal/prune"
	"github.com/paghooks/paghooks/idem/internal/store"
)

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
	source := c.source.Name()
	types, err := timed(ctx, func(ctx context.Context) ([]string, error) { return store.RetryingTypes(ctx, c.pool, source) })
	if err != nil {
		return err
	}
	types = slices.DeleteFunc(types, func(t string) bool { return !c.ignores(Event{Type: t}) })
	if len(types) == 0 {
		return nil
	}
	_, err = timed(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, store.EndRetrying(ctx, c.pool, source, types)
	})
	return err
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
