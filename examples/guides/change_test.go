package guides

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

func TestBothVersionsOfAnApplicationSideBySideDoEachEventOnce(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `create table processed (id text primary key); create table paid (event text)`); err != nil {
		t.Fatal(err)
	}
	pay := func(ctx context.Context, tx pgx.Tx, id string) error {
		_, err := tx.Exec(ctx, `insert into paid values ($1)`, id)
		return err
	}
	before := func(id string) error { // as the version before does it
		return pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			added, err := tx.Exec(t.Context(), `insert into processed (id) values ($1) on conflict do nothing`, id)
			if err != nil || added.RowsAffected() == 0 {
				return err
			}
			return pay(t.Context(), tx, id)
		})
	}
	events := asaas.NewDispatcher()
	events.OnPaymentReceived(once(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error { return pay(ctx, tx, e.ID) }))
	inbox := idem.NewInbox(pool, events)
	inbox.Logger = nil
	now := func(id string) error {
		_, err := inbox.Accept(t.Context(), (&delivery{id: id}).event())
		return errors.Join(err, inbox.Drain(t.Context()))
	}
	do := func(versions ...func(string) error) func(id string) {
		return func(id string) {
			for _, version := range versions {
				if err := version(id); err != nil {
					t.Errorf("%s: %v", id, err)
				}
			}
		}
	}
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() { do(before, now)(fmt.Sprintf("evt_before_%d", n)) })
		all.Go(func() { do(now, before)(fmt.Sprintf("evt_after_%d", n)) })
		for range 2 {
			all.Go(func() { do(before)(fmt.Sprintf("evt_both_%d", n)) })
			all.Go(func() { do(now)(fmt.Sprintf("evt_both_%d", n)) })
		}
	}
	all.Wait()
	var effects, distinct int
	if err := pool.QueryRow(t.Context(), `select count(*), count(distinct event) from paid`).Scan(&effects, &distinct); err != nil || effects != 60 || distinct != 60 {
		t.Errorf("%d effects of %d events, %v; want 60 of 60", effects, distinct, err)
	}
}
