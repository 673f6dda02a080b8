//go:build unix

package idem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
)

// handWritten is the code of a good engineer on pgx; do is the transaction.
type handWritten struct {
	pool *pgxpool.Pool
	do   func(ctx context.Context, pool *pgxpool.Pool, n *note) error
}

func (h handWritten) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil || r.Header.Get("token") != "right" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var n note
	if err := json.Unmarshal(body, &n); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 8*time.Second)
	defer cancel()
	err = h.do(ctx, h.pool, &n)
	if err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"received":true}`)
}

// insertProcessed is the record of an event, by hand.
const insertProcessed = `insert into processed (id) values ($1) on conflict do nothing`

// fourTrips is the usual way: BEGIN; INSERT … ON CONFLICT DO NOTHING; the work;
// COMMIT.
func fourTrips(ctx context.Context, pool *pgxpool.Pool, n *note) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, insertProcessed, n.ID)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return bookOrder(ctx, tx, n)
	})
}

// threeTrips is the fewest that a pgx.Tx for the work allows: BEGIN and INSERT go
// together.
func threeTrips(ctx context.Context, pool *pgxpool.Pool, n *note) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	b := &pgx.Batch{}
	b.BeginTx(pgx.TxOptions{})
	b.Queue(insertProcessed, n.ID)
	results := conn.SendBatch(ctx, b)
	tx := results.Tx()
	defer func() { _ = tx.Rollback(ctx) }()
	if _, err := results.Exec(); err != nil {
		return errors.Join(err, results.Close())
	}
	tag, err := results.Exec()
	if err := errors.Join(err, results.Close()); err != nil || tag.RowsAffected() == 0 {
		return err
	}
	if err := bookOrder(ctx, tx, n); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// queueOrder is the same work, declared instead of executed.
func queueOrder(ctx context.Context, _ pgx.Tx, n *note) error {
	idem.ExecAtCommit(ctx, updateOrder, n.Order)
	return nil
}

// BenchmarkInline compares inline mode with the same work written by hand, on
// one durable Postgres. ratio is ours to theirs in events per second: above 1 we
// are faster. against is the work of the handler, and the code that it is compared with.
func BenchmarkInline(b *testing.B) {
	url := durable(b)
	for _, c := range []struct {
		against string
		by      func(context.Context, *pgxpool.Pool, *note) error
		work    idem.Handler[*note]
	}{
		{"exec/four-trips", fourTrips, bookOrder},
		{"exec/three-trips", threeTrips, bookOrder},
		{"queue/three-trips", threeTrips, queueOrder},
	} {
		for _, distance := range []time.Duration{0, time.Millisecond} {
			for _, at := range []int{1, 16, 64} {
				b.Run(fmt.Sprintf("%s/distance=%s/at=%d", c.against, distance, at), func(b *testing.B) {
					pool := shopPool(b, url, distance)
					race(b, pool, at, serve(b, "by-hand", handWritten{pool, c.by}), serve(b, "paghooks", newBenchProcessor(pool, c.work)))
				})
			}
		}
	}
}

// BenchmarkDuplicates compares events that come again with new ones.
func BenchmarkDuplicates(b *testing.B) {
	url := durable(b)
	for _, at := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("at=%d", at), func(b *testing.B) {
			pool := shopPool(b, url, 0)
			again := serve(b, "again", newBenchProcessor(pool, bookOrder))
			again.same = true
			race(b, pool, at, serve(b, "new", newBenchProcessor(pool, bookOrder)), again)
		})
	}
}

// BenchmarkMemory reports what is in use after b.N events, and grew since the
// first tenth of them: run it with -benchtime 100000x.
func BenchmarkMemory(b *testing.B) {
	url := durable(b)
	pool := shopPool(b, url, 0)
	ours := serve(b, "paghooks", newBenchProcessor(pool, bookOrder))
	ours.run(b, max(1, b.N/10), 16, nil)
	before := heap()
	b.ResetTimer()
	ours.run(b, b.N, 16, nil)
	b.StopTimer()
	after := heap()
	b.ReportMetric(float64(after)/(1<<20), "MB")
	b.ReportMetric(float64(after-before)/float64(b.N), "grown-B/event")
}

// newBenchProcessor is a processor that logs nothing.
func newBenchProcessor(pool *pgxpool.Pool, h idem.Handler[*note]) *idem.Processor {
	p := idem.NewProcessor(pool, source(h))
	p.Logger = nil
	return p
}

// newBenchInbox is an inbox that logs nothing.
func newBenchInbox(pool *pgxpool.Pool) *idem.Inbox {
	i := idem.NewInbox(pool, source(bookOrder))
	i.Logger = nil
	return i
}
