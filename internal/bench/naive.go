package main

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// naive is the worker of the inbox that a good engineer writes in an afternoon,
// behind oneInsert: it claims one event with SKIP LOCKED, processes it, and
// commits. It keeps no order, and knows no failures.
type naive struct {
	pool   *pgxpool.Pool
	stored chan struct{} // has an element for each row: workers that asked the database would slow the others down in their turns
}

func newNaive(pool *pgxpool.Pool) naive { return naive{pool, make(chan struct{}, 1<<20)} }

func (n naive) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	oneInsert{n.pool, token, n.stored}.ServeHTTP(w, r)
}

// run has workers until ctx ends, and calls done for each event.
func (n naive) run(ctx context.Context, workers int, done func()) error {
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for {
				select {
				case <-n.stored:
				case <-ctx.Done():
					return
				}
				err := n.one(context.WithoutCancel(ctx))
				for err != nil && ctx.Err() == nil { // no rows, if it looked before the other's row was there
					err = n.one(context.WithoutCancel(ctx))
				}
				if err == nil {
					done()
				}
			}
		})
	}
	all.Wait()
	return nil
}

func (n naive) one(ctx context.Context) error {
	return pgx.BeginFunc(ctx, n.pool, func(tx pgx.Tx) error {
		var body []byte
		err := tx.QueryRow(ctx, `
update stored set state = 'done' where id = (
	select id from stored where state = 'pending' order by received_at limit 1 for update skip locked)
returning body`).Scan(&body)
		if err != nil {
			return err
		}
		var e handEvent
		if err := json.Unmarshal(body, &e); err != nil {
			return err
		}
		return e.book(ctx, tx)
	})
}
