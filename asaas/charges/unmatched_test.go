package charges_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/value"
)

func TestAPaidChargeThatMatchesNothingIsListedAndTurnsHealthRed(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	if _, err := pool.Exec(t.Context(), `create table orders (id text primary key, checkout text); insert into orders values ('order-1', null), ('order-2', 'session-2')`); err != nil {
		t.Fatal(err)
	}
	newUnmatched := func() *charges.Unmatched {
		return &charges.Unmatched{DB: pool, Known: `exists (select from orders o where o.id = c.external_reference or o.checkout = c.checkout_session)`}
	}
	limits := check.Limits{Timeout: time.Minute}
	if got := newUnmatched().Examine(t.Context(), limits)[0]; !got.Healthy {
		t.Errorf("without a charge health says %q", got.Says)
	}
	var want []string
	for _, c := range []struct {
		why                 string
		reference, checkout string
		paid, unmatched     bool
	}{
		{"its order is there", "order-1", "", true, false},
		{"its Checkout is there", "", "session-2", true, false},
		{"nobody asked for it", "", "", true, true},
		{"its order is not there", "order-9", "", true, true},
		{"nothing is paid", "order-9", "", false, false},
	} {
		charge := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
		p := &charge.Payment
		p.ExternalReference, p.CheckoutSession = value.Of(c.reference), value.Of(c.checkout)
		know(t, pool, charge.Created())
		if c.paid {
			know(t, pool, charge.Received())
		}
		if c.unmatched {
			want = append(want, charge.Payment.ID)
		}
	}
	list, err := newUnmatched().List(t.Context(), 10)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, c := range list {
		found[c.ID] = c.Paid.String()
	}
	if diff := cmp.Diff(map[string]string{want[0]: "100.00", want[1]: "100.00"}, found); diff != "" {
		t.Errorf("unmatched (-want +got):\n%s", diff)
	}
	u := newUnmatched()
	if got := u.Examine(t.Context(), limits)[0]; got.Healthy || !strings.HasPrefix(got.Says, "2 paid charges match nothing") {
		t.Errorf("health says %q, want that 2 match nothing", got.Says)
	}
	if _, err := pool.Exec(t.Context(), `drop table orders`); err != nil {
		t.Fatal(err)
	}
	if got := u.Examine(t.Context(), limits)[0]; got.Healthy || !strings.HasPrefix(got.Says, "2 ") {
		t.Errorf("a moment later it asks again: %q", got.Says)
	}
	if got := newUnmatched().Examine(t.Context(), limits)[0]; got.Healthy || !strings.HasPrefix(got.Says, "Postgres refuses") || got.Cause == nil {
		t.Errorf("where Postgres refuses the query health says %q, healthy %v: money that nobody asked for would never be seen", got.Says, got.Healthy)
	}
	if got := newUnmatched().Examine(t.Context(), check.Limits{Timeout: time.Nanosecond})[0]; !got.Healthy || !strings.HasPrefix(got.Says, "not known") || got.Cause == nil {
		t.Errorf("where the query takes too long health says %q, want that it is not known", got.Says)
	}
}
