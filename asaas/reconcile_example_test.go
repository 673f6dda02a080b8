package asaas_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// A webhook was disabled for a while, and a payment was made. The application's
// repair books it under the charge and its state, as the handler of
// PAYMENT_RECEIVED does with the same statement: an event that comes late finds
// that it is booked.
func ExampleReconcile() {
	ctx := context.Background()
	database, err := idemtest.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer database.Close()
	pool, err := pgxpool.New(ctx, database.URL())
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	if err := idem.Migrate(ctx, pool); err != nil {
		log.Fatal(err)
	}
	if _, err := pool.Exec(ctx, `create table bookings (charge text, state text, primary key (charge, state))`); err != nil {
		log.Fatal(err)
	}
	fake := asaastest.New()
	defer fake.Close()
	processor := idem.NewProcessor(pool, asaas.NewDispatcher(webhookToken))
	webhook := fake.AddWebhook(asaastest.Webhook{Handler: processor, Token: webhookToken, Disabled: true, Events: []asaas.EventType{asaas.EventPaymentReceived}})
	charge := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(12990))
	charge.Payment.ID = "pay_1_a1B2c3D4e5F6g7"
	fake.Emit(charge.Created(), charge.Received())

	book := func(charge, state string) error {
		_, err := pool.Exec(ctx, `insert into bookings values ($1, $2) on conflict do nothing`, charge, state)
		return err
	}
	for progress, err := range asaas.Reconcile(ctx, fake.Client(), asaas.Reconciliation{
		WebhookID: webhook,
		Events:    processor,
		Since:     time.Date(2026, 8, 8, 0, 0, 0, 0, asaas.Brasilia()), // when the webhook was disabled
		Until:     time.Date(2026, 8, 20, 0, 0, 0, 0, asaas.Brasilia()),
	}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if d := progress.Difference; d != nil {
			fmt.Println(d)
			if err := book(d.Charge, d.State); err != nil {
				fmt.Println(err)
			}
		}
	}
	// Output:
	// pay_1_a1B2c3D4e5F6g7 is RECEIVED; missing: PAYMENT_RECEIVED since 2026-08-08
}
