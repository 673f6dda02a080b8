//go:build unix

package idem_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
)

// naive is the inbox that a good engineer writes in an afternoon: one INSERT for
// each delivery, one row for all that is known of an event, workers that each
// claim one with SKIP LOCKED, process it and commit. It keeps no order.
type naive struct {
	pool   *pgxpool.Pool
	stored chan struct{} // has an element for each delivery: workers that asked the database would slow the others down in their turns
}

func (n naive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	oneInsert{n.pool, "naive"}.ServeHTTP(w, r)
	n.stored <- struct{}{}
}

// one processes one event.
func (n naive) one(ctx context.Context) error {
	return pgx.BeginFunc(ctx, n.pool, func(tx pgx.Tx) error {
		var id string
		var body []byte
		err := tx.QueryRow(ctx, `
update naive set state = 'done' where id = (
	select id from naive where state = 'pending' order by received_at limit 1 for update skip locked)
returning id, body`).Scan(&id, &body)
		if err != nil {
			return err
		}
		var event note
		if err := json.Unmarshal(body, &event); err != nil {
			return err
		}
		return bookOrder(ctx, tx, &event)
	})
}

// naiveWork runs the naive inbox with as many workers as ours has.
func naiveWork(b *testing.B, pool *pgxpool.Pool) *rival {
	b.Helper()
	n, done := naive{pool, make(chan struct{}, 1<<20)}, make(chan struct{}, 1<<20)
	ctx, stop := context.WithCancel(b.Context())
	b.Cleanup(stop)
	for range idem.NewInbox(pool, &notes{}).Workers {
		go func() {
			for {
				select {
				case <-n.stored:
				case <-ctx.Done():
					return
				}
				err := n.one(ctx)
				for errors.Is(err, pgx.ErrNoRows) { // it looked before the other's row was there
					err = n.one(ctx)
				}
				if err != nil && ctx.Err() == nil {
					b.Error(err)
				}
				done <- struct{}{}
			}
		}()
	}
	r, handled := serve(b, "naive", n), 0
	r.finish = func(events int) {
		for ; handled < events; handled++ {
			<-done
		}
	}
	return r
}
