package charges_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem/value"
)

// keep returns a handler that keeps the changes.
func keep(into *[]charges.Change) func(context.Context, pgx.Tx, charges.Change) error {
	return func(_ context.Context, _ pgx.Tx, c charges.Change) error { *into = append(*into, c); return nil }
}

func TestAChangeIsTheRowBeforeAndAfter(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	var seen []charges.Change
	events := newEvents(keep(&seen))
	charge := asaastest.NewCharge(asaas.BillingTypeCreditCard, asaas.Cents(29900))
	charge.Payment.ExternalReference = value.Of("order-1")
	charge.Payment.CheckoutSession = value.Of("") // equals no row of the application's
	for _, body := range [][]byte{charge.Created(), charge.Confirmed(), charge.Received(), charge.Refunded()} {
		if err := handle(t, pool, events, "shop-1", body); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for i, c := range seen {
		got = append(got, strings.Join([]string{string(c.Before.Status), string(c.After.Status), c.Paid().String(), c.Received().String()}, " "))
		if c.Late || c.After.Scope != "shop-1" || c.After.ID != charge.Payment.ID || c.BecamePaid() != (i == 1) {
			t.Errorf("change %d is %+v", i, c)
		}
		if i > 0 {
			if diff := cmp.Diff(seen[i-1].After, c.Before, cmpopts.IgnoreUnexported(charges.Charge{})); diff != "" {
				t.Errorf("a change does not begin where the one before ended (-after +before):\n%s", diff)
			}
		}
	}
	want := []string{" PENDING 0.00 0.00", "PENDING CONFIRMED 299.00 0.00", "CONFIRMED RECEIVED 0.00 299.00", "RECEIVED REFUNDED -299.00 -299.00"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	last := seen[len(seen)-1].After
	if _, ok := last.CheckoutSession.Get(); ok || last.ExternalReference.Or("") != "order-1" {
		t.Errorf("the row has the checkout %v and the reference %v", last.CheckoutSession, last.ExternalReference)
	}
}

// Of two events, one changes the row last: that with the later time, or else with the higher number, or else
// with the greater id. A reading is older than all events of its second.
func TestTheNewerOfTwoCopiesStaysWhicheverComesFirst(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	body := func(id, at string) func(status string, tx pgx.Tx, p *asaas.Payment) (bool, error) {
		return func(status string, tx pgx.Tx, p *asaas.Payment) (bool, error) {
			var seen []charges.Change
			err := dispatch(t.Context(), tx, newEvents(keep(&seen)), "", asaastest.Event(asaas.EventPaymentUpdated, asaastest.Set("id", id),
				asaastest.Set("dateCreated", at), asaastest.Set("payment.id", p.ID), asaastest.Set("payment.status", status), asaastest.Set("payment.refunds", nil)))
			return len(seen) == 1, err
		}
	}
	read := func(at string) func(status string, tx pgx.Tx, p *asaas.Payment) (bool, error) {
		return func(status string, tx pgx.Tx, p *asaas.Payment) (bool, error) {
			when, err := time.Parse("2006-01-02 15:04:05.000 -07", at+" -03")
			if err != nil {
				return false, err
			}
			was := *p
			was.Status = asaas.PaymentStatus(status)
			c, err := charges.CopyRead(t.Context(), tx, "", &was, when)
			return !c.Late, err
		}
	}
	for name, c := range map[string]struct {
		older, newer func(status string, tx pgx.Tx, p *asaas.Payment) (bool, error)
	}{
		"a second later":                       {body("evt_b&9", "2026-08-08 10:00:00"), body("evt_a&1", "2026-08-08 10:00:01")},
		"in one second, by the number":         {body("evt_b&9", "2026-08-08 10:00:00"), body("evt_a&10", "2026-08-08 10:00:00")},
		"in one second, without numbers":       {body("evt_001", "2026-08-08 10:00:00"), body("evt_002", "2026-08-08 10:00:00")},
		"in one second, a number and none":     {body("evt_z", "2026-08-08 10:00:00"), body("evt_a&1", "2026-08-08 10:00:00")},
		"in one second, by bytes":              {body("evt_Z", "2026-08-08 10:00:00"), body("evt_a", "2026-08-08 10:00:00")},
		"a number that is too long is none":    {body("evt_a&99999999999999999999", "2026-08-08 10:00:00"), body("evt_a&2", "2026-08-08 10:00:00")},
		"a reading in an event's second":       {read("2026-08-08 10:00:00.900"), body("evt_1", "2026-08-08 10:00:00")},
		"a reading in the second behind it":    {body("evt_a&9", "2026-08-08 10:00:00"), read("2026-08-08 10:00:01.000")},
		"in another spelling of an older time": {body("evt_a&9", "2026-08-08T12:59:59Z"), body("evt_a&1", "08/08/2026 10:00:00")},
	} {
		t.Run(name, func(t *testing.T) {
			for _, first := range []string{"older", "newer"} {
				tx, err := pool.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				p := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000)).Payment
				copies := []func() (bool, error){
					func() (bool, error) { return c.older("PENDING", tx, &p) }, func() (bool, error) { return c.newer("RECEIVED", tx, &p) },
				}
				if first == "newer" {
					slices.Reverse(copies)
				}
				var changed []bool
				for _, do := range append(copies, copies...) { // all come once more
					was, err := do()
					if err != nil {
						t.Fatal(err)
					}
					changed = append(changed, was)
				}
				if diff := cmp.Diff([]bool{true, first == "older", false, false}, changed); diff != "" {
					t.Errorf("the %s first: copies that changed the row (-want +got):\n%s", first, diff)
				}
				var status string
				if err := tx.QueryRow(t.Context(), `select status from asaas_charges where id = $1`, p.ID).Scan(&status); err != nil || status != "RECEIVED" {
					t.Errorf("the %s first: the row is %s, %v", first, status, err)
				}
				_ = tx.Rollback(t.Context())
			}
		})
	}
}

