package operator

import (
	"context"
	"fmt"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Page is one page of the events that a filter chooses: see [Operator.Page].
type Page struct {
	Events []idem.StoredEvent
	Next   Place // of the next page, which may have no events; zero when there is none
}

// Place is an event's position in the order of arrival.
type Place struct {
	At    time.Time
	Event string // source/scope/id
}

// Page returns up to n events that f chooses, the newest first. The first page is at
// the zero Place; for the next one, pass Next of the page before. It reads only
// events that are not done.
func (o *Operator) Page(ctx context.Context, f idem.Filter, before Place, n int) (Page, error) {
	var last store.Place
	keys, err := timed(ctx, func(ctx context.Context) (keys []string, err error) {
		keys, last, err = store.FindPage(ctx, o.Pool(), o.rows(f), store.Place(before), n)
		return keys, err
	})
	if err != nil {
		return Page{}, fmt.Errorf("operator: listing events: %w", store.Explain(err))
	}
	var p Page
	rows, err := timed(ctx, func(ctx context.Context) ([]store.Row, error) { return store.Load(ctx, o.Pool(), keys) })
	if err != nil {
		return Page{}, fmt.Errorf("operator: listing events: %w", store.Explain(err))
	}
	p.Events = storedEvents(rows)
	if len(keys) == n {
		p.Next = Place(last)
	}
	return p, nil
}

// Count counts the events that f chooses.
func (o *Operator) Count(ctx context.Context, f idem.Filter) (int64, error) {
	n, err := timed(ctx, func(ctx context.Context) (int64, error) { return store.Count(ctx, o.Pool(), o.rows(f)) })
	if err != nil {
		return 0, fmt.Errorf("operator: counting events: %w", store.Explain(err))
	}
	return n, nil
}
