package charges_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/testkit"
)

// madeOn is an event of a charge that was made some days after a day.
func madeOn(day time.Time, days int) []byte {
	made := day.In(asaas.Brasilia()).AddDate(0, 0, days).Format(time.DateOnly)
	return asaastest.Event(asaas.EventPaymentConfirmed, asaastest.Set("payment.dateCreated", made), asaastest.Set("payment.id", fmt.Sprintf("pay_%d", days)))
}

// What another program has booked of a charge is not known: its first event is parked, and the error says what to do.
func TestTheFirstEventOfAnOlderChargeIsParked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		running bool // handlers of this module have handled events
		want    map[int]string
	}{
		"a new shop":               {false, map[int]string{-400: "parked", -1: "parked", 0: "done", 1: "done", 400: "done"}},
		"one that runs already":    {true, map[int]string{-400: "parked", -1: "parked", 0: "parked", 1: "done", 400: "done"}},
		"of an account of its own": {true, map[int]string{0: "parked", 1: "done"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testkit.Open(t)
			if c.running {
				old := asaas.NewDispatcher("token")
				old.OnPaymentCreated(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil })
				deliver(t, pool, old, asaastest.Event(asaas.EventPaymentCreated))
			}
			before := time.Now()
			for range 2 { // every start migrates
				if err := charges.Migrate(t.Context(), pool); err != nil {
					t.Fatal(err)
				}
			}
			today := before
			complete := func(day time.Time) string {
				if c.running {
					day = day.AddDate(0, 0, 1)
				}
				return day.In(asaas.Brasilia()).Format(time.DateOnly)
			}
			switch since := query(t, pool, `select complete from asaas_charges_migrations`); since {
			case complete(today):
			case complete(time.Now()):
				today = time.Now() // midnight has passed
			default:
				t.Fatalf("the table is complete since %s, want %s", since, complete(today))
			}
			if err := charges.Filled(t.Context(), pool, "another account", time.Time{}); err != nil {
				t.Fatal(err)
			}
			if _, err := pool.Exec(t.Context(), ledgerTable); err != nil {
				t.Fatal(err)
			}
			for days, want := range c.want {
				state, says := deliver(t, pool, newEvents(book), madeOn(today, days))
				if state != want || want == "parked" && !(strings.Contains(says, "run asaas-queue filled once") && strings.Contains(says, "charges.Handler(nil)")) {
					t.Errorf("made %d days from now, the event is %s, want %s: %s", days, state, want, says)
				}
				if rows := query(t, pool, `select count(*) from ledger where charge = $1`, fmt.Sprintf("pay_%d", days)); (rows == "1") != (want == "done") {
					t.Errorf("made %d days from now, the ledger has %s lines", days, rows)
				}
			}
		})
	}
}

// Once it is said that no other program has booked anything, what was parked is booked.
func TestWhatWasParkedIsBookedOnceTheTableIsFilled(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	_, ofLedger := pool.Exec(t.Context(), ledgerTable)
	if err := errors.Join(ofLedger, idem.Migrate(t.Context(), pool), charges.Migrate(t.Context(), pool)); err != nil {
		t.Fatal(err)
	}
	body := madeOn(time.Now(), -30)
	if state, says := deliver(t, pool, newEvents(book), body); state != "parked" {
		t.Fatalf("the event is %s: %s", state, says)
	}
	if err := charges.Filled(t.Context(), pool, "", time.Time{}); err != nil {
		t.Fatal(err)
	}
	if state, says := deliver(t, pool, newEvents(book), body); state != "done" {
		t.Errorf("the event is %s: %s", state, says)
	}
	if got := query(t, pool, `select sum(paid) from ledger`); got != "129.90" {
		t.Errorf("the ledger holds %s", got)
	}
}

// A handler that only copies refuses nothing, and a reading of an older charge is no excuse for booking it.
func TestAReadingOfAnOlderChargeIsRefusedUnlessItFills(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	if err := errors.Join(idem.Migrate(t.Context(), pool), charges.Migrate(t.Context(), pool)); err != nil {
		t.Fatal(err)
	}
	p := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000)).Payment
	p.Status = asaas.PaymentStatusReceived
	read := func(read func(context.Context, pgx.Tx, string, *asaas.Payment, time.Time) (charges.Change, error)) error {
		return pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := read(t.Context(), tx, "", &p, time.Now())
			return err
		})
	}
	if err := read(charges.CopyRead); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("the reading was copied: %v", err)
	}
	if err := handle(t, pool, newEvents(nil), "", madeOn(time.Now(), -30)); err != nil {
		t.Errorf("a handler that only copies: %v", err)
	}
	if err := read(charges.FillRead); err != nil {
		t.Errorf("filling: %v", err)
	}
	if err := read(charges.CopyRead); err != nil {
		t.Errorf("a reading of a charge that has a row: %v", err)
	}
}

