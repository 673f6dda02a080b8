package once

import (
	"context"
	"errors"
	"net/http"
	"slices"
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
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/testkit"
)

// newShop returns a pool with order-7, which is not charged yet, and an Asaas.
func newShop(t *testing.T) (*pgxpool.Pool, *asaastest.Fake) {
	t.Helper()
	pool, fake := idemtest.Pool(t), asaastest.New()
	t.Cleanup(fake.Close)
	err := errors.Join(idem.Migrate(t.Context(), pool), charges.Migrate(t.Context(), pool), charges.Filled(t.Context(), pool, "", time.Time{}))
	if err != nil {
		t.Fatal(err)
	}
	testkit.Exec(t, pool, Orders)
	testkit.Exec(t, pool, `insert into orders (id, customer, total, due) values ('order-7', 'cus_1', 59.90, '2026-08-20')`)
	return pool, fake
}

func chargesAt(t *testing.T, fake *asaastest.Fake) []string {
	t.Helper()
	page, err := fake.Client().Payments(t.Context(), asaas.PaymentFilter{ExternalReference: "order-7"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, p := range page.Data.Or(nil) {
		ids = append(ids, p.ID)
	}
	return ids
}

// minutesLater has Pause be over.
func minutesLater(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	testkit.Exec(t, pool, `update orders set asked = asked - $1::interval - interval '1 second'`, Pause)
}

func TestAnOrderHasOneChargeWhateverGoesWrong(t *testing.T) {
	t.Parallel()
	refusedDial := func(w http.ResponseWriter, r *http.Request, api http.Handler) { asaastest.APIStatus(429)(w, r, api) }
	for _, tt := range []struct {
		reason string
		faults []asaastest.APIFault // of the look, and of the request to make it
		asked  bool                 // it may have been made
	}{
		{"nothing", nil, false},
		{"the answer is lost after Asaas has made it", []asaastest.APIFault{nil, asaastest.APILostAnswer}, true},
		{"the answer is cut", []asaastest.APIFault{nil, asaastest.APICutJSON}, true},
		{"the connection is reset before", []asaastest.APIFault{nil, asaastest.APIReset}, true},
		{"a proxy answers", []asaastest.APIFault{nil, asaastest.APIPage(502)}, true},
		{"Asaas is in trouble", []asaastest.APIFault{nil, asaastest.APIStatus(500)}, true},
		{"too many requests", []asaastest.APIFault{nil, refusedDial}, false},
		{"the key lacks the permission", []asaastest.APIFault{nil, asaastest.APIForbidden}, false},
		{"the look fails", []asaastest.APIFault{asaastest.APIForbidden}, false},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			pool, fake := newShop(t)
			fake.InjectAPI(tt.faults...)
			id, err := Charge(t.Context(), pool, fake.Client(), "order-7")
			if tt.faults == nil && err != nil || tt.faults != nil && err == nil || errors.Is(err, ErrAsked) != tt.asked {
				t.Fatalf("%s, %v", id, err)
			}
			if tt.asked {
				if _, err := Charge(t.Context(), pool, fake.Client(), "order-7"); !errors.Is(err, ErrAsked) {
					t.Errorf("too soon: %v", err)
				}
				minutesLater(t, pool)
				if open, err := Uncharged(t.Context(), pool); err != nil || !slices.Equal(open, []string{"order-7"}) {
					t.Errorf("%v, %v", open, err)
				}
			}
			for range 2 { // the second finds it in the shop's own table
				if id, err = Charge(t.Context(), pool, fake.Client(), "order-7"); err != nil {
					t.Fatal(err)
				}
			}
			if made := chargesAt(t, fake); !slices.Equal(made, []string{id}) {
				t.Errorf("%v were made, want %s", made, id)
			}
		})
	}
}

// The caller's time is over while Asaas works.
func TestATimeOutAfterAsaasHasMadeTheCharge(t *testing.T) {
	t.Parallel()
	pool, fake := newShop(t)
	ctx, cancel := context.WithCancel(t.Context())
	fake.InjectAPI(nil, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		api.ServeHTTP(w, r)
		cancel()
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	})
	if _, err := Charge(ctx, pool, fake.Client(), "order-7"); !errors.Is(err, ErrAsked) || !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	minutesLater(t, pool)
	id, err := Charge(t.Context(), pool, fake.Client(), "order-7")
	if made := chargesAt(t, fake); err != nil || !slices.Equal(made, []string{id}) {
		t.Errorf("%v were made, want %s; %v", made, id, err)
	}
}

func TestManyProcessesMakeOneCharge(t *testing.T) {
	t.Parallel()
	pool, fake := newShop(t)
	client := fake.Client()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			if _, err := Charge(t.Context(), pool, client, "order-7"); err != nil && !errors.Is(err, ErrAsked) {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if made := chargesAt(t, fake); len(made) != 1 {
		t.Errorf("%v were made", made)
	}
}

// Asaas's list does not show the charge yet, and its event has come.
func TestAChargeThatAnEventBringsIsTheOrders(t *testing.T) {
	t.Parallel()
	pool, fake := newShop(t)
	events := asaas.NewDispatcher("token")
	events.OnPayment(charges.Handler(nil))
	inbox := idem.NewInbox(pool, events)
	inbox.Logger = testkit.NoWarnings(t)
	fake.AddWebhook(asaastest.Webhook{Handler: inbox, Token: "token"})
	fake.InjectAPI(nil, asaastest.APILostAnswer)
	if _, err := Charge(t.Context(), pool, fake.Client(), "order-7"); !errors.Is(err, ErrAsked) {
		t.Fatal(err)
	}
	fake.Settle()
	if err := inbox.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	fake.InjectAPI(asaastest.APIForbidden) // it is not asked
	id, err := Charge(t.Context(), pool, fake.Client(), "order-7")
	if err != nil || id == "" {
		t.Error(id, err)
	}
}

func TestAChargeOfAnotherAmountIsNotTaken(t *testing.T) {
	t.Parallel()
	pool, fake := newShop(t)
	if _, err := Charge(t.Context(), pool, fake.Client(), "order-7"); err != nil {
		t.Fatal(err)
	}
	testkit.Exec(t, pool, `update orders set charge = null, asked = null, total = 69.90`)
	if _, err := Charge(t.Context(), pool, fake.Client(), "order-7"); err == nil || !strings.Contains(err.Error(), "is 69.90, and its charge") {
		t.Error(err)
	}
	if _, err := Charge(t.Context(), pool, fake.Client(), "order-8"); err == nil || !strings.Contains(err.Error(), "store it before") || errors.Is(err, pgx.ErrNoRows) {
		t.Error(err)
	}
}
