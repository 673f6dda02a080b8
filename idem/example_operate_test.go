package idem_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// An event that came before its handler was written is kept, and replayed.
func ExampleProcessor_Replay() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	before := idem.NewProcessor(pool, asaas.NewDispatcher(token)) // no handler yet
	before.Logger = nil
	deliver(before, received)

	events := asaas.NewDispatcher(token) // the next version of the application
	events.OnPaymentReceived(payOrder)
	replayed, err := idem.NewProcessor(pool, events).Replay(ctx, idem.Filter{})
	fmt.Printf("%+v %v\n", replayed, err)
	// Output:
	// 200 {"received":true}
	// {Done:1 Failed:0 Unhandled:0 Overtaken:[]} <nil>
}

// Stats tells what to look at; Prune forgets what is old and done.
func ExampleProcessor_Stats() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return errors.New("no such order") })
	processor := idem.NewProcessor(pool, events)
	processor.ParkAfter = 2
	processor.Logger = nil

	deliver(processor, received)
	deliver(processor, received)
	stats, err := processor.Stats(ctx)
	fmt.Println(stats.Retrying.Events, stats.Parked.Events, err)
	deleted, err := processor.Prune(ctx)
	fmt.Println(deleted, err)
	// Output:
	// 503 {"received":false}
	// 200 {"received":true}
	// 0 1 <nil>
	// 0 <nil>
}

// Metrics count outcomes; errors say why.
func ExampleProcessor_observe() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	processor := idem.NewProcessor(pool, asaas.NewDispatcher(token))
	processor.Logger = nil
	processor.Observe = func(_ context.Context, o idem.Observation) {
		fmt.Println(o.Source, o.Stage, o.Event.Type, o.Outcome, o.Err)
	}
	deliver(processor, received)
	// Output:
	// asaas delivery PAYMENT_RECEIVED unhandled <nil>
	// 200 {"received":true}
}

// Two accounts that deliver to one address may use the same event id. The second
// event is not processed: look at Conflicts from time to time.
func ExampleProcessor_conflicts() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(payOrder)
	processor := idem.NewProcessor(pool, events)
	processor.Logger = nil

	deliver(processor, received)
	deliver(processor, strings.Replace(received, "pay_1", "pay_of_the_sandbox", 1))

	conflicts, _, err := operator.New(processor, "").Conflicts(ctx, 100)
	for _, c := range conflicts {
		fmt.Println(c.Type, c.Key, c.State)
	}
	fmt.Println(err)
	// Output:
	// 200 {"received":true}
	// 200 {"received":true,"duplicate":true}
	// PAYMENT_RECEIVED pay_1 done
	// <nil>
}

// What cannot be processed any more, and was settled by hand, is discarded.
func ExampleProcessor_discard() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	processor := idem.NewProcessor(pool, asaas.NewDispatcher(token)) // without a handler
	processor.Logger = nil
	deliver(processor, received)

	n, err := processor.Discard(ctx, idem.Filter{Types: []string{"PAYMENT_RECEIVED"}}, "paid by hand, see ticket 7")
	fmt.Println(n, err)
	// Output:
	// 200 {"received":true}
	// 1 <nil>
}

// A new handler is tried on stored events before it is deployed.
func ExampleProcessor_dryReplay() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	before := idem.NewProcessor(pool, asaas.NewDispatcher(token)) // without a handler
	before.Logger = nil
	deliver(before, received)

	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(payOrder)
	replayed, err := idem.NewProcessor(pool, events).DryReplay(ctx, idem.Filter{})
	fmt.Printf("%+v %v\n", replayed, err)
	// Output:
	// 200 {"received":true}
	// {Done:1 Failed:0 Unhandled:0 Overtaken:[]} <nil>
}

// A handler fails, and health is red long before Asaas stops its queue.
func Example_health() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()

	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return errors.New("a mistake") })
	processor := idem.NewProcessor(pool, events)
	processor.Logger = nil
	monitor := health.New(processor) // http.Handle("GET /health/webhooks", monitor)
	monitor.Logger = nil

	for range 5 {
		deliver(processor, received)
	}
	report := monitor.Report()
	fmt.Println("healthy:", report.Healthy)
	for _, c := range report.Checks {
		fmt.Println(c.Name, c.Healthy)
	}
	// Output:
	// 503 {"received":false}
	// 503 {"received":false}
	// 503 {"received":false}
	// 503 {"received":false}
	// 503 {"received":false}
	// healthy: false
	// postgres true
	// deliveries false
	// refused true
	// retrying true
	// workers true
	// held true
	// parked true
}
