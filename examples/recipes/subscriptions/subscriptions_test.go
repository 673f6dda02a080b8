package subscriptions

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/value"
	"github.com/paghooks/paghooks/internal/testkit"
)

// newEvents makes the tables, with the subscription sub_1, and a dispatcher that copies charges.
func newEvents(ctx context.Context, pool *pgxpool.Pool) (*asaas.Dispatcher, error) {
	err := errors.Join(idem.Migrate(ctx, pool), charges.Migrate(ctx, pool), charges.Filled(ctx, pool, "", time.Time{}))
	for _, sql := range []string{Tables, `insert into subscriptions (id, member) values ('sub_1', 'ana') on conflict do nothing`} {
		_, failed := pool.Exec(ctx, sql)
		err = errors.Join(err, failed)
	}
	events := asaas.NewDispatcher("token")
	events.OnPayment(charges.Handler(nil))
	return events, err
}

// handle handles events in this order, each in a transaction of its own.
func handle(t *testing.T, pool *pgxpool.Pool, events *asaas.Dispatcher, bodies ...[]byte) {
	t.Helper()
	for _, body := range bodies {
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
			return idem.Dispatch(t.Context(), tx, events, asaas.Identify(body))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// renewals returns charges of the subscription that were due on these days of the year 2020.
func renewals(days ...asaas.Date) (out []*asaastest.Charge) {
	for i, c := range asaastest.NewSubscription(asaas.BillingTypeCreditCard, asaas.Cents(5990), len(days)) {
		due, err := days[i].Time()
		if err != nil {
			panic(err)
		}
		c.Now = due.AddDate(0, 0, -7).Add(9 * time.Hour)
		c.Payment.DateCreated, c.Payment.DueDate = asaas.Date(c.Now.Format(time.DateOnly)), days[i]
		c.Payment.Subscription = value.Of("sub_1")
		out = append(out, c)
	}
	return out
}

// show returns the subscription as one text: paid until, access until, owed since, disputed.
func show(ctx context.Context, pool *pgxpool.Pool) (string, error) {
	s, err := Find(ctx, pool, "", "sub_1")
	return fmt.Sprint(s.PaidUntil.Or("-"), " ", s.AccessUntil.Or("-"), " ", s.OwedSince.Or("-"), " ", s.Disputed), err
}

// step is an event, and the subscription after it.
type step struct {
	what string
	body []byte
	want string
}

// year is the story of a subscription.
func year() []step {
	c := renewals("2020-01-31", "2020-02-29", "2020-03-31", "2020-04-30")
	return []step{
		{"nothing is paid yet", c[0].Created(), "- - 2020-01-31 false"},
		{"January", c[0].Confirmed(), "2020-02-29 2020-03-05 - false"},
		{"February is made before it is due", c[1].Created(), "2020-02-29 2020-03-05 2020-02-29 false"},
		{"its card is refused: access goes on for the days of grace", c[1].CardRefused(), "2020-02-29 2020-03-05 2020-02-29 false"},
		{"it is overdue", c[1].Overdue(), "2020-02-29 2020-03-05 2020-02-29 false"},
		{"it is paid late: the cycle stays where it was", c[1].Confirmed(), "2020-03-29 2020-04-03 - false"},
		{"March", c[2].Created(), "2020-03-29 2020-04-03 2020-03-31 false"},
		{"March is paid", c[2].Confirmed(), "2020-04-30 2020-05-05 - false"},
		{"its chargeback ends the access", c[2].ChargebackRequested(), "2020-03-29 2020-04-03 - true"},
		{"a part of January is given back: it was used", c[0].PartiallyRefunded(asaas.Cents(1000)), "2020-03-29 2020-04-03 - true"},
		{"the evidence is in", c[2].ChargebackDispute(), "2020-03-29 2020-04-03 - true"},
		{"the chargeback is won", c[2].AwaitingChargebackReversal(), "2020-03-29 2020-04-03 - true"},
		{"its money comes again", c[2].Received(), "2020-04-30 2020-05-05 - false"},
		{"April is made", c[3].Created(), "2020-04-30 2020-05-05 2020-04-30 false"},
		{"the subscription is cancelled, and April with it", c[3].Deleted(), "2020-04-30 2020-05-05 - false"},
		{"March is given back", c[2].Refunded(), "2020-03-29 2020-04-03 - false"},
	}
}

func TestASubscriptionIsPaidUntilTheEndOfItsLastPaidCycle(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	events, err := newEvents(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range year() {
		handle(t, pool, events, s.body)
		if got, err := show(t.Context(), pool); err != nil || got != s.want {
			t.Errorf("%s: %s, %v; want %s", s.what, got, err, s.want)
		}
	}
}

func TestASubscriptionEndsTheSameInAnyOrderOfItsEvents(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	events, err := newEvents(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Random(t, testkit.Size(20, 300), func(r *rand.Rand) {
		testkit.Exec(t, pool, `delete from asaas_charges`)
		story := year()
		want := story[len(story)-1].want
		r.Shuffle(len(story), func(i, j int) { story[i], story[j] = story[j], story[i] })
		story = append(story, story[r.IntN(len(story))]) // one comes twice
		for _, s := range story {
			handle(t, pool, events, s.body)
		}
		if got, err := show(t.Context(), pool); err != nil || got != want {
			t.Errorf("%s, %v; want %s", got, err, want)
		}
	})
}

// Each documented life of a charge is the life of a renewal: its cycle is paid if something is paid in the end.
func TestEveryLifeOfARenewalEndsTheSameInAnyOrder(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	events, err := newEvents(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Random(t, testkit.Size(2, 15), func(r *rand.Rand) {
		for _, life := range asaastest.Lives("") {
			testkit.Exec(t, pool, `delete from asaas_charges`)
			due, err := life.Charge.Payment.DueDate.Time()
			if err != nil {
				t.Fatal(err)
			}
			want := "-"
			if life.Paid.Sign() > 0 {
				want = due.AddDate(0, 1, 0).Format(time.DateOnly)
			}
			r.Shuffle(len(life.Bodies), func(i, j int) { life.Bodies[i], life.Bodies[j] = life.Bodies[j], life.Bodies[i] })
			for _, body := range life.Bodies {
				handle(t, pool, events, ofSubscription(t, body))
			}
			s, err := Find(t.Context(), pool, "", "sub_1")
			if err != nil || string(s.PaidUntil.Or("-")) != want || s.Disputed != strings.Contains(string(life.Status), "CHARGEBACK") {
				t.Errorf("%s: %+v, %v; want it paid until %s", life.Name, s, err, want)
			}
		}
	})
}

// ofSubscription makes the charge of an event one of the subscription.
func ofSubscription(t *testing.T, body []byte) []byte {
	t.Helper()
	var event map[string]any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&event); err != nil {
		t.Fatal(err)
	}
	event["payment"].(map[string]any)["subscription"] = "sub_1"
	body, err := json.Marshal(event)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func TestASubscriptionThatIsNotThereIsAnError(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	if _, err := newEvents(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	s, err := Find(t.Context(), pool, "", "sub_2")
	if diff := cmp.Diff(Subscription{}, s); !errors.Is(err, pgx.ErrNoRows) || diff != "" {
		t.Error(err, diff)
	}
}
