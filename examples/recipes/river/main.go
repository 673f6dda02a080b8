// This example does work that a handler must not do in its transaction, here sending a receipt,
// as a job of River, a job queue in Postgres (https://riverqueue.com). The handler
// enqueues the job in its own transaction, so there is a job exactly if the event took
// effect. River runs it at least once, and again after a failure.
//
//	DATABASE_URL=postgres://localhost/shop ASAAS_WEBHOOK_TOKEN=… go run ./river
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal("river: ", err)
	}
}

func run(ctx context.Context, database string) error {
	if database == "" {
		return errors.New("set DATABASE_URL")
	}
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return err
	}
	defer pool.Close()
	send := func(_ context.Context, r Receipt) error { log.Print("a receipt for ", r.Charge); return nil }
	a, err := newApp(ctx, pool, os.Getenv("ASAAS_WEBHOOK_TOKEN"), send)
	if err != nil {
		return err
	}
	if err := a.jobs.Start(ctx); err != nil {
		return err
	}
	http.Handle("POST /webhooks/asaas", a.inbox)
	err = idem.Serve(ctx, &http.Server{Addr: ":8080"}, a.inbox)
	return errors.Join(err, a.jobs.Stop(context.WithoutCancel(ctx)))
}

// Receipt is the job.
type Receipt struct {
	Charge string `json:"charge"`
}

// Kind names the job in River's tables.
func (Receipt) Kind() string { return "receipt" }

type receipts struct {
	river.WorkerDefaults[Receipt]
	send func(context.Context, Receipt) error
}

func (w *receipts) Work(ctx context.Context, job *river.Job[Receipt]) error {
	return w.send(ctx, job.Args)
}

// app is the application: a receiver of events, and the workers of jobs.
type app struct {
	inbox *idem.Inbox
	jobs  *river.Client[pgx.Tx]
}

const payments = `create table if not exists payments (charge text primary key, paid_at timestamptz not null default now())`

func newApp(ctx context.Context, pool *pgxpool.Pool, token string, send func(context.Context, Receipt) error) (*app, error) {
	if err := idem.Migrate(ctx, pool); err != nil {
		return nil, err
	}
	driver := riverpgxv5.New(pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return nil, fmt.Errorf("making River's tables: %w", err)
	}
	if _, err := pool.Exec(ctx, payments); err != nil {
		return nil, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &receipts{send: send})
	jobs, err := river.NewClient(driver, &river.Config{
		Queues:  map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 4}},
		Workers: workers,
	})
	if err != nil {
		return nil, err
	}
	events := asaas.NewDispatcher(token)
	a := &app{inbox: idem.NewInbox(pool, events), jobs: jobs}
	events.OnPaymentReceived(a.paid)
	return a, nil
}

// paid books a charge and asks for its receipt, both or neither. A chargeback that is won
// brings PAYMENT_RECEIVED again, as another event: the charge is booked, and has its receipt.
func (a *app) paid(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	booked, err := tx.Exec(ctx, `insert into payments (charge) values ($1) on conflict do nothing`, e.Payment.ID)
	if err != nil || booked.RowsAffected() == 0 {
		return err
	}
	_, err = a.jobs.InsertTx(ctx, tx, Receipt{Charge: e.Payment.ID}, nil)
	return err
}
