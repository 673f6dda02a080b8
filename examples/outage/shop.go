package main

import (
	"context"
	_ "embed"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
)

// Everybody can read it. An application takes its own from the environment:
// os.Getenv("ASAAS_WEBHOOK_TOKEN").
const token = "outage-webhook-token"

// neverPark makes idem insist on an event for longer than Asaas does, which
// stops the queue after 15 failures. An entry's place in the shop's ledger is
// the payment's place in time, so no event may overtake one that fails: rather
// let the queue stop.
//
// By default an event is parked after 10 failures: acknowledged, and kept for
// [idem.Common.Replay]. Then a handler that always fails slows the queue
// down, and never stops it.
const neverPark = 1000

// shop is the application. It is deployed behind one address.
type shop struct {
	pool      *pgxpool.Pool
	parkAfter int
	version   atomic.Pointer[idem.Processor]
}

var (
	//go:embed shop.sql
	tables string
	//go:embed migration.sql
	migration string
)

// newShop makes the tables; deploy makes it work.
func newShop(ctx context.Context, pool *pgxpool.Pool, parkAfter int) (*shop, error) {
	if err := idem.Migrate(ctx, pool); err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, tables); err != nil {
		return nil, fmt.Errorf("making the shop's tables: %w", err)
	}
	return &shop{pool: pool, parkAfter: parkAfter}, nil
}

// deploy puts a version of the handler in place of the one that runs.
func (s *shop) deploy(received idem.Handler[*asaas.PaymentEvent]) {
	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(received)
	p := idem.NewProcessor(s.pool, events)
	p.ParkAfter = s.parkAfter
	p.Logger = slog.New(slog.DiscardHandler) // the timeline says it
	s.version.Store(p)
}

// migrate changes the tables for version 2 before it is deployed.
func (s *shop) migrate(ctx context.Context) error {
	if _, err := s.pool.Exec(ctx, migration); err != nil {
		return fmt.Errorf("migrating the shop's tables: %w", err)
	}
	return nil
}

// ServeHTTP implements [http.Handler].
func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.version.Load().ServeHTTP(w, r) }

const nextNumber = `with next as (update ledger set entries = entries + 1 returning entries) `

func version1(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	_, err := tx.Exec(ctx, nextNumber+`insert into entries (number, payment, amount, day) select entries, $1, $2, $3 from next`,
		e.Payment.ID, e.Payment.Value, e.Payment.PaymentDate)
	return err
}

// version2 fails for every event until the shop is migrated.
func version2(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	_, err := tx.Exec(ctx, nextNumber+`insert into entries (number, payment, amount, day, fee) select entries, $1, $2, $3, $4 from next`,
		e.Payment.ID, e.Payment.Value, e.Payment.PaymentDate, e.Payment.Value.Sub(e.Payment.NetValue.Or(e.Payment.Value)))
	return err
}
