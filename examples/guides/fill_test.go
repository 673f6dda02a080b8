package guides

import (
	"testing"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

func TestFillMakesARowOfEachChargeAndCompletesTheTable(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	for _, migrate := range []error{idem.Migrate(t.Context(), pool), charges.Migrate(t.Context(), pool)} {
		if migrate != nil {
			t.Fatal(migrate)
		}
	}
	fake := asaastest.New()
	defer fake.Close()
	first := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	fake.Emit(first.Created(), first.Received())
	second := asaastest.NewCharge(asaas.BillingTypeBoleto, asaas.Cents(5000))
	fake.Emit(second.Created())
	if err := fill(t.Context(), fake.Client(), pool, first.Now.AddDate(0, 0, -1)); err != nil {
		t.Fatal(err)
	}
	var rows int
	var paid string
	var complete bool
	const query = `select count(*), sum(paid)::text, (select since < $1::date from asaas_charges_since where scope = '') from asaas_charges`
	if err := pool.QueryRow(t.Context(), query, first.Now).Scan(&rows, &paid, &complete); err != nil || rows != 2 || paid != "100.00" || !complete {
		t.Errorf("%d rows, %s paid, complete: %t, %v", rows, paid, complete, err)
	}
}
