package idem

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// Prune forgets the source's done, unhandled and discarded events that arrived
// longer ago than Retention, by the database's clock, with their payloads, and
// returns how many. Pending and retrying ones stay, and parked ones until they are
// replayed or discarded, unless ParkedRetention is set. PayloadRetention deletes
// kept bodies before that. Prune also repairs what deleting events by hand left, and
// makes retrying events unhandled whose type is ignored since.
//
// It reads the tables once from end to end (there is no index for it, because
// every delivery would pay for that), a megabyte at a time, each committed on
// its own, and waits for no delivery: run it daily from any process. After it an
// event that comes again would run again, so keep Retention above the provider's
// longest redelivery.
func (c *Common) Prune(ctx context.Context) (deleted int64, err error) {
	if c.Retention <= 0 {
		return 0, errPruneAll
	}
	source := c.source.Name()
	deleted, err = store.PruneEvents(ctx, c.pool, source, c.Retention, c.ParkedRetention)
	if err == nil {
		err = store.PruneArchive(ctx, c.pool, source, c.PayloadRetention)
	}
	if err == nil {
		err = store.Tidy(ctx, c.pool, source)
	}
	if err == nil {
		err = c.endIgnored(ctx)
	}
	if err != nil {
		return deleted, fmt.Errorf("idem: pruning events: %w", explain(err))
	}
	return deleted, nil
}

// endIgnored makes retrying events unhandled whose type is ignored since: when the
// provider delivers them again, that is not looked up.
func (c *Common) endIgnored(ctx context.Context) error {
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

var errPruneAll = errors.New("idem: pruning events: Retention is zero or less: every event would be forgotten")

// DryPrune counts the events that [Common.Prune] would forget now. It reads all
// of idem_events, as that does.
func (c *Common) DryPrune(ctx context.Context) (int64, error) {
	if c.Retention <= 0 {
		return 0, errPruneAll
	}
	n, err := store.CountPrunable(ctx, c.pool, c.source.Name(), c.Retention, c.ParkedRetention)
	if err != nil {
		return 0, fmt.Errorf("idem: counting events to prune: %w", explain(err))
	}
	return n, nil
}