func TestAReadingThatFoundNothingChangesNoRow(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	charge := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	charge.Created()
	if err := handle(t, pool, newEvents(book), "", charge.Received()); err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]*asaas.Payment{"nothing": nil, "an answer of 404": {}, "without a status": {ID: charge.Payment.ID, Deleted: true}} {
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			_, err := charges.CopyRead(t.Context(), tx, "", p, time.Now())
			return err
		})
		if err == nil {
			t.Errorf("%s was copied", name)
		}
	}
	if got := query(t, pool, `select status || ' ' || paid || ' ' || deleted from asaas_charges`); got != "RECEIVED 100.00 false" {
		t.Errorf("the row is %s", got)
	}
}

// An error of the application's rolls the copy back: the event that comes again makes the same difference.
func TestAnErrorOfApplyLeavesTheRowAsItWas(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	body := asaastest.Event(asaas.EventPaymentReceived, asaastest.Set("payment.refunds", nil))
	failing := newEvents(func(context.Context, pgx.Tx, charges.Change) error { return context.DeadlineExceeded })
	if err := handle(t, pool, failing, "", body); err == nil {
		t.Fatal("the event was handled")
	}
	if err := handle(t, pool, newEvents(book), "", body); err != nil {
		t.Fatal(err)
	}
	if got := query(t, pool, `select string_agg(ledger::text, ' ') from ledger`); !strings.HasSuffix(got, `,"",RECEIVED)`) {
		t.Errorf("the ledger is %s", got)
	}
}

// The row of the family's handler is there when the type's own runs, and takes nothing from it.
func TestAHandlerOfOneTypeBesideItTakesNothingFromTheTable(t *testing.T) {
	t.Parallel()
	pool, events := newTables(t), newEvents(book)
	var seen string
	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		return tx.QueryRow(ctx, `select status || ' ' || paid from asaas_charges where id = $1`, e.Payment.ID).Scan(&seen)
	})
	charge := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	for _, body := range [][]byte{charge.Created(), charge.Received(), charge.Refunded()} {
		if state, err := deliver(t, pool, events, body); state != "done" {
			t.Fatalf("an event is %s: %s", state, err)
		}
	}
	if seen != "RECEIVED 100.00" {
		t.Errorf("the handler of the type saw the row %q", seen)
	}
	if got := query(t, pool, `select string_agg(after || ' ' || paid, ', ' order by after = 'REFUNDED', paid) from ledger`); got != "PENDING 0.00, RECEIVED 100.00, REFUNDED -100.00" {
		t.Errorf("the ledger is %s", got)
	}
	if types := events.Types(); len(types) != 30 || !slices.Contains(types, asaas.EventPaymentReceived) {
		t.Errorf("there are handlers for %d types: %v", len(types), types)
	}
	events = newEvents(book)
	events.Ignore(asaas.EventPaymentCheckoutViewed, asaas.EventPaymentBankSlipViewed)
	if types := events.Types(); len(types) != 28 {
		t.Errorf("there are handlers for %d types with two ignored", len(types))
	}
}

