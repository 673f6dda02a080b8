package idem_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/outbox"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// confirmed is an earlier event of the same payment as received.
var confirmed = strings.NewReplacer("&1", "&0", "RECEIVED", "CONFIRMED", "2026-11-20 10:", "2026-11-20 09:").Replace(received)

var errNoOrder = errors.New("no such order")

// drain has the workers of an inbox do what is due, and says what became of it.
func drain(ctx context.Context, inbox *idem.Inbox) {
	inbox.Logger = nil
	inbox.Observe = func(_ context.Context, o idem.Observation) {
		fmt.Println("worker:", o.Event.Type, o.Outcome)
	}
	inbox.Workers = 1
	if err := inbox.Drain(ctx); err != nil {
		log.Fatal(err)
	}
	inbox.Observe = nil
}

// The provider is answered once an event is on disk, and its work is done
// afterwards.
func ExampleNewInbox() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	events := asaas.NewDispatcher(token)
	done := make(chan string)
	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		idem.AfterCommit(ctx, func(context.Context) { done <- e.Payment.ID })
		return payOrder(ctx, tx, e)
	})
	inbox := idem.NewInbox(pool, events)

	deliver(inbox, received)
	deliver(inbox, received)

	workers, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- inbox.Run(workers) }()
	fmt.Println("done:", <-done)
	stop()
	fmt.Println(<-ended)
	// Output:
	// 200 {"received":true}
	// 200 {"received":true,"duplicate":true}
	// done: pay_1
	// <nil>
}

// Events of one payment are processed in the order of the provider's time,
// however they arrive.
func ExampleInbox_Run() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(payOrder)
	events.OnPaymentConfirmed(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil })
	inbox := idem.NewInbox(pool, events)

	deliver(inbox, received)
	deliver(inbox, confirmed)

	ctx, stop := context.WithCancel(ctx) // in a program: signal.NotifyContext
	left := 2
	inbox.Observe = func(_ context.Context, o idem.Observation) {
		fmt.Println(o.Event.Type, o.Outcome)
		if left--; left == 0 {
			stop()
		}
	}
	inbox.Workers = 1 // by default several payments are processed at once
	fmt.Println(inbox.Run(ctx))
	// Output:
	// 200 {"received":true}
	// 200 {"received":true}
	// PAYMENT_CONFIRMED done
	// PAYMENT_RECEIVED done
	// <nil>
}

// A consumer of a queue may forget an event once the inbox has it.
func ExampleInbox_Accept() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	events := asaas.NewDispatcher()
	events.OnPaymentReceived(payOrder)
	inbox := idem.NewInbox(pool, events)

	for range 2 {
		outcome, err := inbox.Accept(ctx, asaas.Identify([]byte(received)))
		fmt.Println(outcome, err)
	}
	drain(ctx, inbox)
	// Output:
	// pending <nil>
	// duplicate <nil>
	// worker: PAYMENT_RECEIVED done
}

// What no further attempt can fix is parked immediately.
func ExampleNoRetry() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error {
		return idem.NoRetry(errNoOrder)
	})
	inbox := idem.NewInbox(pool, events)
	deliver(inbox, received)
	drain(ctx, inbox)
	// Output:
	// 200 {"received":true}
	// worker: PAYMENT_RECEIVED parked
}

// A handler that knows when its work can be done says so.
func ExampleRetryAt() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	opens := time.Date(2036, 11, 21, 9, 0, 0, 0, time.UTC)
	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error {
		return idem.RetryAt(opens, errors.New("the bank is closed"))
	})
	inbox := idem.NewInbox(pool, events)
	deliver(inbox, received)
	drain(ctx, inbox)
	for e, err := range inbox.List(ctx, idem.Filter{States: []idem.State{idem.StatePending}}) {
		fmt.Println(e.LastError, e.Attempts, e.DueAt.UTC().Format(time.DateOnly), err)
	}
	// Output:
	// 200 {"received":true}
	// worker: PAYMENT_RECEIVED retrying
	// the bank is closed 0 2036-11-21 <nil>
}

// List shows what needs somebody, with the reason and the payload.
func ExampleInbox_List() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	inbox := idem.NewInbox(pool, asaas.NewDispatcher(token)) // without a handler
	deliver(inbox, received)
	drain(ctx, inbox)
	for e, err := range inbox.List(ctx, idem.Filter{Keys: []string{"pay_1"}}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.ID, e.Type, e.State, len(e.Payload) == len(received))
	}
	// Output:
	// 200 {"received":true}
	// worker: PAYMENT_RECEIVED unhandled
	// evt_d26e303b238e509335ac9ba210e51b0f&1 PAYMENT_RECEIVED unhandled true
}

// Instead of an event's work something was done by hand.
func ExampleInbox_Discard() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return idem.NoRetry(errNoOrder) })
	inbox := idem.NewInbox(pool, events)
	deliver(inbox, received)
	drain(ctx, inbox)

	n, err := inbox.Discard(ctx, idem.Filter{Keys: []string{"pay_1"}}, "booked as order-1b, ticket 4711")
	fmt.Println("discarded", n, err)
	deliver(inbox, received)
	// Output:
	// 200 {"received":true}
	// worker: PAYMENT_RECEIVED parked
	// discarded 1 <nil>
	// 200 {"received":true,"duplicate":true}
}