// A shop that runs already is right about the money of every charge, wherever in its life the change finds it: the handlers of
// before book the first events, alone and then beside a handler that only copies; the table is filled; and the others
// book the rest, with what was booked before coming again.
func TestAShopThatRunsAlreadyChangesWithoutBookingTwice(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	_, ofTables := pool.Exec(t.Context(), ledgerTable+";"+setOrders+`; create table booked (charge text primary key, paid numeric not null)`)
	if err := errors.Join(ofTables, idem.Migrate(t.Context(), pool), charges.Migrate(t.Context(), pool)); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for name, c := range map[string]struct {
		events *asaas.Dispatcher
		lives  []asaastest.Life
	}{
		"Handler": {newEvents(shop), asaastest.Lives("order-1")},
		// What others have not booked yet when the table is filled is a difference for nobody, and in the sum.
		"Orders": {newSetting(paid), append(asaastest.Lives("order-1"), bornConfirmed(t))},
	} {
		for _, life := range c.lives {
			for alone := 0; alone <= len(life.Bodies); alone += testkit.Size(2, 1) {
				for beside := alone; beside <= len(life.Bodies); beside += testkit.Size(2, 1) {
					tx, err := pool.Begin(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if err := changeOver(t.Context(), tx, c.events, life, alone, beside); err != nil {
						t.Errorf("%s: %s, %d events before and %d beside: %v", name, life.Name, alone, beside-alone, err)
					}
					_ = tx.Rollback(t.Context())
					ran++
				}
			}
		}
	}
	t.Logf("%d runs", ran)
}

// bornConfirmed is the life of a card that is confirmed when it is made.
func bornConfirmed(t *testing.T) asaastest.Life {
	t.Helper()
	card := newOf("order-1", asaas.BillingTypeCreditCard)
	life := asaastest.Life{Name: "a card, confirmed when it is made", Charge: card, Status: "RECEIVED", Paid: asaas.Cents(10000), Received: asaas.Cents(10000)}
	life.Bodies = append(life.Bodies, with(t, card.Created(), "status", "CONFIRMED"), card.Confirmed(), card.Received())
	return life
}

// changeOver has the handlers of before book the events up to beside, a handler that only copies stand beside them from the event
// alone on, and the new one book the rest.
func changeOver(ctx context.Context, tx pgx.Tx, events *asaas.Dispatcher, life asaastest.Life, alone, beside int) error {
	copying, before := newEvents(nil), asaas.NewDispatcher("token")
	oldBooks(copying, addByHand)
	oldBooks(before, addByHand)
	for n, body := range life.Bodies[:beside] {
		version := copying
		if n < alone {
			version = before
		}
		if err := dispatch(ctx, tx, version, "", body); err != nil && !errors.Is(err, idem.ErrUnhandled) {
			return err
		}
	}
	if beside > 0 { // the table is filled: with what Asaas's API shows of the charge then
		e, err := asaas.Parse(life.Bodies[beside-1])
		if err != nil {
			return err
		}
		p := e.(*asaas.PaymentEvent)
		at, err := p.DateCreated.Time()
		if err != nil {
			return err
		}
		if _, err := charges.FillRead(ctx, tx, "", &p.Payment, at); err != nil {
			return err
		}
	}
	if err := charges.Filled(ctx, tx, "", time.Time{}); err != nil {
		return err
	}
	for _, body := range append(life.Bodies[beside:], life.Bodies...) {
		if err := dispatch(ctx, tx, events, "", body); err != nil {
			return err
		}
	}
	var paid, row asaas.Money
	if err := tx.QueryRow(ctx, `select (select paid from orders where id = 'order-1'), (select paid from asaas_charges)`).Scan(&paid, &row); err != nil {
		return err
	}
	if paid != life.Paid || row != life.Paid {
		return fmt.Errorf("R$ %s of the order are paid, R$ %s of the charge, want R$ %s", paid, row, life.Paid)
	}
	return nil
}

// addByHand books as a shop does without this package: a row for each charge, and the difference is added to the
// order.
func addByHand(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	now := asaas.Money{}
	switch e.Payment.Status {
	case asaas.PaymentStatusConfirmed, asaas.PaymentStatusReceived, asaas.PaymentStatusReceivedInCash, asaas.PaymentStatusDunningReceived:
		now = e.Payment.Value
		for _, r := range e.Payment.Refunds.Or(nil) {
			if r.Status.Or("") == asaas.RefundStatusDone {
				now = now.Sub(r.Value.Or(asaas.Money{}))
			}
		}
	}
	var was asaas.Money
	err := tx.QueryRow(ctx, `select paid from booked where charge = $1 for update`, e.Payment.ID).Scan(&was)
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return err
	}
	if _, err = tx.Exec(ctx, `insert into booked values ($1, $2) on conflict (charge) do update set paid = excluded.paid`, e.Payment.ID, now); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `update orders set paid = paid + $1 where id = $2`, now.Sub(was), e.Payment.ExternalReference)
	return err
}

// oldBooks registers a handler for each type that moves money, as programs did before there was one for all.
func oldBooks(d *asaas.Dispatcher, h idem.Handler[*asaas.PaymentEvent]) {
	for _, on := range []func(idem.Handler[*asaas.PaymentEvent]){
		d.OnPaymentConfirmed, d.OnPaymentReceived, d.OnPaymentRefunded, d.OnPaymentPartiallyRefunded, d.OnPaymentRefundInProgress, d.OnPaymentRefundDenied,
		d.OnPaymentChargebackRequested, d.OnPaymentReceivedInCashUndone, d.OnPaymentDunningReceived, d.OnPaymentUpdated,
	} {
		on(h)
	}
}