func TestTheSumsAreByEachNameThatChargesHaveInCommon(t *testing.T) {
	t.Parallel()
	pool, events := newTables(t), newEvents(nil)
	for i, c := range asaastest.NewInstallments(asaas.BillingTypeBoleto, asaas.Cents(120000), 12) {
		c.Payment.ExternalReference = value.Of("order-1")
		bodies := [][]byte{c.Created()}
		switch i {
		case 0:
			bodies = append(bodies, c.Confirmed(), c.Received())
		case 1:
			bodies = append(bodies, c.Confirmed())
		case 11:
			bodies = append(bodies, c.Deleted())
		}
		for _, body := range bodies {
			if err := handle(t, pool, events, "", body); err != nil {
				t.Fatal(err)
			}
		}
	}
	const sums = `select string_agg(concat_ws(' ', kind, charges, paid_charges, value, paid, received), ', ' order by kind) from asaas_charge_sums`
	if got, want := query(t, pool, sums), "installment 11 2 1100.00 200.00 100.00, reference 11 2 1100.00 200.00 100.00"; got != want {
		t.Errorf("the sums are %q, want %q", got, want)
	}
}

// Orders are looked up one by one: the view must not add up all others for that.
func TestTheSumsOfOneNameAreFoundByAnIndex(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `set local enable_seqscan = off`); err != nil {
			return err
		}
		rows, err := tx.Query(t.Context(), `explain select * from asaas_charge_sums where kind = 'reference' and name = 'order-1'`)
		if err != nil {
			return err
		}
		plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if text := strings.Join(plan, "\n"); !strings.Contains(text, "asaas_charges_reference") || strings.Contains(text, "asaas_charges_installment") {
			t.Errorf("the plan is\n%s", text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestCopyOutsideOfAHandlerIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := charges.Copy(t.Context(), nil, new(asaas.PaymentEvent)); err == nil || !strings.Contains(err.Error(), "handler") {
		t.Errorf("Copy = %v", err)
	}
}

func TestAFieldThatPostgresCannotStoreLosesNoEvent(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	state, err := deliver(t, pool, newEvents(book), asaastest.Event(asaas.EventPaymentReceived, asaastest.Set("payment.refunds", nil),
		asaastest.Set("payment.externalReference", "order\x00-1"), asaastest.Set("payment.customer", "cus\x00_1"),
		asaastest.Set("payment.dueDate", "0000-00-00"), asaastest.Set("payment.creditDate", "soon"), asaastest.Set("payment.netValue", nil),
		asaastest.Set("payment.installmentNumber", int64(1e12))))
	const row = `select concat_ws(' ', external_reference, customer, due is null, credited is null, net_value is null, installment_number) from asaas_charges`
	if got := query(t, pool, row); state != "done" || got != "order-1 cus_1 t t t 0" {
		t.Errorf("the event is %s with %q, and the row %s", state, err, got)
	}
}

func TestThePlanOfAWebhookHasTheTypesOfTheFamily(t *testing.T) {
	t.Parallel()
	events := newEvents(book)
	if types := events.Types(); len(types) != 30 || !slices.Contains(types, "PAYMENT_REFUNDED") {
		t.Errorf("the dispatcher handles %v", types)
	}
}

// Poolers want other protocols: none may store another row.
func TestEveryProtocolOfPostgresCopiesTheSame(t *testing.T) {
	t.Parallel()
	config := newTables(t).Config()
	charge := asaastest.NewCharge(asaas.BillingTypeBoleto, asaas.Cents(10000))
	charge.Payment.ExternalReference = value.Of("order-1")
	bodies := [][]byte{charge.Created(), charge.Confirmed(), charge.Received(), charge.PartiallyRefunded(asaas.Cents(1000))}
	var first string
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		config := config.Copy()
		config.ConnConfig.DefaultQueryExecMode = mode
		pool, err := pgxpool.NewWithConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		scope := mode.String()
		if err := errors.Join(charges.Apart(t.Context(), pool, scope), charges.Filled(t.Context(), pool, scope, time.Time{})); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		for _, body := range bodies {
			if err := handle(t, pool, newEvents(book), scope, body); err != nil {
				t.Errorf("%s: %v", mode, err)
			}
		}
		row := query(t, pool, `select to_jsonb(c) - 'scope' - 'apart' from asaas_charges c where scope = $1`, scope)
		if first == "" {
			first = row
		}
		if row != first || !strings.Contains(row, `"paid": 90.00`) {
			t.Errorf("%s stores %s, and the first of them %s", mode, row, first)
		}
	}
}

