package idem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// store hands the event to the writer, with all that arrive at the same time,
// and waits for its commit. While another transaction holds the event's row it tries
// again, in groups of its own.
func (i *Inbox) store(ctx context.Context, e store.Incoming) result {
	r, ok := i.writer.Write(ctx, e)
	if !ok {
		return result{outcome: Retrying, err: errors.New("the event could not be stored in time: Postgres is unavailable, or the pool is too small")}
	}
	for pgtx.Held(r.err) && sleep(ctx, heldPause) {
		if again, ok := i.locked.Write(ctx, e); ok {
			r = again
		}
	}
	return r
}

// heldPause is the time after which a delivery looks again for its row to be free.
const heldPause = 100 * time.Millisecond

// storeAll stores events, all of them within storeTime.
func (i *Inbox) storeAll(events []store.Incoming) []result {
	ctx, cancel := context.WithTimeout(context.Background(), storeTime)
	defer cancel()
	return i.storeGroup(ctx, events)
}

// storeGroup stores events in one statement. If Postgres refuses that because of some
// of them it stores smaller groups, so that no event fails because of another.
func (i *Inbox) storeGroup(ctx context.Context, events []store.Incoming) []result {
	results, err := i.insert(ctx, events)
	if err == nil {
		return results
	}
	if len(events) > 1 && !pgtx.Unavailable(err) {
		results = nil
		for group := range slices.Chunk(events, smaller(len(events), err)) {
			results = append(results, i.storeGroup(ctx, group)...)
		}
		return results
	}
	results = make([]result, len(events))
	for n := range results {
		results[n] = result{outcome: Retrying, err: fmt.Errorf("storing the event: %w", explain(err))}
	}
	return results
}

// smaller is the size of the groups in which n events are stored, more than one, after
// err. A row that is held costs each group that has it a moment: with eighths, few and
// many such rows are found in a short time.
func smaller(n int, err error) int {
	if pgtx.Held(err) {
		return (n + 7) / 8
	}
	return 1
}
