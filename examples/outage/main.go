// Outage is a weekend on which a shop's webhooks fail, and the Monday on which
// their queue is started again:
//
//	go run ./examples/outage
//
// On Friday a version is deployed without its migration, so that its handler
// fails for every event. Asaas tries more and more rarely, writes e-mails, and
// stops the queue. Payments go on. On Monday [asaas.Recover] refuses to start
// the queue while a dry run of the handler fails, and starts it once one
// passes. In the end each payment is in the shop's ledger once, in order.
//
// Asaas stops this queue because the shop wants it so, for the sake of its
// ledger's order: see neverPark in shop.go. By default the events that fail are
// parked, and the queue goes on.
//
// The shop, its HTTP server and its Postgres are real; without IDEMTEST_DATABASE_URL it
// starts a Postgres of its own. Asaas is package asaastest's: in its time days
// pass in milliseconds. The part that an application of yours has is in shop.go, the steps that
// you do after an outage in recover.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/interrupt"
)

func main() {
	ctx, out := interrupt.Context(os.Stdout)
	if err := run(ctx, out); err != nil {
		fmt.Fprintln(os.Stderr, "outage:", interrupt.Explain(ctx, err))
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	postgres, err := idemtest.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, postgres.Close()) }()
	pool, err := pgxpool.New(ctx, postgres.URL())
	if err != nil {
		return err
	}
	defer pool.Close()
	fmt.Fprintf(out, "%s, and an Asaas in virtual time, that of Brasília\n\n", postgres.Origin())
	s, err := newShop(ctx, pool, neverPark)
	if err != nil {
		return err
	}
	start := time.Now()
	w := newWeekend(s, out)
	defer w.end()
	if err := w.play(ctx); err != nil {
		return err
	}
	if err := w.check(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\nEach payment is booked once, in order. The weekend took %d ms.\n", time.Since(start).Milliseconds())
	return err
}

var (
	friday = time.Date(2026, 8, 14, 17, 0, 0, 0, asaas.Brasilia())
	monday = friday.Add(64 * time.Hour) // 09:00
)

// play is the story.
func (w *weekend) play(ctx context.Context) error {
	w.open(friday)
	w.shop.deploy(version1)
	w.say("the shop is deployed: version 1")
	w.Inject(0, asaastest.LostAnswer) // the second payment is delivered twice
	w.until(friday.Add(4 * time.Hour))

	w.shop.deploy(version2)
	w.say("version 2 is deployed, without its migration")
	w.until(monday)

	client := w.Client() // asaas.NewClient(asaas.Production, os.Getenv("ASAAS_API_KEY"))
	if err := w.lookAround(ctx, client); err != nil {
		return err
	}
	if err := w.recoverTooEarly(ctx, client); err != nil {
		return err
	}
	w.until(monday.Add(20 * time.Minute))

	if err := w.shop.migrate(ctx); err != nil {
		return err
	}
	w.say("the migration is done")
	w.Inject(asaastest.Concurrent, asaastest.Duplicate) // the first two come twice: Asaas delivers at least once
	if err := w.recover(ctx, client); err != nil {
		return err
	}
	w.until(monday.Add(3 * time.Hour))
	w.say("on call: %d events wait in the queue", w.Webhook(w.webhook).Pending)
	return ctx.Err()
}
