package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// delivery is a job: a delivered event. A second job with the same ID is not inserted.
type delivery struct {
	ID     string `json:"id" river:"unique"`
	Charge string `json:"charge"`
	Cents  int64  `json:"cents"`
}

// Kind names the job in River's tables.
func (delivery) Kind() string { return "delivery" }

// riverJobs receives deliveries as jobs of River, and works on them.
type riverJobs struct {
	river.WorkerDefaults[delivery]
	pool *pgxpool.Pool
	jobs *river.Client[pgx.Tx]
}

func newRiver(ctx context.Context, s *schema) (*riverJobs, error) {
	driver := riverpgxv5.New(s.pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, fmt.Errorf("making River's tables: %w", err)
	}
	r := &riverJobs{pool: s.pool}
	workers := river.NewWorkers()
	river.AddWorker(workers, r)
	r.jobs, err = river.NewClient(driver, &river.Config{
		Queues:        map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 4 * int(s.pool.Config().MaxConns)}},
		Workers:       workers,
		FetchCooldown: time.Millisecond,
	})
	return r, err
}

func (r *riverJobs) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	receive(w, req, func(ctx context.Context, e *handEvent, _ []byte) error {
		_, err := r.jobs.Insert(ctx, delivery{e.ID, e.Payment.ID, e.cents()}, &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true}})
		return err
	})
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