// The second copy waits for the first, and cannot see its row when it begins.
func TestACopyThatWaitsForAnotherBeginsWithTheRowThatItLeaves(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		known, fails bool // the charge has a row; the first copy is rolled back
		scope        string
		want         string // the ledger, in the order of its lines
	}{
		"both are the first copy":                {want: "100.00, -10.00"},
		"both are, and one is rolled back":       {fails: true, want: "90.00"},
		"both change a row":                      {known: true, want: "0.00, 100.00, -10.00"},
		"both do, and one is rolled back":        {known: true, fails: true, want: "0.00, 90.00"},
		"the other one is that of another scope": {scope: "shop-2", want: "100.00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, events := newTables(t), newEvents(book)
			if _, err := pool.Exec(t.Context(), `alter table ledger add n int generated always as identity`); err != nil {
				t.Fatal(err)
			}
			charge := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
			if created := charge.Created(); c.known {
				if err := handle(t, pool, events, "", created); err != nil {
					t.Fatal(err)
				}
			}
			received, refunded := charge.Received(), charge.PartiallyRefunded(asaas.Cents(1000))
			first, second := begin(t, pool), begin(t, pool)
			if err := dispatch(t.Context(), first, events, "", received); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				err := dispatch(t.Context(), second, events, c.scope, refunded)
				if err == nil {
					err = second.Commit(t.Context())
				}
				done <- err
			}()
			waits(t, pool, second, done)
			end := first.Commit
			if c.fails {
				end = first.Rollback
			}
			if err := end(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-done; (err != nil) != (c.scope != "") {
				t.Fatal(err)
			}
			if got := query(t, pool, `select string_agg(paid::text, ', ' order by n) from ledger`); got != c.want {
				t.Errorf("the ledger holds %s, want %s", got, c.want)
			}
		})
	}
}

// begin begins a transaction, which is rolled back when the test ends.
func begin(t *testing.T, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	return tx
}

// waits returns once a transaction waits for another one.
func waits(t *testing.T, pool *pgxpool.Pool, tx pgx.Tx, done <-chan error) {
	t.Helper()
	for blocked := false; !blocked; {
		if err := pool.QueryRow(t.Context(), `select cardinality(pg_blocking_pids($1)) > 0`, tx.Conn().PgConn().PID()).Scan(&blocked); err != nil {
			t.Fatal(err)
		}
		if len(done) > 0 {
			t.Fatalf("it did not wait: %v", <-done)
		}
	}
}

// Two events of one charge are copied at the same time: that which comes second begins with the row that the first leaves. A
// trigger holds both up behind their looks at the row.
func TestACopyBeginsWithTheRowThatTheOneBeforeLeaves(t *testing.T) {
	t.Parallel()
	pool := newTables(t)
	charge := asaastest.NewCharge(asaas.BillingTypeCreditCard, asaas.Cents(10000))
	created, confirmed, received := charge.Created(), charge.Confirmed(), charge.Received()
	if err := handle(t, pool, newEvents(book), "", created); err != nil {
		t.Fatal(err)
	}
	key := rand.Int64()
	gate := fmt.Sprintf(`create function gate() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(%d); return null; end $$;
		create trigger gate before update on asaas_charges for each statement execute function gate()`, key)
	if _, err := pool.Exec(t.Context(), gate); err != nil {
		t.Fatal(err)
	}
	holder := begin(t, pool)
	if _, err := holder.Exec(t.Context(), `select pg_advisory_xact_lock($1)`, key); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 2)
	for _, body := range [][]byte{confirmed, received} {
		tx := begin(t, pool)
		go func() {
			done <- errors.Join(dispatch(t.Context(), tx, newEvents(book), "", body), tx.Commit(t.Context()))
		}()
		waits(t, pool, tx, done)
	}
	if err := holder.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-done, <-done); err != nil {
		t.Fatal(err)
	}
	if got, want := query(t, pool, `select sum(paid) || ' ' || sum(received) from ledger`), "100.00 100.00"; got != want {
		t.Errorf("the ledger holds %s, want %s", got, want)
	}
}
