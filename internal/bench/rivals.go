package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/paghooks/paghooks/asaas"
)

// byHand is a receiver that a good engineer writes on pgx, in four round trips: BEGIN; INSERT … ON
// CONFLICT DO NOTHING; UPDATE; COMMIT.
func byHand(pool *pgxpool.Pool) http.Handler {
	return receive(func(ctx context.Context, e *handEvent, _ []byte) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, `insert into processed (id) values ($1) on conflict do nothing`, e.ID)
			if err != nil || tag.RowsAffected() == 0 {
				return err
			}
			return book(ctx, tx, e.Payment.ID, e.cents())
		})
	})
}

// oneInsert stores events first, as a good engineer does: one committed INSERT for each request. stored gets
// an element for each row, unless it is nil.
func oneInsert(pool *pgxpool.Pool, stored chan<- struct{}) http.Handler {
	return receive(func(ctx context.Context, e *handEvent, body []byte) error {
		tag, err := pool.Exec(ctx, `insert into stored (id, body) values ($1, $2) on conflict do nothing`, e.ID, body)
		if tag.RowsAffected() > 0 && stored != nil {
			stored <- struct{}{}
		}
		return err
	})
}

// runNaive runs so many workers of the inbox that a good engineer writes in an afternoon, behind
// oneInsert: each claims one event with SKIP LOCKED, processes it, and commits. It keeps no
// order, and knows no failures. They wait for stored: workers that asked the database would slow the
// others down in their turns.
func runNaive(ctx context.Context, pool *pgxpool.Pool, workers int, stored <-chan struct{}) error {
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for {
				select {
				case <-stored:
				case <-ctx.Done():
					return
				}
				for processOne(ctx, pool) != nil && ctx.Err() == nil { // no rows, if it looked before the other's row was there
				}
			}
		})
	}
	all.Wait()
	return nil
}

func processOne(ctx context.Context, pool *pgxpool.Pool) error {
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
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
		return book(ctx, tx, e.Payment.ID, e.cents())
	})
}

// handEvent holds the fields of an event that a receiver written by hand decodes: those that the
// handler needs.
type handEvent struct {
	ID      string `json:"id"`
	Event   string `json:"event"`
	Payment struct {
		ID    string  `json:"id"`
		Value float64 `json:"value"`
	} `json:"payment"`
}

func (e *handEvent) cents() int64 { return int64(math.Round(e.Payment.Value * 100)) }

// receive verifies and decodes deliveries, and answers them by what do returns.
func receive(do func(context.Context, *handEvent, []byte) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || asaas.Verify(r.Header, body, token) != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var e handEvent
		if err := json.Unmarshal(body, &e); err != nil || e.Event != string(asaas.EventPaymentReceived) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 8*time.Second)
		defer cancel()
		if err := do(ctx, &e, body); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"received":true}`)
	})
}

// delivery is a job: a delivered event. A second job with the same ID is not inserted.
type delivery struct {
	ID     string `json:"id" river:"unique"`
	Charge string `json:"charge"`
	Cents  int64  `json:"cents"`
}

// Kind names the job in River's tables.
func (delivery) Kind() string { return "delivery" }

// riverJobs inserts deliveries as jobs of River, and works on them.
type riverJobs struct {
	river.WorkerDefaults[delivery]
	pool *pgxpool.Pool
	jobs *river.Client[pgx.Tx]
}

func newRiver(ctx context.Context, pool *pgxpool.Pool) (*riverJobs, error) {
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, fmt.Errorf("making River's tables: %w", err)
	}
	r := &riverJobs{pool: pool}
	workers := river.NewWorkers()
	river.AddWorker(workers, r)
	r.jobs, err = river.NewClient(driver, &river.Config{
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 4 * int(pool.Config().MaxConns)}},
		Workers:       workers,
		FetchCooldown: time.Millisecond,
	})
	return r, err
}

func (r *riverJobs) insert(ctx context.Context, e *handEvent, _ []byte) error {
	_, err := r.jobs.Insert(ctx, delivery{e.ID, e.Payment.ID, e.cents()}, &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}})
	return err
}

// Work books a payment and completes the job in one transaction, so that it is booked exactly once.
func (r *riverJobs) Work(ctx context.Context, job *river.Job[delivery]) error {
	return pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		if err := book(ctx, tx, job.Args.Charge, job.Args.Cents); err != nil {
			return err
		}
		_, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job)
		return err
	})
}

// run works until ctx ends.
func (r *riverJobs) run(ctx context.Context) error {
	if err := r.jobs.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	<-ctx.Done()
	return r.jobs.Stop(context.WithoutCancel(ctx))
}
