package idem

import (
	"context"
	"fmt"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// Page is one page of the events that a filter chooses: see [Common.Page].
type Page struct {
	Events []StoredEvent
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
func (c *Common) Page(ctx context.Context, f Filter, before Place, n int) (Page, error) {
	var last store.Place
	keys, err := timed(ctx, func(ctx context.Context) (keys []string, err error) {
		keys, last, err = store.FindPage(ctx, c.pool, f.of(c.source.Name()), store.Place(before), n)
		return keys, err
	})
	if err != nil {
		return Page{}, fmt.Errorf("idem: listing events: %w", explain(err))
	}
	var p Page
	for s, err := range c.load(ctx, keys) {
		if err != nil {
			return Page{}, err
		}
		p.Events = append(p.Events, s)
	}
	if len(keys) == n {
		p.Next = Place(last)
	}
	return p, nil
}
