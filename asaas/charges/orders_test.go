package charges_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/value"
	"github.com/paghooks/paghooks/internal/testkit"
)

const setOrders = `create table orders (id text primary key, checkout text unique, total numeric, paid numeric(12, 2) not null default 0, settled numeric(12, 2) not null default 0);
	create table shipments (order_id text primary key);
	insert into orders values ('order-1', 'checkout-1', 1200), ('order-2', 'checkout-2', 100), ('order-3', null, 100)`

// paid sets the order to the sum of its charges, whatever happened to them, and ships it
// once.
func paid(ctx context.Context, tx pgx.Tx, o charges.Order) (orders int64, err error) {
	err = tx.QueryRow(ctx, `
		with o as (
			update orders set paid = $1, settled = $2 where id = $3 or checkout = $4
			returning id, settled >= total as complete),
		shipped as (
			insert into shipments (order_id) select id from o where complete
			on conflict do nothing)
		select count(*) from o`,
		o.Paid, o.Settled, o.Reference, o.Checkout).Scan(&orders)
	return orders, err
}

type setter = func(context.Context, pgx.Tx, charges.Order) (int64, error)

func newSetting(set setter) *asaas.Dispatcher {
	events := asaas.NewDispatcher("token")
	events.OnPayment(charges.Orders(set))
	return events
}

func newSetOrders(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := newTables(t)
	testkit.Exec(t, pool, setOrders)
	return pool
}

const allOrders = `select string_agg(concat_ws(' ', id, paid, settled), ', ' order by id) from orders where paid <> 0 or settled <> 0`

// Lives end with these amounts settled; the others with what is paid.
var settledLives = map[string]string{"a boleto, overdue, with interest": "100.00"}

func TestAnOrderIsSetToItsTrueSumInAnyOrderOfEvents(t *testing.T) {
	t.Parallel()
	pool, events := newSetOrders(t), newSetting(paid)
	inEveryOrder(t, pool, func(tx pgx.Tx, life asaastest.Life, came [][]byte) error {
		for _, body := range came {
			if err := dispatch(t.Context(), tx, events, "", body); err != nil {
				return err
			}
		}
		var got, want string
		if err := tx.QueryRow(t.Context(), `select concat_ws(' ', paid, settled) from orders where id = 'order-1'`).Scan(&got); err != nil {
			return err
		}
		if want = settledLives[life.Name]; want == "" {
			want = life.Paid.String()
		}
		if want = life.Paid.String() + " " + want; got != want {
			return fmt.Errorf("the order is set to %s, want %s", got, want)
		}
		return nil
	})
}

// Charges of several orders live, and change their names, in any order of their events: at each moment each order
// is what its charges add up to, and in the end what the newest event of each says.
func TestEveryOrderIsTheSumOfItsCharges(t *testing.T) {
	t.Parallel()
	pool, events := newSetOrders(t), newSetting(paid)
	const sums = `select coalesce(string_agg(o.id, ', '), '') from orders o where (paid, settled) <> (
		select coalesce(sum(paid), 0), coalesce(sum(settled), 0) from asaas_charges c where coalesce(c.external_reference, '') = o.id)`
	testkit.Random(t, 60, func(r *rand.Rand) {
		var came [][]byte
		want := make(map[string]asaas.Money)
		for range 1 + r.IntN(4) {
			reference := "order-1"
			var bodies [][]byte
			for _, body := range randomLife(r) {
				if r.IntN(8) == 0 {
					reference = fmt.Sprintf("order-%d", 1+r.IntN(3))
				}
				bodies = append(bodies, with(t, body, "externalReference", reference))
			}
			var last asaas.PaymentEvent
			if err := json.Unmarshal(bodies[len(bodies)-1], &last); err != nil {
				t.Fatal(err)
			}
			c, err := charges.ChargeOf(&last.Payment)
			if err != nil {
				t.Fatal(err)
			}
			want[reference] = want[reference].Add(c.Paid)
			came = append(came, bodies...)
			came = append(came, bodies[r.IntN(len(bodies))]) // again
		}
		r.Shuffle(len(came), func(i, j int) { came[i], came[j] = came[j], came[i] })
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(t.Context()) }()
		for _, body := range came {
			if err := dispatch(t.Context(), tx, events, "", body); err != nil {
				t.Fatal(err)
			}
			var wrong string
			if err := tx.QueryRow(t.Context(), sums).Scan(&wrong); err != nil || wrong != "" {
				t.Fatalf("not the sum of their charges are %q, %v", wrong, err)
			}
		}
		for _, order := range []string{"order-1", "order-2", "order-3"} {
			var got asaas.Money
			if err := tx.QueryRow(t.Context(), `select paid from orders where id = $1`, order).Scan(&got); err != nil || got != want[order] {
				t.Fatalf("%s of %s are paid, want %s: %v", got, order, want[order], err)
			}
		}
	})
}

