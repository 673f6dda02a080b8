package asaas_test

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem/drift"
)

// What Asaas sends and this package does not know changes nothing for your
// handlers, and is told.
func ExampleDispatcher_Drift() {
	events := asaas.NewDispatcher("the webhook's token")
	events.Watch.Observe = func(f drift.Finding) { fmt.Println("new:", f.EventType, f.Path, f.Kind) }
	events.OnPaymentReceived(func(_ context.Context, _ pgx.Tx, e *asaas.PaymentEvent) error {
		fmt.Println("handled:", e.Payment.BillingType)
		return nil
	})
	body := asaastest.Event("PAYMENT_RECEIVED",
		asaastest.Set("payment.billingType", "DREX"),
		asaastest.Add("payment.taxes", []string{"ISS"}))
	for range 2 {
		if err := events.Dispatch(context.Background(), nil, asaas.Identify(body)); err != nil {
			fmt.Println(err)
		}
	}
	for _, f := range events.Drift() {
		fmt.Println(f.Count, f.EventType, f.Path, f.Kind)
	}
	// Output:
	// new: PAYMENT_RECEIVED payment.billingType unknown_value
	// new: PAYMENT_RECEIVED payment.taxes unknown_field
	// handled: DREX
	// handled: DREX
	// 2 PAYMENT_RECEIVED payment.billingType unknown_value
	// 2 PAYMENT_RECEIVED payment.taxes unknown_field
}

// An amount of null is not 0.00: the event is kept as failed, and its handler
// does not run.
func ExampleDispatcher_Dispatch_incomplete() {
	events := asaas.NewDispatcher("the webhook's token")
	events.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error {
		fmt.Println("handled")
		return nil
	})
	body := asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("payment.value", nil))
	fmt.Println(events.Dispatch(context.Background(), nil, asaas.Identify(body)))
	// Output:
	// idem: a PAYMENT_RECEIVED is not complete: drift: payment.value is null, and the event is nothing without it: look for a newer version of this module
}
