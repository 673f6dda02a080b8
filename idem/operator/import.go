package operator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Imported is an event that another program has processed: see [Import].
type Imported struct {
	ID string // the provider's event id

	// ReceivedAt is when it came; zero is now. [idem.Common.Prune] forgets it by that.
	ReceivedAt time.Time
}

// importBatch is the number of events that one statement stores.
const importBatch = 1000

// Import records events that another program has processed, the receiver that this one
// replaces: when one of them comes again it is a duplicate, and no handler runs. It
// returns how many it has stored.
//
//	n, err := operator.Import(ctx, pool, "asaas", "", processed)
//
// source is the name of the receiver's source, and scope the account that the events will
// be stored under, "" if it has none: with another one the events are not recognized, and
// are done again. An event that is stored already is left as it is, so it may be called
// again, and while the other program still runs: call it last when that has stopped. For
// the time in which both run, see docs/import.md.
//
// Unknown facts of an event are not invented: it has no type, no entity and no hash of
// its body, so a redelivery with another body is no conflict. Import from the table of the
// other program, not from the provider's API: that an event exists does not say that it was
// processed.
//
// An error of events, and an event without an id, end it; events that were stored until then stay
// stored.
func Import(ctx context.Context, pool *pgxpool.Pool, source, scope string, events iter.Seq2[Imported, error]) (stored int64, err error) {
	switch {
	case source == "" || strings.Contains(source, "/") || !store.Nameable(source):
		return 0, fmt.Errorf("operator: importing events: the source is %q: give the name that the receiver's source has, asaas for example", source)
	case len(scope) > store.MaxName || !store.Nameable(scope):
		return 0, fmt.Errorf("operator: importing events: the scope has %d bytes, or is no text: give the one of the account's Credentials, of at most %d", len(scope), store.MaxName)
	}
	var keys []string
	var times []time.Time
	flush := func() error {
		n, err := timed(ctx, func(ctx context.Context) (int64, error) { return store.Import(ctx, pool, keys, times) })
		stored += n
		keys, times = keys[:0], times[:0]
		return store.Explain(err)
	}
	for e, err := range events {
		if err == nil && e.ID == "" {
			err = errors.New("an event has no id: leave it out, nothing recognizes it when it comes again")
		}
		if err == nil {
			id := e.ID
			if !store.Nameable(id) { // as idem.Endpoint names it
				id = idem.BodyID([]byte(id))
			}
			keys, times = append(keys, store.Event{Source: source, Scope: scope, ID: id}.RowKey()), append(times, e.ReceivedAt)
			if len(keys) == importBatch {
				err = flush()
			}
		}
		if err != nil {
			return stored, fmt.Errorf("operator: importing events: %w", errors.Join(err, flush()))
		}
	}
	if err := flush(); err != nil {
		return stored, fmt.Errorf("operator: importing events: %w", err)
	}
	return stored, nil
}
