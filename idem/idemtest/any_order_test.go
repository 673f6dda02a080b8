package idemtest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/value"
)

// life are deliveries of a card's charge: it is paid, its money comes, and goes back.
func life() []*http.Request {
	charge := asaastest.NewCharge(asaas.BillingTypeCreditCard, asaas.Cents(12990))
	charge.Payment.ExternalReference = value.Of("order-1")
	charge.Created()
	var deliveries []*http.Request
	for _, body := range [][]byte{charge.Confirmed(), charge.Received(), charge.Refunded()} {
		deliveries = append(deliveries, asaastest.Request("/webhooks/asaas", "token", body))
	}
	return deliveries
}

const lifeTables = `create table orders (id text primary key, status text, status_at timestamptz not null default '-infinity');
	insert into orders values ('order-1');
	create table ledger (event_id text primary key, amount numeric not null)`

// lifeEnded is what the tables hold after the life.
func lifeEnded(ctx context.Context, pool *pgxpool.Pool) error {
	var status, booked string
	const query = `select coalesce((select status from orders), 'unpaid'), coalesce(sum(amount), 0)::text || ' in ' || count(*) from ledger`
	if err := pool.QueryRow(ctx, query).Scan(&status, &booked); err != nil {
		return err
	}
	if status != "REFUNDED" || booked != "0.00 in 2" {
		return fmt.Errorf("the order is %s, and %s are booked", status, booked)
	}
	return nil
}

type onPayment = idem.Handler[*asaas.PaymentEvent]

func applicationOf(t testing.TB, copyState, bookEvent onPayment) func(*pgxpool.Pool) idem.Source {
	return func(pool *pgxpool.Pool) idem.Source {
		if _, err := pool.Exec(t.Context(), lifeTables); err != nil {
			t.Error(err)
		}
		events := asaas.NewDispatcher("token")
		both := func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
			if err := copyState(ctx, tx, e); err != nil {
				return err
			}
			return bookEvent(ctx, tx, e)
		}
		events.OnPaymentConfirmed(copyState)
		events.OnPaymentReceived(both)
		events.OnPaymentRefunded(both)
		return events
	}
}

// newest copies a state, unless a newer event has.
func newest(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	_, err := tx.Exec(ctx, `update orders set status = $1, status_at = $2 where id = $3 and status_at <= $2`,
		e.Payment.Status, e.DateCreated, e.Payment.ExternalReference)
	return err
}

// fact books each event.
func fact(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	amount := e.Payment.Value
	if e.Event == asaas.EventPaymentRefunded {
		amount = amount.Neg()
	}
	_, err := tx.Exec(ctx, `insert into ledger values ($1, $2) on conflict do nothing`, e.ID, amount)
	return err
}

// anyOrderOf returns what AnyOrder says of handlers.
func anyOrderOf(t *testing.T, copyState, bookEvent onPayment, deliveries []*http.Request, check func(context.Context, *pgxpool.Pool) error) string {
	t.Helper()
	idemtest.URL(t) // without any Postgres, the test ends here
	r := &recorder{TB: t}
	r.run(func() { idemtest.AnyOrder(r, applicationOf(t, copyState, bookEvent), deliveries, check) })
	return strings.Join(r.failures, "\n")
}

func TestAnyOrderFindsHandlersThatAnOrderBreaks(t *testing.T) {
	t.Parallel()
	skipLate := func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		_, err := tx.Exec(ctx, `insert into ledger select $1, case when $2 = 'REFUNDED' then -$3::numeric else $3 end
			where not exists (select from orders where status_at > $4)`, e.ID, string(e.Payment.Status), e.Payment.Value, e.DateCreated)
		return err
	}
	for why, c := range map[string]struct {
		copyState, bookEvent onPayment
		says                 []string
	}{
		"an older state overwrites a newer one": {
			func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
				_, err := tx.Exec(ctx, `update orders set status = $1`, e.Payment.Status)
				return err
			}, fact,
			[]string{
				"work first, in the order PAYMENT_CONFIRMED, PAYMENT_REFUNDED, PAYMENT_RECEIVED: the order is RECEIVED, and 0.00 in 2 are booked",
				"3 trials had wrong effects: the rest is not tried",
			},
		},
		"a late event is skipped, and its money with it": {
			newest, skipLate,
			[]string{"work first, in the order PAYMENT_CONFIRMED, PAYMENT_REFUNDED, PAYMENT_RECEIVED: the order is REFUNDED, and -129.90 in 1 are booked"},
		},
		"it gives an early event up": {
			newest, func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
				var n int
				if err := tx.QueryRow(ctx, `select count(*) from ledger`).Scan(&n); err != nil {
					return err
				}
				if e.Event == asaas.EventPaymentRefunded && n == 0 {
					return idem.NoRetry(errors.New("nobody has paid"))
				}
				return fact(ctx, tx, e)
			},
			[]string{
				"work first, in the order PAYMENT_CONFIRMED, PAYMENT_REFUNDED, PAYMENT_RECEIVED: PAYMENT_REFUNDED was answered 200, parked: ",
				"nobody has paid",
			},
		},
		"it waits for an event that does not come": {
			newest, func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
				return pgx.ErrNoRows
			},
			[]string{"work first, in the order PAYMENT_CONFIRMED, PAYMENT_RECEIVED, PAYMENT_REFUNDED: it still fails after all others were handled: PAYMENT_REFUNDED was answered 503, retrying: "},
		},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			says := anyOrderOf(t, c.copyState, c.bookEvent, life(), lifeEnded)
			for _, want := range c.says {
				if !strings.Contains(says, want) {
					t.Errorf("it does not say %q:\n%s", want, says)
				}
			}
		})
	}
}

