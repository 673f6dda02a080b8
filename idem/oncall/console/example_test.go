package console_test

import (
	"context"
	"crypto/subtle"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/oncall/console"
)

// The page behind a user name and a password, on its own path. Ana may act; others
// may only see.
func Example() {
	ctx := context.Background()
	pool, closePool := database(ctx)
	defer closePool()
	processor := idem.NewProcessor(pool, asaas.NewDispatcher("a-token-of-32-characters-or-more"))
	processor.Logger = slog.New(slog.DiscardHandler)

	passwords := map[string]string{"ana": "a-long-password", "bob": "another-long-password"} // from the environment
	page := console.New(processor)
	defer page.Close()
	page.Access = func(r *http.Request) (string, console.Access) {
		user, password, _ := r.BasicAuth()
		want := passwords[user]
		known := want != "" && subtle.ConstantTimeCompare([]byte(password), []byte(want)) == 1
		return user, console.Access{See: known, Reveal: known && user == "ana", Act: known && user == "ana"}
	}
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks/asaas", processor)
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
