//go:build long

package console_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/oncall/console"
)

// swallowing is a connection to a server that is stopped, or over a network that forgets: nothing
// that is sent arrives, and nothing comes back.
type swallowing struct {
	net.Conn
	hangs *atomic.Bool
}

func (s swallowing) Write(p []byte) (int, error) {
	if s.hangs.Load() {
		return len(p), nil
	}
	return s.Conn.Write(p)
}

// soon is how long a page may take while Postgres does not answer.
const soon = 15 * time.Second

func TestEachPageAnswersInSecondsWhilePostgresHangsAndNamesNoServer(t *testing.T) {
	t.Parallel()
	for how, hang := range map[string]func(*testing.T, *pgxpool.Pool, *server){
		"the network swallows everything": func(_ *testing.T, _ *pgxpool.Pool, s *server) { s.swallows.Store(true) },
		"nobody listens any more": func(_ *testing.T, pool *pgxpool.Pool, s *server) {
			s.gone.Store(true)
			pool.Reset()
		},
		tablesAreLocked: func(t *testing.T, pool *pgxpool.Pool, _ *server) {
			tx, err := pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
			if _, err := tx.Exec(t.Context(), `lock table idem_events, idem_payloads, idem_archive, idem_workers, idem_audit, idem_audit_events`); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			answersInSeconds(t, idemtest.URL(t), how, hang)
		})
	}
}

// tablesAreLocked is the way in which Postgres answers, but not what pages ask.
const tablesAreLocked = "the tables are locked"

// server is the way to a server.
type server struct{ swallows, gone atomic.Bool }

// answersInSeconds checks that each page, and health, answer while Postgres hangs, and name no server.
func answersInSeconds(t *testing.T, url, how string, hang func(*testing.T, *pgxpool.Pool, *server)) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	var way server
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if way.gone.Load() {
			return nil, &net.OpError{Op: "dial", Net: network, Err: fmt.Errorf("connection to %s refused", address)}
		}
		conn, err := dial(ctx, network, address)
		return swallowing{conn, &way.swallows}, err
	}
	config.MaxConns = 20
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	a := openApp(t, pool)
	a.letters("bad-1")
	a.page = console.New(a.inbox, a.first)
	var mu sync.Mutex
	var log bytes.Buffer
	a.page.Logger = slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, nil))
	a.page.Access = func(*http.Request) (string, console.Access) { return "ana", console.Access{See: true} }
	t.Cleanup(a.page.Close)

	hang(t, pool, &way)
	c := config.ConnConfig
	secrets := []string{c.Host, fmt.Sprint(c.Port), "user=", "database=", c.RuntimeParams["search_path"], "dial"}
	noServer := func(address, said string) {
		for _, secret := range secrets {
			if secret != "" && strings.Contains(said, secret) {
				t.Errorf("%q: it names %q:\n%s", address, secret, said)
			}
		}
	}
	var requests sync.WaitGroup
	for _, address := range []string{
		"/", "/events?source=letters", "/event?source=letters&id=bad-1", "/entity?source=letters&key=order-bad-1", "/find?source=letters&q=bad-1",
		"/conflicts?source=letters", "/blocked?source=letters", "/trail?source=letters", "/action?source=letters&id=1", "/queues",
	} {
		requests.Go(func() {
			w, start := httptest.NewRecorder(), time.Now()
			a.page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, address, nil))
			if d := time.Since(start); d > soon {
				t.Errorf("%q took %s", address, d)
			}
			if isStatic := address == "/" || address == "/queues"; w.Code != http.StatusServiceUnavailable && !isStatic ||
				!isStatic && !strings.Contains(w.Body.String(), "Postgres does not answer in time") {
				t.Errorf("%q is answered %d: %s", address, w.Code, w.Body)
			}
			noServer(address, w.Body.String())
		})
	}
	requests.Go(func() {
		h := health.New(a.inbox, a.first)
		h.Logger = a.page.Logger
		w, start := httptest.NewRecorder(), time.Now()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/health", nil))
		if d := time.Since(start); d > soon {
			t.Errorf("health took %s", d)
		}
		if how != tablesAreLocked && w.Code != http.StatusServiceUnavailable {
			t.Errorf("health is answered %d: %s", w.Code, w.Body)
		}
		noServer("health", w.Body.String())
	})
	requests.Wait()
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(log.String(), "a page of the console failed") {
		t.Error("the log does not say why")
	}
}

// lockedWriter is a buffer that several goroutines write to.
type lockedWriter struct {
	mu *sync.Mutex
	w  *bytes.Buffer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
