package idem_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// An event that came before its handler was written is kept, and replayed.
func ExampleInbox_Replay() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	before := idem.NewInbox(pool, asaas.NewDispatcher(token)) // no handler yet
	deliver(before, received)
	drain(ctx, before)

	events := asaas.NewDispatcher(token) // the next version of the application
	events.OnPaymentReceived(payOrder)
	replayed, err := idem.NewInbox(pool, events).Replay(ctx, idem.Filter{})
	fmt.Printf("%+v %v\n", replayed, err)
	// Output:
	// 200 {"received":true}
	// worker: PAYMENT_RECEIVED unhandled
	// {Done:1 Failed:0 Unhandled:0 Left:0 Overtaken:[]} <nil>
}

// Stats tells what to look at; Prune forgets what is old and done.
func ExampleInbox_Stats() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return errors.New("no such order") })
	inbox := idem.NewInbox(pool, events)
	inbox.MaxAttempts = 1

	deliver(inbox, received)
	drain(ctx, inbox)
	stats, err := inbox.Stats(ctx)
	fmt.Println(stats.Pending.Events, stats.Parked.Events, err)
	deleted, err := inbox.Prune(ctx)
	fmt.Println(deleted, err)
	// Output:
	// 200 {"received":true}
	// worker: PAYMENT_RECEIVED parked
	// 0 1 <nil>
	// 0 <nil>
}

// Metrics count outcomes; errors say why.
func ExampleInbox_observe() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	inbox := idem.NewInbox(pool, asaas.NewDispatcher(token))
	inbox.Logger = nil
	inbox.Observe = func(_ context.Context, o idem.Observation) {
		fmt.Println(o.Source, o.Stage, o.Event.Type, o.Outcome, o.Err)
	}
	deliver(inbox, received)
	if err := inbox.Drain(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// asaas delivery PAYMENT_RECEIVED pending <nil>
	// 200 {"received":true}
	// asaas attempt PAYMENT_RECEIVED unhandled <nil>
}

// Two accounts that deliver to one address may use the same event id. The second
// event is not processed: look at Conflicts from time to time.
func ExampleInbox_conflicts() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(payOrder)
	inbox := idem.NewInbox(pool, events)

	deliver(inbox, received)
	deliver(inbox, strings.Replace(received, "pay_1", "pay_of_the_sandbox", 1))
	drain(ctx, inbox)

	conflicts, _, err := operator.New(inbox, "").Conflicts(ctx, 100)
	for _, c := range conflicts {
		fmt.Println(c.Type, c.Key, c.State)
	}
	fmt.Println(err)
	// Output:
	// 200 {"received":true}
	// 200 {"received":true,"duplicate":true}
	// worker: PAYMENT_RECEIVED done
	// PAYMENT_RECEIVED pay_1 done
	// <nil>
}

// A handler fails, and health is red long before Asaas stops its queue.
func Example_health() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return errors.New("a mistake") })
	inbox := idem.NewInbox(pool, events)
	monitor := health.New(inbox) // http.Handle("GET /health/webhooks", monitor)
	monitor.Logger = nil

	inbox.MaxAttempts = 1

	deliver(inbox, received)
	drain(ctx, inbox)
	report := monitor.Report()
	fmt.Println("healthy:", report.Healthy)
	for _, c := range report.Checks {
		fmt.Println(c.Name, c.Healthy)
	}
	// Output:
	// 200 {"received":true}
	// worker: PAYMENT_RECEIVED parked
	// healthy: false
	// postgres true
	// deliveries true
	// refused true
	// handlers true
	// workers true
	// clock true
	// failing true
	// parked false
	// standing true
}