// An order that only an inbox gets wrong is found: its handler runs for 30 seconds.
func TestAnyOrderTriesAnInboxAsItsEventsArrive(t *testing.T) {
	t.Parallel()
	inInboxOnly := func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		if deadline, _ := ctx.Deadline(); time.Until(deadline) < 10*time.Second {
			return newest(ctx, tx, e) // a first try has 4 seconds
		}
		_, err := tx.Exec(ctx, `update orders set status = $1`, e.Payment.Status)
		return err
	}
	says := anyOrderOf(t, inInboxOnly, fact, life(), lifeEnded)
	const want = "an inbox, in the order PAYMENT_CONFIRMED, PAYMENT_REFUNDED, PAYMENT_RECEIVED: the order is RECEIVED, and 0.00 in 2 are booked"
	if !strings.Contains(says, want) || strings.Contains(says, "work first") {
		t.Errorf("it does not say %q:\n%s", want, says)
	}
}

func TestAnyOrderNeedsACheckThatCanFail(t *testing.T) {
	t.Parallel()
	says := anyOrderOf(t, newest, fact, life(), func(context.Context, *pgxpool.Pool) error { return nil })
	if !strings.Contains(says, "check is satisfied before anything is delivered") {
		t.Error(says)
	}
}

// A payment that is given back ends where it began: at 0.00.
func TestAnyOrderTakesAnEndOfZero(t *testing.T) {
	t.Parallel()
	zero := func(ctx context.Context, pool *pgxpool.Pool) error {
		var booked string
		err := pool.QueryRow(ctx, `select coalesce(sum(amount), 0.00)::text from ledger`).Scan(&booked)
		if err == nil && booked != "0.00" {
			err = fmt.Errorf("%s is booked", booked)
		}
		return err
	}
	if says := anyOrderOf(t, newest, fact, life(), zero); says != "" {
		t.Error(says)
	}
	twice := func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		_, err := tx.Exec(ctx, `insert into ledger select $1 || count(*), $2 from ledger`, e.ID, e.Payment.Value)
		return err
	}
	if says := anyOrderOf(t, newest, twice, life(), zero); !strings.Contains(says, "is booked") {
		t.Errorf("it does not find money that is booked twice: %s", says)
	}
}

// Of more deliveries than five it tries as many orders as of five.
func TestAnyOrderTriesABoundedNumberOfOrders(t *testing.T) {
	t.Parallel()
	for n, want := range []int{1, 1, 2, 6, 24, 120, 120, 120, 120} {
		all := idemtest.Permutations(n)
		different := make(map[string]bool)
		for _, order := range all {
			sorted := slices.Sorted(slices.Values(order))
			different[fmt.Sprint(order)] = len(order) == n && (n == 0 || sorted[n-1] == n-1 && len(slices.Compact(sorted)) == n)
		}
		if len(all) != want || len(different) != want || slices.Contains(slices.Collect(maps.Values(different)), false) {
			t.Errorf("of %d deliveries %d orders, %d of them different, want %d", n, len(all), len(different), want)
		}
		if !cmp.Equal(all, idemtest.Permutations(n)) || !slices.IsSorted(all[0]) {
			t.Errorf("of %d deliveries: the orders differ from run to run, or the given one is not the first", n)
		}
	}
}
