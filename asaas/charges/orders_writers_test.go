package charges_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/idem/value"
	"github.com/paghooks/paghooks/internal/testkit"
)

// Two events of one order are handled at the same time: the sum is taken when the other one is committed.
func TestTheSumOfAnOrderHasWhatAnotherTransactionBooks(t *testing.T) {
	t.Parallel()
	beside := asaas.NewDispatcher("token") // the version of before, which fills the table
	beside.OnPayment(charges.Handler(nil))
	beside.OnPaymentConfirmed(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		_, err := tx.Exec(ctx, `update orders set paid = paid + $1, settled = settled + $1 where id = $2`, e.Payment.Value, e.Payment.ExternalReference)
		return err
	})
	for name, first := range map[string]*asaas.Dispatcher{"the same version": newSetting(paid), "the handlers of before, which add": beside} {
		for kind, of := range map[string]func(*asaas.Payment){
			"a reference": func(p *asaas.Payment) { p.ExternalReference = value.Of("order-1") },
			"a Checkout":  func(p *asaas.Payment) { p.CheckoutSession = value.Of("checkout-1") },
		} {
			if first == beside && kind == "a Checkout" {
				continue
			}
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				pool := newSetOrders(t)
				var bodies [][]byte
				for range 2 {
					charge := newOf("", asaas.BillingTypeCreditCard)
					of(&charge.Payment)
					if err := handle(t, pool, newSetting(paid), "", charge.Created()); err != nil { // so the account is known
						t.Fatal(err)
					}
					bodies = append(bodies, charge.Confirmed())
				}
				one, two := begin(t, pool), begin(t, pool)
				if err := dispatch(t.Context(), one, first, "", bodies[0]); err != nil {
					t.Fatal(err)
				}
				done := make(chan error, 1)
				go func() {
					err := dispatch(t.Context(), two, newSetting(paid), "", bodies[1])
					if err == nil {
						err = two.Commit(t.Context())
					}
					done <- err
				}()
				waits(t, pool, two, done)
				if err := errors.Join(one.Commit(t.Context()), <-done); err != nil {
					t.Fatal(err)
				}
				if got, want := query(t, pool, allOrders), "order-1 200.00 200.00"; got != want {
					t.Errorf("the orders are %s, want %s", got, want)
				}
			})
		}
	}
}

