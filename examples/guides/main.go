// Guides delivers events to the schemes that guides and articles show for idempotent
// webhooks, and to this module, with the same faults, and prints the state of the
// payments: the tables of docs/from-the-guides.md.
//
//	go run ./examples/guides
//
// It needs no set-up: without IDEMTEST_DATABASE_URL it starts a Postgres of its own. The
// schemes (schemes.go) are written anew, in Go and without their mistakes of detail: they
// lose by their order of steps. Each fault (faults.go) happens once, at a chosen step, so that each run
// prints the same.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		log.Fatal("guides: ", err)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	server, err := idemtest.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	pool, err := pgxpool.New(ctx, server.URL())
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := compare(ctx, pool, out); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return penalty(ctx, pool, out)
}

const tables = `
create table ledger (event text not null, part int not null); -- the effect, of two parts: money that is booked, and an order that is paid
create table queue (event text primary key, done bool not null default false);
create table seen (event text primary key);
create table keys (event text primary key, status int);  -- no status: it is being processed`

// compare prints the effect of each fault on each scheme.
func compare(ctx context.Context, pool *pgxpool.Pool, out io.Writer) error {
	if err := idem.Migrate(ctx, pool); err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, tables); err != nil {
		return err
	}
	fmt.Fprintln(out, "| Scheme | twice at once | killed, at each step | the handler fails once | the sender leaves |")
	fmt.Fprintln(out, "|---|---|---|---|---|")
	for _, s := range schemes(pool) {
		cells := []string{s.name}
		for _, try := range []func(context.Context, *trial) error{atOnce, killed, failing, leaving} {
			t := &trial{scheme: s, pool: pool}
			if err := try(ctx, t); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			cells = append(cells, t.String())
		}
		fmt.Fprintln(out, "| "+strings.Join(cells, " | ")+" |")
	}
	return nil
}

const (
	token  = "a token of thirty-two characters"
	poison = "pay_poison"
	next   = "pay_next"
)

// penalty prints the cost of one event that always fails to the next customer, with an event
// behind it in a sequential queue, on Asaas's schedule.
func penalty(ctx context.Context, pool *pgxpool.Pool, out io.Writer) error {
	events := asaas.NewDispatcher(token)
	events.OnPaymentConfirmed(func(_ context.Context, _ pgx.Tx, e *asaas.PaymentEvent) error {
		if e.Payment.ID == poison {
			return errors.New("it always fails")
		}
		return nil
	})
	byHand := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if e, err := events.Open(r); err != nil || e.Key == poison {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	processor, inbox := idem.NewProcessor(pool, events), idem.NewInbox(pool, events)
	processor.Logger, inbox.Logger = nil, nil
	fmt.Fprintln(out, "| Receiver | the next customer's event is answered 200 after | Asaas stops the queue |")
	fmt.Fprintln(out, "|---|---|---|")
	for _, r := range []struct {
		name string
		http.Handler
	}{{"answers 500 until it works", byHand}, {"idem.Processor", processor}, {"idem.Inbox", inbox}} {
		if _, err := pool.Exec(ctx, `delete from idem_events where key in ($1, $2)`, poison, next); err != nil {
			return err
		}
		taken, stopped := wait(r.Handler)
		fmt.Fprintf(out, "| %s | %s | %s |\n", r.name, taken, stopped)
	}
	return nil
}

// wait returns after which time the second event is taken, and when the queue is stopped.
func wait(receiver http.Handler) (taken, stopped string) {
	fake := asaastest.New()
	defer fake.Close()
	fake.AddWebhook(asaastest.Webhook{Handler: receiver, Token: token, URL: "https://shop.example/webhooks/asaas"})
	begin := fake.Now()
	fake.Emit(
		asaastest.Event("PAYMENT_CONFIRMED", asaastest.Set("payment.id", poison)),
		asaastest.Event("PAYMENT_CONFIRMED", asaastest.Set("payment.id", next), asaastest.Set("id", "evt_next")),
	)
	fake.Advance(14 * 24 * time.Hour)
	taken, stopped = "never", "no"
	for _, e := range fake.Timeline() {
		switch {
		case e.Kind == asaastest.Delivered && e.EventID == "evt_next":
			taken = e.At.Sub(begin).String()
		case e.Kind == asaastest.Paused:
			stopped = "after " + e.At.Sub(begin).String()
		}
	}
	return taken, stopped
}
