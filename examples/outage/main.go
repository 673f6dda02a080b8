// Outage is a weekend on which a shop refuses its webhooks, and the Monday on which their queue goes on:
//
//	go run ./examples/outage
//
// On Friday the shop is deployed without its token, so that it cannot verify a delivery. Asaas tries more and more
// rarely, writes e-mails, and stops the queue; customers go on paying. On Monday [asaas.Recover] changes nothing
// while the shop refuses deliveries, and starts the queue once the token is back. In the end each payment is booked once.
//
// The shop (shop.go) and its Postgres are real. Asaas is package asaastest's: in its time days pass in
// milliseconds. The steps after an outage are in the functions look and goOn.
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
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

const token = "outage-webhook-token" // an application reads its own from the environment

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		log.Fatal("outage: ", err)
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
	if err := migrate(ctx, pool); err != nil {
		return err
	}
	// The charges are of another day than the table, and no other program has booked any: see package charges.
	if err := charges.Filled(ctx, pool, "", time.Time{}); err != nil {
		return err
	}
	w := newWeekend(pool, out)
	defer w.asaas.Close()
	return w.play(ctx)
}

// weekend is the shop, and its account at Asaas.
type weekend struct {
	pool    *pgxpool.Pool
	shop    atomic.Pointer[idem.Inbox] // the deployed one
	asaas   *asaastest.Fake
	webhook string
	out     io.Writer

	payments           int
	delivered, refused int // since the last line
}

func newWeekend(pool *pgxpool.Pool, out io.Writer) *weekend {
	w := &weekend{pool: pool, asaas: asaastest.New(), out: out}
	w.asaas.Observe = w.observe
	w.webhook = w.asaas.AddWebhook(asaastest.Webhook{
		Name:    "shop",
		URL:     "https://shop.example/webhooks/asaas",
		Token:   token,
		Events:  []asaas.EventType{asaas.EventPaymentReceived},
		Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { w.shop.Load().ServeHTTP(rw, r) }),
	})
	return w
}

func (w *weekend) play(ctx context.Context) error {
	friday := time.Date(2026, 8, 14, 17, 0, 0, 0, asaas.Brasilia())
	monday := friday.Add(64 * time.Hour) // 09:00
	w.asaas.Advance(friday.Sub(w.asaas.Now()))
	w.shop.Store(newInbox(w.pool, token))
	w.say("the shop is deployed")
	w.until(friday.Add(4 * time.Hour))

	w.shop.Store(newInbox(w.pool, ""))
	w.say("it is deployed without its token")
	w.until(monday)

	client := w.asaas.Client() // asaas.NewClient(asaas.Production, os.Getenv("ASAAS_API_KEY"))
	if err := w.look(ctx, client); err != nil {
		return err
	}
	err := w.goOn(ctx, client)
	if err == nil {
		return errors.New("the queue was started while the shop refuses deliveries")
	}
	w.say("on call: %v", err)

	w.shop.Store(newInbox(w.pool, token))
	w.say("it is deployed with its token")
	w.asaas.Inject(asaastest.Concurrent, asaastest.Duplicate) // two events come twice
	if err := w.goOn(ctx, client); err != nil {
		return err
	}
	w.until(monday.Add(time.Hour))
	w.say("on call: %d events wait in the queue", w.asaas.Webhook(w.webhook).Pending)
	return w.check(ctx)
}

// look asks Asaas for the state of its queues.
func (w *weekend) look(ctx context.Context, client *asaas.Client) error {
	for hook, err := range client.Webhooks(ctx) {
		if err != nil {
			return err
		}
		w.say("on call: Asaas says of the webhook %q: stopped %t, %d failures", hook.Name.Or(""), hook.Interrupted.Or(false), hook.PenalizedRequestsCount.Or(0))
	}
	return nil
}

// goOn gets the queue going again if the shop takes deliveries, and replays the events that it has parked.
func (w *weekend) goOn(ctx context.Context, client *asaas.Client) error {
	said := ""
	for progress, err := range asaas.Recover(ctx, client, w.webhook, token, w.shop.Load()) {
		if err != nil {
			return err
		}
		if now := progress.String(); now != said {
			w.say("on call: %s", now)
			said = now
		}
	}
	return nil
}

// until has a customer pay every 100 minutes, and Asaas deliver, until a time.
func (w *weekend) until(end time.Time) {
	const pace = 100 * time.Minute
	for ; w.asaas.Now().Add(pace).Before(end); w.asaas.Advance(pace) {
		w.payments++
		w.asaas.Emit(asaastest.Event(asaas.EventPaymentReceived,
			asaastest.Set("dateCreated", w.asaas.Now().In(asaas.Brasilia()).Format(time.DateTime)),
			asaastest.Set("payment.id", fmt.Sprintf("pay_1_a1B2c3D4e5%04d", w.payments))))
	}
	w.asaas.Advance(end.Sub(w.asaas.Now()))
}

// observe is called with all that happens at Asaas.
func (w *weekend) observe(e asaastest.Entry) {
	switch e.Kind {
	case asaastest.Delivered:
		w.delivered++
	case asaastest.Failed:
		w.refused++
	case asaastest.Emailed:
		w.say("Asaas writes an e-mail: %d attempts failed", e.Attempt)
	case asaastest.Paused:
		w.say("Asaas stops the queue")
	case asaastest.Resumed:
		w.say("Asaas starts the queue")
	}
}

// say prints a line, and before it the number of deliveries since the last one.
func (w *weekend) say(format string, args ...any) {
	if w.delivered+w.refused > 0 {
		fmt.Fprintf(w.out, "           %d deliveries taken, %d refused\n", w.delivered, w.refused)
		w.delivered, w.refused = 0, 0
	}
	fmt.Fprintf(w.out, "%s  %s\n", w.asaas.Now().In(asaas.Brasilia()).Format("Mon 15:04"), fmt.Sprintf(format, args...))
}

// check has the shop's workers do what is stored, which they do at any time in an application, and
// returns an error unless each payment is booked once.
func (w *weekend) check(ctx context.Context) error {
	if err := w.shop.Load().Drain(ctx); err != nil {
		return err
	}
	var lines, different int
	if err := w.pool.QueryRow(ctx, `select count(*), count(distinct charge) from ledger`).Scan(&lines, &different); err != nil {
		return err
	}
	if lines != w.payments || different != w.payments {
		return fmt.Errorf("the ledger has %d lines of %d payments, for %d payments", lines, different, w.payments)
	}
	_, err := fmt.Fprintf(w.out, "\nEach of the %d payments is booked once.\n", w.payments)
	return err
}