// Eight writers deliver the lives of the charges of two orders, each event twice.
func TestWritersOfOneOrderLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	pool, events := newSetOrders(t), newSetting(paid)
	random := rand.New(rand.NewPCG(5, 6))
	want := make(map[string]asaas.Money)
	var all [][]byte
	for n, life := range asaastest.Lives("") {
		order := fmt.Sprintf("order-%d", 1+n%2)
		for _, body := range life.Bodies {
			body = with(t, body, "externalReference", order)
			all = append(all, body, body)
		}
		want[order] = want[order].Add(life.Paid)
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	work := make(chan []byte)
	var writers sync.WaitGroup
	for range 8 {
		writers.Go(func() {
			for body := range work {
				if err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return dispatch(t.Context(), tx, events, "", body) }); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, body := range all {
		work <- body
	}
	close(work)
	writers.Wait()
	for order, paid := range want {
		if got := query(t, pool, `select paid from orders where id = $1`, order); got != paid.String() {
			t.Errorf("%s of %s are paid, want %s", got, order, paid)
		}
	}
}

// A shop changes from handlers that add, with a table of their own, to Orders, and both versions run at once. The
// table of charges is filled. The order is right from the first event on that Orders gets last.
func TestAShopChangesToOrdersWithBothVersionsAtOnce(t *testing.T) {
	t.Parallel()
	pool := newSetOrders(t)
	testkit.Exec(t, pool, `create table booked (charge text primary key, paid numeric not null)`)
	before, after := asaas.NewDispatcher("token"), newSetting(paid)
	before.OnPayment(charges.Handler(nil))
	oldBooks(before, addByHand)
	ran := 0
	for _, life := range asaastest.Lives("order-1") {
		for seed := range uint64(testkit.Size(4, 40)) {
			random := rand.New(rand.NewPCG(seed, 7))
			tx, err := pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for n, body := range life.Bodies {
				version := before
				if n == len(life.Bodies)-1 || random.IntN(2) == 0 {
					version = after
				}
				if err := dispatch(t.Context(), tx, version, "", body); err != nil {
					t.Fatalf("%s: %v", life.Name, err)
				}
			}
			var got asaas.Money
			if err := tx.QueryRow(t.Context(), `select paid from orders where id = 'order-1'`).Scan(&got); err != nil || got != life.Paid {
				t.Errorf("%s, %d: %s are paid, want %s: %v", life.Name, seed, got, life.Paid, err)
			}
			_ = tx.Rollback(t.Context())
			ran++
		}
	}
	t.Logf("%d change-overs", ran)
}

// A card is confirmed when it is made. Another version of the program books it, and the event of its creation comes
// late.
func TestALateCreationOfABookedChargeDoublesNothing(t *testing.T) {
	t.Parallel()
	pool := newSetOrders(t)
	before := asaas.NewDispatcher("token")
	before.OnPaymentConfirmed(addByHand)
	testkit.Exec(t, pool, `create table booked (charge text primary key, paid numeric not null)`)
	charge := newOf("order-1", asaas.BillingTypeCreditCard)
	created := with(t, charge.Created(), "status", "CONFIRMED")
	confirmed := charge.Confirmed()
	if state, says := deliver(t, pool, before, confirmed); state != "done" {
		t.Fatalf("the event is %s: %s", state, says)
	}
	if state, says := deliver(t, pool, newSetting(paid), created); state != "done" {
		t.Fatalf("the event is %s: %s", state, says)
	}
	if got, want := query(t, pool, allOrders), "order-1 100.00 100.00"; got != want {
		t.Errorf("the orders are %s, want %s", got, want)
	}
}

// The sum would lack the charges that other handlers have booked.
func TestNoOrderIsSetWhileTheTableLacksWhatOtherHandlersHaveBooked(t *testing.T) {
	t.Parallel()
	for reason, book := range map[string]func(*testing.T, *pgxpool.Pool){
		"they have booked it here": func(t *testing.T, pool *pgxpool.Pool) {
			old := asaas.NewDispatcher("token")
			old.OnPaymentCreated(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil })
			if state, says := deliver(t, pool, old, asaastest.Event(asaas.EventPaymentCreated)); state != "done" {
				t.Fatalf("the event is %s: %s", state, says)
			}
		},
		"only the ids of its events are imported": func(t *testing.T, pool *pgxpool.Pool) {
			done := func(yield func(operator.OldEvent, error) bool) {
				yield(operator.OldEvent{ID: "evt_old", Done: true}, nil)
			}
			if _, err := operator.New(idem.NewInbox(pool, asaas.NewDispatcher("token")), "ana").Import(t.Context(), "", done, "moved"); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			pool := testkit.Open(t)
			book(t, pool)
			if err := charges.Migrate(t.Context(), pool); err != nil {
				t.Fatal(err)
			}
			testkit.Exec(t, pool, setOrders)
			n := 0
			body := func() []byte {
				n++
				return with(t, with(t, madeOn(time.Now(), 5), "externalReference", "order-1"), "id", fmt.Sprintf("pay_of_%d", n))
			}
			state, says := deliver(t, pool, newSetting(paid), body())
			if state != "parked" || !strings.Contains(says, "charges.Reconcile has filled the table") {
				t.Errorf("before the table is filled the event is %s: %s", state, says)
			}
			if state, says = deliver(t, pool, newEvents(nil), body()); state != "done" {
				t.Errorf("beside the handlers of before the event is %s: %s", state, says)
			}
			if state, says = deliver(t, pool, newSetting(paid), body()); state != "parked" {
				t.Errorf("with the first row the event is %s: %s", state, says)
			}
			if err := charges.Filled(t.Context(), pool, "", time.Time{}); err != nil {
				t.Fatal(err)
			}
			if state, says = deliver(t, pool, newSetting(paid), body()); state != "done" {
				t.Errorf("once it is filled the event is %s: %s", state, says)
			}
		})
	}
}

// A new shop has nothing to fill.
func TestOrdersOfANewShopAreSetFromTheFirstEventOn(t *testing.T) {
	t.Parallel()
	pool := testkit.Open(t)
	if err := charges.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	testkit.Exec(t, pool, setOrders)
	for n := range 3 {
		body := with(t, with(t, madeOn(time.Now(), n), "externalReference", "order-1"), "id", fmt.Sprintf("pay_of_%d", n))
		if state, says := deliver(t, pool, newSetting(paid), body); state != "done" {
			t.Errorf("event %d is %s: %s", n, state, says)
		}
	}
}
