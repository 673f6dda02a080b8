package charges_test

import (
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestAnOrderThatIsPaidTwiceTurnsHealthRed(t *testing.T) {
	t.Parallel()
	pool, events := newSetOrders(t), newSetting(paid)
	limits := check.Limits{Timeout: time.Minute}
	look := func() check.Result {
		return (&charges.Overpaid{DB: pool, Orders: `select id, total from orders where settled > total`}).Examine(t.Context(), limits)[0]
	}
	for _, order := range []string{"order-2", "order-3", "order-3"} {
		if got := look(); !got.Healthy || *got.Count != 0 {
			t.Errorf("before %s is paid health says %q", order, got.Says)
		}
		charge := newOf(order, asaas.BillingTypePix)
		charge.Created()
		if err := handle(t, pool, events, "", charge.Received()); err != nil {
			t.Fatal(err)
		}
	}
	if got := look(); got.Healthy || got.Name != "overpaid" || !strings.HasPrefix(got.Says, "1 orders got more than their total, one of them is order-3") {
		t.Errorf("with order-3 paid twice health says %q", got.Says)
	}
	testkit.Exec(t, pool, `drop table shipments; drop table orders`)
	if got := look(); got.Healthy || !strings.HasPrefix(got.Says, "Postgres refuses") {
		t.Errorf("where Postgres refuses the query health says %q", got.Says)
	}
	if got := (&charges.Overpaid{DB: pool}).Examine(t.Context(), limits)[0]; got.Healthy || !strings.HasPrefix(got.Says, "Overpaid has no Orders") {
		t.Errorf("without a query health says %q", got.Says)
	}
}
