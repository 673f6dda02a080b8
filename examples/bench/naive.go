package main

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// naive is the worker of the inbox that a good engineer writes in an afternoon,
// behind oneInsert: it claims one event with SKIP LOCKED, processes it, and
// commits. It keeps no order, and knows no failures.
type naive struct {
	pool *pgxpool.Pool
	done func()
}

// run has n workers until ctx ends.
func (n naive) run(ctx context.Context, workers int) error {
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for ctx.Err() == nil {
				switch err := n.one(context.WithoutCancel(ctx)); {
				case err == nil:
					n.done()
				case errors.Is(err, pgx.ErrNoRows):
					time.Sleep(time.Millisecond)
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
