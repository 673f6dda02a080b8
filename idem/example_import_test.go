package idem_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
)

// An application has a receiver of its own, which keeps the ids of the events that it has
// processed. The new one takes them over.
func Example_import() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()
	if _, err := pool.Exec(ctx, `
		create table processed_webhooks (event_id text primary key, processed_at timestamptz not null default now());
		insert into processed_webhooks (event_id) values ('evt_d26e303b238e509335ac9ba210e51b0f&1')`); err != nil {
		log.Fatal(err)
	}

	rows, err := pool.Query(ctx, `select event_id, processed_at from processed_webhooks where processed_at > now() - interval '45 days'`)
	if err != nil {
		log.Fatal(err)
	}
	n, err := operator.Import(ctx, pool, "asaas", "", func(yield func(operator.Imported, error) bool) {
		defer rows.Close()
		for rows.Next() {
			var e operator.Imported
			err := rows.Scan(&e.ID, &e.ReceivedAt)
			if !yield(e, err) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(operator.Imported{}, err)
		}
	})
	fmt.Println(n, err)

	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { panic("it was processed before") })
	processor := idem.NewProcessor(pool, events)
	processor.Logger = nil
	deliver(processor, received)
	// Output:
	// 1 <nil>
	// 200 {"received":true,"duplicate":true}
}

// Both versions receive for a while, a part of the deliveries each. Each event is
// processed by one of them, because both insert its id into the table of the old one, in
// the transaction of its work.
func Example_importSideBySide() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()
	if _, err := pool.Exec(ctx, `
		create table processed_webhooks (event_id text primary key, processed_at timestamptz not null default now());
		create table ledger (event_id text not null)`); err != nil {
		log.Fatal(err)
	}
	// The old version does both in one transaction. If it does not, mend that first.
	if _, err := pool.Exec(ctx, `
		begin;
		insert into processed_webhooks (event_id) values ('evt_1');
		insert into ledger values ('evt_1');
		commit`); err != nil {
		log.Fatal(err)
	}

	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		tag, err := tx.Exec(ctx, `insert into processed_webhooks (event_id) values ($1) on conflict do nothing`, e.ID)
		if err != nil || tag.RowsAffected() == 0 { // the old version has processed it, or does: the insert has waited for it
			return err
		}
		_, err = tx.Exec(ctx, `insert into ledger values ($1)`, e.ID)
		return err
	})
	processor := idem.NewProcessor(pool, events)
	processor.Logger = nil
	for _, id := range []string{"evt_1", "evt_2", "evt_2"} {
		deliver(processor, strings.Replace(received, "evt_d26e303b238e509335ac9ba210e51b0f&1", id, 1))
	}
	var ledger string
	if err := pool.QueryRow(ctx, `select string_agg(event_id, ' ' order by event_id) from ledger`).Scan(&ledger); err != nil {
		log.Fatal(err)
	}
	fmt.Println(ledger)
	// Output:
	// 200 {"received":true}
	// 200 {"received":true}
	// 200 {"received":true,"duplicate":true}
	// evt_1 evt_2
}
