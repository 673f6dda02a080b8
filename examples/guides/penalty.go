package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
)

const (
	token  = "a token of thirty-two characters"
	poison = "pay_poison"
	next   = "pay_next"
)

// penalty prints the cost of one event that always fails to the next customer, with an event
// behind it in a sequential queue, on Asaas's schedule.
func penalty(ctx context.Context, pool *pgxpool.Pool, out io.Writer) error {
	handler := func(_ context.Context, _ pgx.Tx, e *asaas.PaymentEvent) error {
		if e.Payment.ID == poison {
			return errors.New("it always fails")
		}
		return nil
	}
	events := asaas.NewDispatcher(token)
	events.OnPaymentConfirmed(handler) // another type than above, and another key
	processor, inbox := idem.NewProcessor(pool, events), idem.NewInbox(pool, events)
	processor.Logger, inbox.Logger = nil, nil
	fmt.Fprintln(out, "| Receiver | the next customer's event is answered 200 after | Asaas stops the queue |")
	fmt.Fprintln(out, "|---|---|---|")
	for _, r := range []struct {
		name string
		http.Handler
	}{
		{"answers 500 until it works", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			e, err := events.Open(r)
			if err != nil || e.Key == poison {
				w.WriteHeader(http.StatusInternalServerError)
			}
		})},
		{"idem.Processor", processor},
		{"idem.Inbox", inbox},
	} {
		if _, err := pool.Exec(ctx, `delete from idem_events where key in ($1, $2)`, poison, next); err != nil {
			return err
		}
		after, stops := wait(r.Handler)
		waits := "never"
		if after >= 0 {
			waits = after.String()
		}
		fmt.Fprintf(out, "| %s | %s | %s |\n", r.name, waits, stops)
	}
	return nil
}

// wait returns after which time the second event is taken, or -1, and when the queue is stopped.
func wait(receiver http.Handler) (taken time.Duration, stops string) {
	fake := asaastest.New()
	defer fake.Close()
	fake.AddWebhook(asaastest.Webhook{Handler: receiver, Token: token, URL: "https://shop.example/webhooks/asaas"})
	begin := fake.Now()
	fake.Emit(
		asaastest.Event("PAYMENT_CONFIRMED", asaastest.Set("payment.id", poison)),
		asaastest.Event("PAYMENT_CONFIRMED", asaastest.Set("payment.id", next), asaastest.Set("id", "evt_next")),
	)
	fake.Advance(14 * 24 * time.Hour)
	taken, stops = -1, "no"
	for _, e := range fake.Timeline() {
		switch {
		case e.Kind == asaastest.Delivered && e.EventID == "evt_next":
			taken = e.At.Sub(begin)
		case e.Kind == asaastest.Paused:
			stops = "after " + e.At.Sub(begin).String()
		}
	}
	return taken, stops
}