// with returns a body whose payment has another text.
func with(t *testing.T, body []byte, field, text string) []byte {
	t.Helper()
	var e map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&e); err != nil {
		t.Fatal(err)
	}
	e["payment"].(map[string]any)[field] = text
	body, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

var views atomic.Int64

// viewed is an event of a charge that changes nothing of it.
func viewed(c *asaastest.Charge) []byte {
	body, err := json.Marshal(asaas.PaymentEvent{
		Envelope: asaas.Envelope{ID: fmt.Sprintf("evt_viewed&%d", views.Add(1)), Event: asaas.EventPaymentCheckoutViewed, DateCreated: asaas.DateTime(c.Now.Format(time.DateTime))},
		Payment:  c.Payment,
	})
	if err != nil {
		panic(err)
	}
	return body
}

func TestAnOrderThatWasWrongIsRightWithTheNextEvent(t *testing.T) {
	t.Parallel()
	pool, events := newSetOrders(t), newSetting(paid)
	for name, next := range map[string]func(*asaastest.Charge) []byte{
		"the next event":                      (*asaastest.Charge).Received,
		"one that is about something else":    func(c *asaastest.Charge) []byte { c.Now = c.Now.Add(time.Hour); return viewed(c) },
		"one that comes late":                 func(c *asaastest.Charge) []byte { c.Now = c.Now.Add(-time.Hour); return viewed(c) },
		"the event of another of its charges": nil,
	} {
		testkit.Exec(t, pool, `truncate asaas_charges`)
		charge := newOf("order-1", asaas.BillingTypeCreditCard)
		for _, body := range [][]byte{charge.Created(), charge.Confirmed()} {
			if err := handle(t, pool, events, "", body); err != nil {
				t.Fatal(err)
			}
		}
		testkit.Exec(t, pool, `update orders set paid = 777, settled = 7 where id = 'order-1'`)
		if next == nil {
			charge, next = newOf("order-1", asaas.BillingTypeCreditCard), (*asaastest.Charge).Created
		}
		if err := handle(t, pool, events, "", next(charge)); err != nil {
			t.Fatal(err)
		}
		if got, want := query(t, pool, allOrders), "order-1 100.00 100.00"; got != want {
			t.Errorf("after %s the orders are %s, want %s", name, got, want)
		}
	}
}

func newOf(reference string, billing asaas.BillingType) *asaastest.Charge {
	c := asaastest.NewCharge(billing, asaas.Cents(10000))
	if reference != "" {
		c.Payment.ExternalReference = value.Of(reference)
	}
	return c
}