// After a fix is deployed, workers do again what was parked, in its order.
func ExampleInbox_Requeue() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return idem.NoRetry(errNoOrder) })
	inbox := idem.NewInbox(pool, events)
	deliver(inbox, received)
	drain(ctx, inbox)

	events = asaas.NewDispatcher(token) // the next version of the application
	events.OnPaymentReceived(payOrder)
	inbox = idem.NewInbox(pool, events)
	n, err := inbox.Requeue(ctx, idem.Filter{Types: []string{"PAYMENT_RECEIVED"}})
	fmt.Println("requeued", n, err)
	drain(ctx, inbox)
	// Output:
	// 200 {"received":true}
	// worker: PAYMENT_RECEIVED parked
	// requeued 1 <nil>
	// worker: PAYMENT_RECEIVED done
}

// A parked event holds the later ones of its payment.
func Example_blocked() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(payOrder)
	events.OnPaymentConfirmed(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return idem.NoRetry(errNoOrder) })
	inbox := idem.NewInbox(pool, events)
	deliver(inbox, confirmed)
	deliver(inbox, received)
	drain(ctx, inbox)

	blocked, _, err := operator.New(inbox, "").Blocked(ctx, 100)
	if err != nil {
		log.Fatal(err)
	}
	for _, b := range blocked {
		fmt.Printf("%s: %d wait behind %s: %s\n", b.Key, b.Waiting, b.Type, b.LastError)
	}
	// Output:
	// 200 {"received":true}
	// 200 {"received":true}
	// worker: PAYMENT_CONFIRMED parked
	// pay_1: 1 wait behind PAYMENT_CONFIRMED: no such order
}

// A dry run tells whether a handler is sound, and leaves nothing behind.
func ExampleInbox_DryRun() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(payOrder)
	inbox := idem.NewInbox(pool, events)
	fmt.Println(inbox.DryRun(ctx, asaas.Identify([]byte(received))))

	// The same through the application's network and verification:
	r := httptest.NewRequest(http.MethodPost, "/webhooks/asaas", strings.NewReader(received))
	r.Header.Set("asaas-access-token", token)
	r.Header.Set(idem.DryRunHeader, "1")
	w := httptest.NewRecorder()
	inbox.ServeHTTP(w, r)
	fmt.Println(w.Code, w.Body)

	deliver(inbox, received) // it is new, still
	// Output:
	// done <nil>
	// 503 {"received":false,"dry_run":"done"}
	// 200 {"received":true}
}

// Before Replay, DryReplay tells what it would do.
func ExampleInbox_DryReplay() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	before := idem.NewInbox(pool, asaas.NewDispatcher(token)) // no handler yet
	deliver(before, received)
	deliver(before, confirmed)
	drain(ctx, before)

	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(payOrder)
	replayed, err := idem.NewInbox(pool, events).DryReplay(ctx, idem.Filter{})
	fmt.Printf("%+v %v\n", replayed, err)
	// Output:
	// 200 {"received":true}
	// 200 {"received":true}
	// worker: PAYMENT_CONFIRMED unhandled
	// worker: PAYMENT_RECEIVED unhandled
	// {Done:1 Failed:0 Unhandled:1 Left:0 Overtaken:[]} <nil>
}

// What is not in the transaction is left out of a dry run.
func ExampleIsDryRun() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		if !idem.IsDryRun(ctx) {
			fmt.Println("asking the carrier to collect what was bought with", e.Payment.ID)
		}
		return payOrder(ctx, tx, e)
	})
	inbox := idem.NewInbox(pool, events)
	fmt.Println(inbox.DryRun(ctx, asaas.Identify([]byte(received))))
	deliver(inbox, received)
	drain(ctx, inbox)
	// Output:
	// done <nil>
	// 200 {"received":true}
	// asking the carrier to collect what was bought with pay_1
	// worker: PAYMENT_RECEIVED done
}

// What somebody does by hand is recorded: who, what and why, to which events, and
// what came of it.
func Example_operator() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return idem.NoRetry(errNoOrder) })
	inbox := idem.NewInbox(pool, events)
	deliver(inbox, received)
	drain(ctx, inbox)

	ana := operator.New(inbox, "ana@shop")
	plan, err := ana.PlanDiscard(ctx, idem.Filter{Types: []string{"PAYMENT_RECEIVED"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(plan.Count, "to be given up") // and now ask
	if _, err := plan.Do(ctx, "paid in the shop"); err != nil {
		log.Fatal(err)
	}
	actions, err := ana.Actions(ctx, 0, 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range actions {
		fmt.Printf("%s: %s of %s (%s): %s\n", a.Actor, a.Action, a.Filter, a.Reason, a.Result)
	}
	// Output:
	// 200 {"received":true}
	// worker: PAYMENT_RECEIVED parked
	// 1 to be given up
	// ana@shop: discard of states unhandled parked; types PAYMENT_RECEIVED; 1 by row key (paid in the shop): 1 discarded
}

// printer is a broker.
type printer struct{}

func (printer) Publish(_ context.Context, m broker.Message) error {
	fmt.Println("published:", m.Type, m.Key)
	return nil
}

// A handler emits a message, which is published if, and only if, its transaction
// is committed.
func Example_outbox() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	outbox := outbox.New(pool, "shop", printer{})
	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		if err := payOrder(ctx, tx, e); err != nil {
			return err
		}
		return outbox.Emit(ctx, broker.Message{Type: "order.paid", Key: e.Payment.ID})
	})
	inbox := idem.NewInbox(pool, events)

	deliver(inbox, received)
	deliver(inbox, received)
	drain(ctx, inbox)
	drain(ctx, outbox.Inbox) // in a program: idem.Serve(ctx, server, inbox, outbox)
	// Output:
	// 200 {"received":true}
	// 200 {"received":true,"duplicate":true}
	// worker: PAYMENT_RECEIVED done
	// published: order.paid pay_1
	// worker: order.paid done
}
