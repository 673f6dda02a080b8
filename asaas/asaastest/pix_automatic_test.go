package asaastest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

func TestAChargeByPixAutomaticIsBookedOnceInAnyOrderOfItsTwoFamilies(t *testing.T) {
	t.Parallel()
	ctx, pool := t.Context(), idemtest.Pool(t)
	_, err := pool.Exec(ctx, `create table authorizations (id text primary key, code text);
		create table booked (paid numeric)`)
	if err = errors.Join(err, charges.Migrate(ctx, pool), charges.Filled(ctx, pool, "", time.Time{})); err != nil {
		t.Fatal(err)
	}
	events := asaas.NewDispatcher("token")
	events.OnPayment(charges.Handler(func(ctx context.Context, tx pgx.Tx, c charges.Change) error {
		_, err := tx.Exec(ctx, `insert into booked values ($1)`, c.Paid())
		return err
	}))
	events.OnPixAutomaticAuthorization(func(ctx context.Context, tx pgx.Tx, e *asaas.PixAutomaticAuthorizationEvent) error {
		_, err := tx.Exec(ctx, `insert into authorizations values ($1, $2) on conflict do nothing`,
			e.Authorization.ID, e.Authorization.ImmediateQrCode.Or(asaas.PixAutomaticQrCode{}).ConciliationIdentifier.Or(""))
		return err
	})
	const says = `select concat_ws(' ', c.status, c.paid::numeric(12,2), c.external_reference, (select sum(paid)::numeric(12,2) from booked), a.id is not null)
		from asaas_charges c left join authorizations a on a.code = c.pix_qr_code_id and c.subscription <> ''`
	life := asaastest.PixAutomatic("order-1")
	for _, order := range orders([]int{0, 1, 2, 3}) {
		tx, err := pool.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range slices.Concat(order, order) {
			if err := idem.Dispatch(ctx, tx, events, asaas.Identify(life.Bodies[n])); err != nil {
				t.Fatalf("in the order %v: %v", order, err)
			}
		}
		var got string
		if err := tx.QueryRow(ctx, says).Scan(&got); err != nil || got != "RECEIVED 100.00 order-1 100.00 t" {
			t.Errorf("in the order %v: the tables say %q, %v", order, got, err)
		}
		_ = tx.Rollback(ctx)
	}
}

// orders returns all orders of the numbers.
func orders(of []int) (all [][]int) {
	if len(of) == 0 {
		return [][]int{nil}
	}
	for i, first := range of {
		for _, rest := range orders(slices.Delete(slices.Clone(of), i, i+1)) {
			all = append(all, append([]int{first}, rest...))
		}
	}
	return all
}
