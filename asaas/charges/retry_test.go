package charges_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
)

// at returns a pool whose transactions have another isolation.
func at(t *testing.T, pool *pgxpool.Pool, level string) *pgxpool.Pool {
	t.Helper()
	config := pool.Config()
	config.ConnConfig.RuntimeParams["default_transaction_isolation"] = level
	other, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Close)
	return other
}

// Each charge's order is changed by another transaction between the look of its reading and the change.
func TestAReadingThatPostgresAsksToRunAgainIsBookedAndFills(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			pool := newTables(t)
			if _, err := pool.Exec(t.Context(), `create table orders (paid numeric, touched int); insert into orders values (0, 0)`); err != nil {
				t.Fatal(err)
			}
			fake, client := newAccount(t)
			_, created, received := pix(10)
			for n := range created {
				fake.Emit(created[n], received[n])
			}
			met := 0
			run := gap()
			run.Apply = func(ctx context.Context, tx pgx.Tx, c charges.Change) error {
				if met++; met%3 != 0 { // two of three runs meet another transaction
					if _, err := pool.Exec(ctx, `update orders set touched = touched + 1`); err != nil {
						return err
					}
				}
				_, err := tx.Exec(ctx, `update orders set paid = paid + $1`, c.Paid())
				return err
			}
			reconcile(t, client, at(t, pool, level), run)
			if got := query(t, pool, `select paid from orders`); got != "1000.00" || met < 30 {
				t.Errorf("%s are booked in %d runs, want 1000.00 in 30", got, met)
			}
		})
	}
}

// Two runs and the events of the same charges meet.
func TestRunsThatMeetAtAHigherIsolationBookEachChargeOnce(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			pool := newTables(t)
			higher := at(t, pool, level)
			fake, client := newAccount(t)
			_, created, received := pix(20)
			for n := range created {
				fake.Emit(created[n], received[n])
			}
			know(t, pool, created...)
			var all sync.WaitGroup
			for range 2 {
				all.Go(func() {
					run := gap()
					report, err := charges.Reconcile(t.Context(), client, higher, run)
					if err != nil || len(report.Failed) > 0 {
						t.Errorf("the run ended with %+v, %v", report, err)
					}
				})
			}
			all.Wait()
			if _, paid := sum(t, pool); paid != "2000.00" {
				t.Errorf("the ledger has %s, want 2000.00", paid)
			}
		})
	}
}

// A pending charge is read, then paid: by a clock that is ahead the reading would count as newer than the payment.
func TestAReadingIsOfTheTimeOfItsAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why     string
		ahead   time.Duration // Asaas's clock, compared with this machine's
		refused bool
	}{
		{"they agree", 0, false},
		{"this machine is a little ahead", -25 * time.Minute, false},
		{"this machine is ahead by hours", -3 * time.Hour, true},
		{"this machine is behind by hours", 3 * time.Hour, true},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			pool := newTables(t)
			fake, client := newAccount(t)
			asaasNow := time.Now().Add(c.ahead)
			client.Transport = answering{client.Transport, asaasNow}
			charge := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
			charge.Now = asaasNow.In(asaas.Brasilia()).Add(-2 * time.Hour)
			fake.Emit(charge.Created())
			report, err := charges.Reconcile(t.Context(), client, pool, gap())
			if refused := err != nil; refused != c.refused || refused && !strings.Contains(err.Error(), "the clocks disagree") {
				t.Fatalf("the run ended with %+v, %v; want refused %t", report, err, c.refused)
			}
			charge.Now = asaasNow.In(asaas.Brasilia()).Add(-50 * time.Minute) // it was paid meanwhile, and lists are late
			know(t, pool, charge.Received())
			if _, paid := sum(t, pool); paid != "100.00" {
				t.Errorf("the ledger has %s, want 100.00", paid)
			}
		})
	}
}

// answering gives answers a date.
type answering struct {
	http.RoundTripper
	at time.Time
}

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := a.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Header.Set("Date", a.at.UTC().Format(http.TimeFormat))
	}
	return answer, err
}

func TestTheClocksOfTheMachineAndTheDatabaseAreCompared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ahead   time.Duration
		refused bool
	}{{0, false}, {-25 * time.Minute, false}, {25 * time.Minute, false}, {-31 * time.Minute, true}, {31 * time.Minute, true}} {
		err := charges.Disagree(time.Now().Add(c.ahead))
		if (err != nil) != c.refused {
			t.Errorf("a database that is ahead by %s: %v, want refused %t", c.ahead, fmt.Sprint(err), c.refused)
		}
	}
}
