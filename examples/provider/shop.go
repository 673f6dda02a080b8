// Package provider is a shop that takes the webhooks of Woovi, a provider that
// paghooks does not know: package woovi is made of woovi.yaml, and by hand are the
// handlers below and nothing else. docs/provider.md tells how.
package provider

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/examples/provider/woovi"
)

//go:generate go run -C ../../gen . -spec ../examples/provider/woovi.yaml -package ../examples/provider/woovi

// Events takes Woovi's events to their handlers. The key is Woovi's public key.
func Events(key string) *woovi.Dispatcher {
	events := woovi.NewDispatcher(key)
	events.OnOpenpixChargeCompleted(book)
	return events
}

// book writes one row per charge. A payment of an order that is not stored yet is
// kept all the same.
func book(ctx context.Context, tx pgx.Tx, e *woovi.ChargeEvent) error {
	_, err := tx.Exec(ctx, `insert into payments (charge_id, cents) values ($1, $2) on conflict do nothing`,
		e.Charge.CorrelationID, e.Charge.Value)
	return err
}
