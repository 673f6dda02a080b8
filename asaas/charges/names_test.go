package charges_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem/value"
)

const namedOrders = `create table orders (id text primary key, checkout text, paid numeric(12, 2) not null default 0);
	insert into orders values ('order-1', 'checkout-1'), ('order-2', null)`

// named books as the program of the README does.
func named(ctx context.Context, tx pgx.Tx, c charges.Change) error {
	if c.Paid().IsZero() {
		return nil
	}
	updated, err := tx.Exec(ctx, `update orders set paid = paid + $1 where id = $2 or checkout = $3`, c.Paid(), c.After.ExternalReference, c.After.CheckoutSession)
	if err == nil && updated.RowsAffected() == 0 && c.After.ExternalReference.Or("") != "" {
		err = fmt.Errorf("the order of charge %s is not stored", c.After.ID)
	}
	return err
}

func newOrders(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := newTables(t)
	if _, err := pool.Exec(t.Context(), namedOrders); err != nil {
		t.Fatal(err)
	}
	return pool
}

const bothOrders = `select string_agg(id || ' ' || paid, ', ' order by id) from orders`

// Asaas has sent a Checkout's session in answers of its API and not in the events of the charge: once a reading brings
// it, the order is paid, and later events take nothing from it that they do not say.
func TestAPaidCheckoutThatOnlyAReadingNamesIsBooked(t *testing.T) {
	t.Parallel()
	pool, events := newOrders(t), newEvents(named)
	charge := asaastest.NewCharge(asaas.BillingTypeCreditCard, asaas.Cents(10000))
	deliver := func(body []byte, want string) {
		t.Helper()
		if err := handle(t, pool, events, "", body); err != nil {
			t.Fatal(err)
		}
		if got := query(t, pool, bothOrders); got != want {
			t.Errorf("the orders are %s, want %s", got, want)
		}
	}
	deliver(charge.Created(), "order-1 0.00, order-2 0.00")
	deliver(charge.Confirmed(), "order-1 0.00, order-2 0.00")

	fake, client := newAccount(t)
	shown := *charge
	shown.Now = shown.Now.Add(time.Minute)
	shown.Payment.CheckoutSession = value.Of("checkout-1")
	fake.Emit(shown.Received())
	know := charges.Settings{Since: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), Apply: named}
	if report := reconcile(t, client, pool, know); report.Changed != 1 {
		t.Errorf("the run reports %+v", report)
	}
	if got := query(t, pool, bothOrders); got != "order-1 100.00, order-2 0.00" {
		t.Errorf("after the reading the orders are %s", got)
	}

	charge.Now = time.Now().Add(time.Hour) // later than the reading
	deliver(charge.Received(), "order-1 100.00, order-2 0.00")
	deliver(charge.PartiallyRefunded(asaas.Cents(1000)), "order-1 90.00, order-2 0.00")
	deliver(charge.Refunded(), "order-1 0.00, order-2 0.00")
	if got := query(t, pool, `select checkout_session from asaas_charges`); got != "checkout-1" {
		t.Errorf("the row has the Checkout %s", got)
	}
}

// Each body in turn is the only one that has the Checkout's session.
func TestACheckoutIsPaidInAnyOrderWhicheverEventNamesIt(t *testing.T) {
	t.Parallel()
	pool, events := newOrders(t), newEvents(named)
	for naming := range 3 {
		charge := asaastest.NewCharge(asaas.BillingTypeCreditCard, asaas.Cents(10000))
		var bodies [][]byte
		for n, step := range []func() []byte{charge.Created, charge.Confirmed, charge.Received} {
			charge.Payment.CheckoutSession = value.Null[string]()
			if n == naming {
				charge.Payment.CheckoutSession = value.Of("checkout-1")
			}
			bodies = append(bodies, step())
		}
		for _, order := range permuted(nil, indexes(len(bodies))) {
			tx, err := pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range append(order, order...) {
				if err := dispatch(t.Context(), tx, events, "", bodies[n]); err != nil {
					t.Fatalf("named by %d, in the order %v: %v", naming, order, err)
				}
			}
			var got string
			if err := tx.QueryRow(t.Context(), bothOrders).Scan(&got); err != nil || got != "order-1 100.00, order-2 0.00" {
				t.Errorf("named by %d, in the order %v the orders are %s: %v", naming, order, got, err)
			}
			_ = tx.Rollback(t.Context())
		}
	}
}

