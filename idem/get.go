package idem

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// Get returns an event by its account and id, whatever its state, with its payload
// if that is still stored. ok is false if there is no such event.
func (c *Common) Get(ctx context.Context, scope, id string) (s StoredEvent, ok bool, err error) {
	row, err := timed(ctx, func(ctx context.Context) (store.Row, error) {
		return store.Get(ctx, c.pool, store.Event{Source: c.source.Name(), Scope: scope, ID: id}.RowKey())
	})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return s, false, nil
	case err != nil:
		return s, false, fmt.Errorf("idem: reading an event: %w", explain(err))
	}
	return storedEvent(row), true, nil
}

// OfKey returns up to limit events of an entity, also those that are done, in the
// order of arrival. It is slow: without an index for it, it reads the events of all
// entities, ten million in a second or two.
func (c *Common) OfKey(ctx context.Context, scope, key string, limit int) ([]StoredEvent, error) {
	rows, err := timed(ctx, func(ctx context.Context) ([]store.Row, error) {
		return store.OfKey(ctx, c.pool, c.source.Name(), scope, key, limit)
	})
	if err != nil {
		return nil, fmt.Errorf("idem: listing events: %w", explain(err))
	}
	all := make([]StoredEvent, len(rows))
	for n, r := range rows {
		all[n] = storedEvent(r)
	}
	return all, nil
}
