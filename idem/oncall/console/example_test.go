package console_test

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/oncall/console"
)

// The page behind a user name and a password, on its own path. Ana may act; others
// may only see.
func Example() {
	ctx := context.Background()
	pool, closePool := database(ctx)
	defer closePool()
	inbox := idem.NewInbox(pool, asaas.NewDispatcher("a-token-of-32-characters-or-more"))
	inbox.Logger = slog.New(slog.DiscardHandler)

	passwords := map[string]string{"ana": "a-long-password", "bob": "another-long-password"} // from the environment
	page := console.New(inbox)
	defer page.Close()
	page.Access = func(r *http.Request) (string, console.Access) {
		user, password, _ := r.BasicAuth()
		want := passwords[user]
		known := want != "" && subtle.ConstantTimeCompare([]byte(password), []byte(want)) == 1
		return user, console.Access{See: known, Reveal: known && user == "ana", Act: known && user == "ana"}
	}
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks/asaas", inbox)
	mux.Handle("/ops/", askForPassword(page))
	server := httptest.NewServer(mux)
	defer server.Close()

	get := func(user string) {
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/ops/", nil)
		r.SetBasicAuth(user, passwords[user])
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			log.Print(err)
			return
		}
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		fmt.Println(user, resp.StatusCode, "read-only:", strings.Contains(string(text), "read-only"))
	}
	get("ana")
	get("bob")
	get("eve")
	// Output:
	// ana 200 read-only: false
	// bob 200 read-only: true
	// eve 401 read-only: false
}

// The merchant's office: the charges of a customer, and paid charges that match no order.
func ExampleHandler_charges() {
	ctx := context.Background()
	pool, closePool := database(ctx)
	defer closePool()
	events := asaas.NewDispatcher("a-token-of-32-characters-or-more")
	events.OnPayment(charges.Handler(func(context.Context, pgx.Tx, charges.Change) error { return nil }))
	inbox := idem.NewInbox(pool, events)
	inbox.Logger = slog.New(slog.DiscardHandler)
	pix := asaastest.NewCharge(asaas.BillingTypePix, asaas.Cents(10000))
	pix.Payment.ID, pix.Payment.Customer = "pay_7", "cus_7"
	_, err := pool.Exec(ctx, `create table orders (id text primary key)`)
	err = errors.Join(err, charges.Migrate(ctx, pool), charges.Filled(ctx, pool, "", time.Time{})) // a shop without earlier charges
	for _, body := range [][]byte{pix.Created(), pix.Received()} {
		_, failure := inbox.Accept(ctx, asaas.Identify(body))
		err = errors.Join(err, failure)
	}
	err = errors.Join(err, inbox.Drain(ctx)) // as workers do
	if err != nil {
		log.Print(err)
		return
	}

	page := console.New(inbox)
	defer page.Close()
	page.Access = func(*http.Request) (string, console.Access) { return "ana", console.Access{See: true} } // your login
	shown := func(found []charges.Charge, err error) (all []console.Charge, _ error) {
		for _, c := range found {
			all = append(all, console.Charge{Source: "asaas", Account: c.Scope, ID: c.ID, Reference: c.ExternalReference.OrZero(), Paid: c.Paid.String(), At: c.At})
		}
		return all, err
	}
	unmatched := &charges.Unmatched{DB: pool, Known: `exists (select from orders o where o.id = c.external_reference)`}
	page.Health = health.New(inbox, unmatched)
	page.Unmatched = func(ctx context.Context, n int) ([]console.Charge, error) { return shown(unmatched.List(ctx, n)) }
	page.Charges = func(ctx context.Context, name string, n int) ([]console.Charge, error) {
		return shown(charges.Find(ctx, pool, name, n))
	}

	for _, address := range []string{"/ops/find?q=cus_7", "/ops/unmatched"} {
		answer := httptest.NewRecorder()
		page.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, address, nil))
		fmt.Println(address, answer.Code, "pay_7:", strings.Contains(answer.Body.String(), "entity=pay_7&amp;source=asaas"))
	}
	// Output:
	// /ops/find?q=cus_7 200 pay_7: true
	// /ops/unmatched 200 pay_7: true
}

// askForPassword has browsers ask for a name and a password where there is none.
// Who they are and what they may do is decided by Access.
func askForPassword(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, ok := r.BasicAuth(); !ok || password == "" {
			w.Header().Set("WWW-Authenticate", `Basic realm="webhooks"`)
			http.Error(w, "give a user name and a password", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// database returns a pool on a fresh schema with the tables of idem, and what
// ends it.
func database(ctx context.Context) (*pgxpool.Pool, func()) {
	server, err := idemtest.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	pool, err := pgxpool.New(ctx, server.URL())
	if err != nil {
		log.Fatal(err)
	}
	if err := idem.Migrate(ctx, pool); err != nil {
		log.Fatal(err)
	}
	return pool, func() {
		pool.Close()
		if err := server.Close(); err != nil {
			log.Fatal(err)
		}
	}
}