// Cash is undone, the charge gets the reference of another order, and is paid for that: whatever comes in whichever
// order, and whichever event but the last never comes, no order keeps what is not its own.
func TestMoneyFollowsItsChargeToAnotherReference(t *testing.T) {
	t.Parallel()
	pool, events := newOrders(t), newEvents(named)
	charge := asaastest.NewCharge(asaas.BillingTypeBoleto, asaas.Cents(10000))
	charge.Payment.ExternalReference = value.Of("order-1")
	bodies := [][]byte{charge.Created(), charge.ReceivedInCash(), charge.CashUndone()}
	charge.Payment.ExternalReference = value.Of("order-2")
	bodies = append(bodies, charge.Overdue(), charge.Received())
	for lost := -1; lost < len(bodies)-1; lost++ {
		var came []int
		for n := range bodies {
			if n != lost {
				came = append(came, n)
			}
		}
		for _, order := range permuted(nil, came) {
			tx, err := pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range append(order, order...) {
				if err := dispatch(t.Context(), tx, events, "", bodies[n]); err != nil {
					t.Fatalf("in the order %v: %v", order, err)
				}
			}
			var got string
			if err := tx.QueryRow(t.Context(), bothOrders).Scan(&got); err != nil || got != "order-1 0.00, order-2 100.00" {
				t.Errorf("in the order %v the orders are %s: %v", order, got, err)
			}
			_ = tx.Rollback(t.Context())
		}
	}
}

// Another name beside a reference moves nothing: the application that sent the reference finds the charge by it.
func TestMoneyMovesOnlyWhereTheNameItWasBookedByChanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after func(p *asaas.Payment)
		want          []string
	}{
		"another reference": {
			func(p *asaas.Payment) { p.ExternalReference = value.Of("a") }, func(p *asaas.Payment) { p.ExternalReference = value.Of("b") },
			[]string{"a 100.00", "a -100.00", "b 100.00"},
		},
		"the first reference":          {func(*asaas.Payment) {}, func(p *asaas.Payment) { p.ExternalReference = value.Of("b") }, []string{" 100.00", " -100.00", "b 100.00"}},
		"a reference that is left out": {func(p *asaas.Payment) { p.ExternalReference = value.Of("a") }, func(p *asaas.Payment) { p.ExternalReference = value.Null[string]() }, []string{"a 100.00", "a 0.00"}},
		"a code beside a reference": {
			func(p *asaas.Payment) { p.ExternalReference = value.Of("a") }, func(p *asaas.Payment) { p.PixQrCodeID = value.Of("code") },
			[]string{"a 100.00", "a 0.00"},
		},
		"a link and no reference": {func(*asaas.Payment) {}, func(p *asaas.Payment) { p.PaymentLink = value.Of("link") }, []string{" 100.00", " -100.00", " 100.00"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			pool := newTables(t)
			events := newEvents(func(_ context.Context, _ pgx.Tx, c charges.Change) error {
				got = append(got, c.After.ExternalReference.Or("")+" "+c.Paid().String())
				return nil
			})
			charge := asaastest.NewCharge(asaas.BillingTypeCreditCard, asaas.Cents(10000))
			c.before(&charge.Payment)
			charge.Created()
			confirmed := charge.Confirmed()
			c.after(&charge.Payment)
			for _, body := range [][]byte{confirmed, charge.Received()} {
				if err := handle(t, pool, events, "", body); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("what the application is told (-want +got):\n%s", diff)
			}
		})
	}
}

// What is asked back is not paid any more, and has not gone yet.
func TestMoneyThatIsAskedBackFollowsItsChargeToAnotherReference(t *testing.T) {
	t.Parallel()
	var got []string
	pool := newTables(t)
	events := newEvents(func(_ context.Context, _ pgx.Tx, c charges.Change) error {
		got = append(got, c.After.ExternalReference.Or("")+" "+c.Received().String())
		return nil
	})
	charge := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	charge.Payment.ExternalReference = value.Of("a")
	bodies := [][]byte{charge.Created(), charge.Received(), charge.RefundAsked(asaas.Cents(10000))}
	charge.Payment.ExternalReference = value.Of("b")
	for _, body := range append(bodies, charge.RefundDone()) {
		if err := handle(t, pool, events, "", body); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"a 0.00", "a 100.00", "a 0.00", "a -100.00", "b 0.00"}, got); diff != "" {
		t.Errorf("what has come (-want +got):\n%s", diff)
	}
}
