package idem_test

import (
	"context"
	"fmt"
	"iter"
	"log"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// An application has a receiver of its own, as Asaas's guide has it: it stores events, answers, and
// a job works on those that are PENDING. The new one takes over what is DONE, and does the rest.
func Example_import() {
	ctx := context.Background()
	pool, end := database(ctx)
	defer end()
	if _, err := pool.Exec(ctx, `
		create table asaas_events (id bigserial primary key, asaas_event_id text unique, payload json, status text, created_at timestamptz default now())`); err != nil {
		log.Fatal(err)
	}
	waits := strings.Replace(received, "ac9ba210e51b0f&1", "ac9ba210e51b0f&2", 1)
	if _, err := pool.Exec(ctx, `
		insert into asaas_events (asaas_event_id, payload, status) values
			('evt_d26e303b238e509335ac9ba210e51b0f&1', $1, 'DONE'), ('evt_d26e303b238e509335ac9ba210e51b0f&2', $2, 'PENDING')`,
		received, waits); err != nil {
		log.Fatal(err)
	}

	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(func(_ context.Context, _ pgx.Tx, e *asaas.PaymentEvent) error {
		fmt.Println("handled", e.ID)
		return nil
	})
	inbox := idem.NewInbox(pool, events)
	inbox.Logger = nil

	old := oldEvents(ctx, pool)
	sum, err := operator.New(inbox, "ana").Import(ctx, "", old, "from the table asaas_events")
	fmt.Println(sum, err)
	if err := acceptPending(ctx, pool, inbox); err != nil { // once the old job is stopped for good
		log.Fatal(err)
	}
	if err := inbox.Drain(ctx); err != nil {
		log.Fatal(err)
	}
	deliver(inbox, received)
	deliver(inbox, waits)
	// Output:
	// 1 stored, 0 that waited are done, 0 known; left alone: 0 being processed, 0 discarded, 1 not done by the other program <nil>
	// handled evt_d26e303b238e509335ac9ba210e51b0f&2
	// 200 {"received":true,"duplicate":true}
	// 200 {"received":true,"duplicate":true}
}

// oldEvents are the events of the last 45 days in the table of the old receiver.
func oldEvents(
	ctx context.Context, pool *pgxpool.Pool,
) iter.Seq2[operator.OldEvent, error] {
	return func(yield func(operator.OldEvent, error) bool) {
		rows, _ := pool.Query(ctx, `
			select payload::text, status = 'DONE', created_at
			from asaas_events where created_at > now() - interval '45 days'`)
		defer rows.Close()
		for rows.Next() {
			var payload string
			var old operator.OldEvent
			err := rows.Scan(&payload, &old.Done, &old.ReceivedAt)
			e := asaas.Identify([]byte(payload))
			old.ID, old.Type, old.Key = e.ID, e.Type, e.Key
			if !yield(old, err) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(operator.OldEvent{}, err)
		}
	}
}

// acceptPending gives the new receiver what the old one has answered 200, and not done: nobody
// delivers it again. What is stored already is a duplicate.
func acceptPending(ctx context.Context, pool *pgxpool.Pool, inbox *idem.Inbox) error {
	rows, _ := pool.Query(ctx, `select payload::text from asaas_events where status = 'PENDING' order by id`)
	payloads, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, payload := range payloads {
		if _, err := inbox.Accept(ctx, asaas.Identify([]byte(payload))); err != nil {
			return err
		}
	}
	return nil
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
	inbox := idem.NewInbox(pool, events)
	inbox.Logger = nil
	for _, id := range []string{"evt_1", "evt_2", "evt_2"} {
		deliver(inbox, strings.Replace(received, "evt_d26e303b238e509335ac9ba210e51b0f&1", id, 1))
	}
	drain(ctx, inbox)
	var ledger string
	if err := pool.QueryRow(ctx, `select string_agg(event_id, ' ' order by event_id) from ledger`).Scan(&ledger); err != nil {
		log.Fatal(err)
	}
	fmt.Println(ledger)
	// Output:
	// 200 {"received":true}
	// 200 {"received":true}
	// 200 {"received":true,"duplicate":true}
	// worker: PAYMENT_RECEIVED done
	// worker: PAYMENT_RECEIVED done
	// evt_1 evt_2
}