// A charge counts for one name. Where it gets another one, both are set, the old one first.
func TestAChargeThatMovesSetsTheOrderThatItLeavesAndItsNewOne(t *testing.T) {
	t.Parallel()
	reference := func(text string) func(*asaas.Payment) {
		return func(p *asaas.Payment) { p.ExternalReference = value.Of(text) }
	}
	checkout := func(p *asaas.Payment) { p.CheckoutSession = value.Of("checkout-2") }
	none := func(*asaas.Payment) {}
	for name, c := range map[string]struct {
		first, then func(*asaas.Payment)
		want        []string // the calls for the later event: a charge of 100.00 of order-1 is paid before
	}{
		"none, then a reference":               {none, reference("order-1"), []string{"reference order-1 200.00"}},
		"none, then a Checkout":                {none, checkout, []string{"checkout checkout-2 100.00"}},
		"a reference, then another":            {reference("order-1"), reference("order-2"), []string{"reference order-1 100.00", "reference order-2 100.00"}},
		"a Checkout, then a reference":         {checkout, reference("order-1"), []string{"checkout checkout-2 0.00", "reference order-1 200.00"}},
		"a reference, then another's Checkout": {reference("order-1"), checkout, []string{"reference order-1 200.00"}},
		"a reference that is left out":         {reference("order-1"), func(p *asaas.Payment) { p.ExternalReference = value.Null[string]() }, []string{"reference order-1 200.00"}},
		"a subscription":                       {none, func(p *asaas.Payment) { p.Subscription = value.Of("sub_1") }, []string{"subscription sub_1 100.00"}},
		"an installment of a Checkout":         {checkout, func(p *asaas.Payment) { p.Installment = value.Of("plan") }, []string{"checkout checkout-2 100.00"}},
		"an installment of a link":             {func(p *asaas.Payment) { p.PaymentLink = value.Of("link") }, func(p *asaas.Payment) { p.Installment = value.Of("plan") }, []string{"link link 0.00", "installment plan 100.00"}},
		"a code of a subscription":             {func(p *asaas.Payment) { p.Subscription = value.Of("sub_1") }, func(p *asaas.Payment) { p.PixQrCodeID = value.Of("code") }, []string{"subscription sub_1 100.00"}},
		"a code":                               {none, func(p *asaas.Payment) { p.PixQrCodeID = value.Of("code") }, []string{"qr code code 100.00"}},
		"no name at all":                       {none, none, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := newSetOrders(t)
			var calls []string
			events := newSetting(func(_ context.Context, _ pgx.Tx, o charges.Order) (int64, error) {
				if o.Reference.Or("")+o.Checkout.Or("") != map[charges.Kind]string{charges.Reference: o.Name, charges.Checkout: o.Name}[o.Kind] {
					t.Errorf("the order of the %s %q has the reference %v and the Checkout %v", o.Kind, o.Name, o.Reference, o.Checkout)
				}
				calls = append(calls, fmt.Sprintf("%s %s %s", o.Kind, o.Name, o.Paid))
				return 1, nil
			})
			other := newOf("order-1", asaas.BillingTypeCreditCard)
			other.Created()
			charge := newOf("", asaas.BillingTypeCreditCard)
			c.first(&charge.Payment)
			charge.Created()
			bodies := [][]byte{other.Confirmed(), charge.Confirmed()}
			c.then(&charge.Payment)
			for _, body := range append(bodies, charge.Received()) {
				calls = nil
				if err := handle(t, pool, events, "", body); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(c.want, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func TestExactlyOneOrderIsSetOrTheEventFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		charge func(*asaas.Payment)
		set    func() (int64, error)
		want   string
	}{
		"a reference sets one":              {func(p *asaas.Payment) { p.ExternalReference = value.Of("a") }, func() (int64, error) { return 1, nil }, "done"},
		"a reference without an order":      {func(p *asaas.Payment) { p.ExternalReference = value.Of("a") }, func() (int64, error) { return 0, nil }, "pending: store the order before"},
		"a Checkout without an order":       {func(p *asaas.Payment) { p.CheckoutSession = value.Of("a") }, func() (int64, error) { return 0, nil }, "pending: store the order before"},
		"a subscription without an order":   {func(p *asaas.Payment) { p.Subscription = value.Of("a") }, func() (int64, error) { return 0, nil }, "done"},
		"a reference with two":              {func(p *asaas.Payment) { p.ExternalReference = value.Of("a") }, func() (int64, error) { return 2, nil }, "parked: 2 orders were set"},
		"a link with two":                   {func(p *asaas.Payment) { p.PaymentLink = value.Of("a") }, func() (int64, error) { return 2, nil }, "parked: 2 orders were set"},
		"another system's":                  {func(p *asaas.Payment) { p.ExternalReference = value.Of("ERP-7") }, func() (int64, error) { return 0, charges.NotOurs }, "done"},
		"another system's, in more words":   {func(p *asaas.Payment) { p.ExternalReference = value.Of("ERP-7") }, func() (int64, error) { return 0, fmt.Errorf("ERP-7: %w", charges.NotOurs) }, "done"},
		"an error of the application's own": {func(p *asaas.Payment) { p.ExternalReference = value.Of("a") }, func() (int64, error) { return 1, errors.New("on fire") }, "pending: on fire"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := newTables(t)
			charge := newOf("", asaas.BillingTypePix)
			c.charge(&charge.Payment)
			inbox := idem.NewInbox(pool, newSetting(func(context.Context, pgx.Tx, charges.Order) (int64, error) { return c.set() }))
			inbox.Logger = nil
			if _, err := inbox.Accept(t.Context(), asaas.Identify(charge.Created())); err != nil {
				t.Fatal(err)
			}
			if err := inbox.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			state, says, _ := strings.Cut(c.want, ": ")
			got, why := query(t, pool, `select state from idem_events`), query(t, pool, `select coalesce(last_error, '') from idem_events`)
			if got != state || !strings.Contains(why, says) {
				t.Errorf("the event is %s, want %s: %s", got, c.want, why)
			}
			if rows := query(t, pool, `select count(*) from asaas_charges`); (rows == "1") != (state == "done") {
				t.Errorf("the event is %s, and the table has %s rows", state, rows)
			}
		})
	}
}

// A shop deletes an order, and its charges at Asaas. If one of them was paid, somebody has to look.
func TestTheOrderOfARemovedChargeNeedNotBeThereUnlessItIsPaid(t *testing.T) {
	t.Parallel()
	pool, events := newSetOrders(t), newSetting(paid)
	removed, other := newOf("order-1", asaas.BillingTypeBoleto), newOf("order-1", asaas.BillingTypePix)
	for _, body := range [][]byte{removed.Created(), other.Created()} {
		if err := handle(t, pool, events, "", body); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Exec(t, pool, `delete from orders`)
	if err := handle(t, pool, events, "", removed.Deleted()); err != nil {
		t.Errorf("a removed charge: %v", err)
	}
	if err := handle(t, pool, events, "", other.Received()); err == nil {
		t.Error("a paid charge has no order")
	}
}

// The reminder asks the row, as the pages show it.
func TestALateOverdueRemindsNobodyWhoHasPaid(t *testing.T) {
	t.Parallel()
	pool, events := newSetOrders(t), newSetting(paid)
	testkit.Exec(t, pool, `create table reminders (charge text primary key)`)
	events.OnPaymentOverdue(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		_, err := tx.Exec(ctx, `insert into reminders (charge) select id from asaas_charges where id = $1 and status = 'OVERDUE' on conflict do nothing`, e.Payment.ID)
		return err
	})
	late, open := newOf("order-1", asaas.BillingTypeBoleto), newOf("order-1", asaas.BillingTypeBoleto)
	created, overdue, received := late.Created(), late.Overdue(), late.Received()
	for _, body := range [][]byte{created, received, overdue, open.Created(), open.Overdue()} {
		if err := handle(t, pool, events, "", body); err != nil {
			t.Fatal(err)
		}
	}
	if got := query(t, pool, `select string_agg(charge, ' ') from reminders`); got != open.Payment.ID {
		t.Errorf("reminded are %s, want %s", got, open.Payment.ID)
	}
}

// An order that the charge has left may be there no more.
func TestTheOrderThatAChargeLeavesNeedNotBeThere(t *testing.T) {
	t.Parallel()
	pool, events := newSetOrders(t), newSetting(paid)
	charge := newOf("order-1", asaas.BillingTypePix)
	if err := handle(t, pool, events, "", charge.Created()); err != nil {
		t.Fatal(err)
	}
	testkit.Exec(t, pool, `delete from orders where id = 'order-1'`)
	charge.Payment.ExternalReference = value.Of("order-2")
	if err := handle(t, pool, events, "", charge.Received()); err != nil {
		t.Fatal(err)
	}
	if got := query(t, pool, allOrders); got != "order-2 100.00 100.00" {
		t.Errorf("the orders are %s", got)
	}
}

// Twelve boletos, of which eleven are paid late: with interest more than the price is paid, and one is open.
func TestAnOrderShipsOnceWhenItsPriceIsSettled(t *testing.T) {
	t.Parallel()
	pool, events := newSetOrders(t), newSetting(paid)
	boletos := asaastest.NewInstallments(asaas.BillingTypeBoleto, asaas.Cents(120000), 12)
	pay := func(c *asaastest.Charge, interest int64) {
		p := &c.Payment
		p.OriginalValue, p.Value = value.Of(p.Value), p.Value.Add(asaas.Cents(interest))
		for _, body := range [][]byte{c.Confirmed(), c.Received()} {
			if err := handle(t, pool, events, "", body); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range boletos {
		c.Payment.ExternalReference = value.Of("order-1")
		if err := handle(t, pool, events, "", c.Created()); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range boletos[:11] {
		pay(c, 910)
	}
	const order = `select concat_ws(' ', paid, settled, (select count(*) from shipments)) from orders where id = 'order-1'`
	if got, want := query(t, pool, order), "1200.10 1100.00 0"; got != want {
		t.Errorf("with a boleto open the order is %s, want %s", got, want)
	}
	pay(boletos[11], 0)
	if got, want := query(t, pool, order), "1300.10 1200.00 1"; got != want {
		t.Errorf("with all paid the order is %s, want %s", got, want)
	}
}

// Asaas does not document what value is after a discount. Whatever it is, the price is settled, in any order of the
// events.
func TestADiscountIsSettledWhateverAsaasSendsAfterIt(t *testing.T) {
	t.Parallel()
	pool, events := newSetOrders(t), newSetting(paid)
	fixed, percent := asaas.Discount{Value: value.Of(asaas.Cents(1000)), Type: value.Of(asaas.ValueTypeFixed)}, asaas.Discount{Value: value.Of(asaas.Cents(333)), Type: value.Of(asaas.ValueTypePercentage)}
	for name, c := range map[string]struct {
		discount asaas.Discount
		value    asaas.Money
		original value.Optional[asaas.Money]
		settled  string
	}{
		"value stays as it was":                     {fixed, asaas.Cents(10000), value.Null[asaas.Money](), "100.00"},
		"value is less, originalValue is the price": {fixed, asaas.Cents(9000), value.Of(asaas.Cents(10000)), "100.00"},
		"value is less, and nothing has the price":  {fixed, asaas.Cents(9000), value.Null[asaas.Money](), "100.00"},
		"of 3.33 per cent":                          {percent, asaas.Cents(9667), value.Null[asaas.Money](), "100.00"},
		"less by something else":                    {fixed, asaas.Cents(8000), value.Null[asaas.Money](), "80.00"},
		"less without a discount":                   {asaas.Discount{}, asaas.Cents(9000), value.Null[asaas.Money](), "90.00"},
	} {
		charge := newOf("order-1", asaas.BillingTypeBoleto)
		charge.Payment.Discount = value.Of(c.discount)
		bodies := [][]byte{charge.Created()}
		charge.Payment.Value, charge.Payment.OriginalValue = c.value, c.original
		bodies = append(bodies, charge.Confirmed(), charge.Received())
		for _, order := range permuted(nil, indexes(len(bodies))) {
			tx, err := pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range order {
				if err := dispatch(t.Context(), tx, events, "", bodies[n]); err != nil {
					t.Fatal(err)
				}
			}
			var got string
			if err := tx.QueryRow(t.Context(), `select concat_ws(' ', paid, settled) from orders where id = 'order-1'`).Scan(&got); err != nil || got != c.value.String()+" "+c.settled {
				t.Errorf("%s, in the order %v: the order is %s, want %s %s: %v", name, order, got, c.value, c.settled, err)
			}
			_ = tx.Rollback(t.Context())
		}
	}
}

func TestWhatAnOrderIsSetTo(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	var last charges.Order
	events := newSetting(func(_ context.Context, _ pgx.Tx, o charges.Order) (int64, error) { last = o; return 1, nil })
	pix, card, gone := newOf("a", asaas.BillingTypePix), newOf("a", asaas.BillingTypeCreditCard), newOf("a", asaas.BillingTypeBoleto)
	held := func() []byte {
		pix.Payment.Status = asaas.PaymentStatusConfirmed
		pix.Now = pix.Now.Add(time.Minute)
		return viewed(pix)
	}
	for _, c := range []struct {
		body []byte
		want string // settled, paid, received, refunding, held, charges, paid charges, before, after
	}{
		{pix.Created(), "0.00 0.00 0.00 0.00 0.00 1 0  PENDING"},
		{held(), "100.00 100.00 0.00 0.00 100.00 1 1 PENDING CONFIRMED"},
		{card.Created(), "100.00 100.00 0.00 0.00 100.00 2 1  PENDING"},
		{card.Confirmed(), "200.00 200.00 0.00 0.00 100.00 2 2 PENDING CONFIRMED"},
		{pix.Received(), "200.00 200.00 100.00 0.00 0.00 2 2 CONFIRMED RECEIVED"},
		{pix.RefundAsked(asaas.Cents(3000)), "200.00 200.00 100.00 30.00 0.00 2 2 RECEIVED RECEIVED"},
		{pix.RefundDone(), "170.00 170.00 70.00 0.00 0.00 2 2 RECEIVED RECEIVED"},
		{gone.Created(), "170.00 170.00 70.00 0.00 0.00 3 2  PENDING"},
		{gone.Deleted(), "170.00 170.00 70.00 0.00 0.00 2 2 PENDING PENDING"},
		{card.Refunded(), "70.00 70.00 70.00 0.00 0.00 2 1 CONFIRMED REFUNDED"},
	} {
		if err := handle(t, pool, events, "shop-1", c.body); err != nil {
			t.Fatal(err)
		}
		o := last
		got := fmt.Sprint(o.Settled, " ", o.Paid, " ", o.Received, " ", o.Refunding, " ", o.Held, " ", o.Charges, " ", o.PaidCharges, " ", o.Before.Status, " ", o.After.Status)
		if got != c.want || o.Scope != "shop-1" || o.Kind != charges.Reference || o.Name != "a" {
			t.Errorf("the order of %s %q is %s, want %s", o.Kind, o.Name, got, c.want)
		}
	}
}

// Other accounts have the same names.
func TestAnOrderIsTheSumOfItsAccountAlone(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	got := make(map[string]string)
	events := newSetting(func(_ context.Context, _ pgx.Tx, o charges.Order) (int64, error) {
		got[o.Scope] = o.Paid.String()
		return 1, nil
	})
	for _, scope := range []string{"shop-1", "shop-2", "shop-2"} {
		charge := newOf("1", asaas.BillingTypePix)
		charge.Created()
		if err := handle(t, pool, events, scope, charge.Received()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string]string{"shop-1": "100.00", "shop-2": "200.00"}, got); diff != "" {
		t.Errorf("paid (-want +got):\n%s", diff)
	}
}

// Events never came: a reading sets the orders.
func TestAReadingSetsTheOrdersOfMissedEvents(t *testing.T) {
	t.Parallel()
	pool, events := newSetOrders(t), newSetting(paid)
	fake, client := newAccount(t)
	first, second := newOf("order-1", asaas.BillingTypePix), newOf("order-1", asaas.BillingTypePix)
	for n, body := range [][]byte{first.Created(), first.Received(), second.Created(), second.Received()} {
		fake.Emit(body)
		if n == 0 || n == 2 {
			if err := handle(t, pool, events, "", body); err != nil {
				t.Fatal(err)
			}
		}
	}
	run := gap()
	run.Apply, run.Orders = nil, paid
	if report := reconcile(t, client, pool, run); report.Changed != 2 {
		t.Errorf("the run reports %+v", report)
	}
	if got, want := query(t, pool, allOrders), "order-1 200.00 200.00"; got != want {
		t.Errorf("the orders are %s, want %s", got, want)
	}
	run.Apply = book
	if _, err := charges.Reconcile(t.Context(), client, pool, run); err == nil {
		t.Error("a run has both functions")
	}
	for name, d := range map[string]*charges.Daily{"none": {Client: client, DB: pool}, "both": {Client: client, DB: pool, Apply: book, Orders: paid}} {
		if err := d.Run(t.Context()); err == nil {
			t.Errorf("Daily runs with %s of the functions", name)
		}
	}
	if _, err := (&charges.Daily{Client: client, DB: pool, Orders: paid}).Look(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheSumOfEachKindOfNameIsFoundByAnIndex(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	for kind, index := range map[charges.Kind]string{
		charges.Reference: "asaas_charges_reference", charges.Checkout: "asaas_charges_checkout", charges.Installment: "asaas_charges_installment",
		charges.Subscription: "asaas_charges_subscription", charges.Link: "asaas_charges_link", charges.QRCode: "asaas_charges_qr_code",
	} {
		tx := begin(t, pool)
		testkit.Exec(t, pool, `analyze asaas_charges`)
		if _, err := tx.Exec(t.Context(), `set local enable_seqscan = off`); err != nil {
			t.Fatal(err)
		}
		rows, _ := tx.Query(t.Context(), `explain `+charges.SumOf(kind), "", "a")
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || !slices.ContainsFunc(plan, func(line string) bool { return strings.Contains(line, index) }) {
			t.Errorf("%s: %v\n%s", kind, err, strings.Join(plan, "\n"))
		}
		_ = tx.Rollback(t.Context())
	}
}
