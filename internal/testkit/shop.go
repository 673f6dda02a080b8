package testkit

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
)

// Shop is an application under test: tables of its own with the effects of its handlers, a provider named notes, and
// what its receivers observe and log.
type Shop struct {
	testing.TB
	Pool  *pgxpool.Pool
	Notes *Source

	mu       sync.Mutex
	observed []idem.Observation
	log      strings.Builder
}

// NewShop returns a shop without handlers.
func NewShop(t testing.TB) *Shop {
	t.Helper()
	s := &Shop{TB: t, Pool: Open(t), Notes: NewSource("notes")}
	// The rows that keep the planner from thinking that the table is empty are of no interest to tests that count.
	s.Exec(`delete from idem_payloads where source = ''; create table effects (event text not null, scope text not null)`)
	return s
}

// On registers a handler of paid notes.
func (s *Shop) On(h idem.Handler[*Note]) { idem.Handle(&s.Notes.Routes, "paid", h) }

// Pay is a handler with one effect.
func Pay(ctx context.Context, tx pgx.Tx, n *Note) error {
	e, _ := idem.EventFrom(ctx)
	_, err := tx.Exec(ctx, `insert into effects (event, scope) values ($1, $2)`, n.ID, e.Scope)
	return err
}

// Paid returns the body of a paid note of the order o1.
func Paid(id string) string { return fmt.Sprintf(`{"id":%q,"type":"paid","order":"o1"}`, id) }

// Observe records an observation.
func (s *Shop) Observe(_ context.Context, o idem.Observation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observed = append(s.observed, o)
}

// Outcomes returns the observed outcomes, in order.
func (s *Shop) Outcomes() (all []idem.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.observed {
		all = append(all, o.Outcome)
	}
	return all
}

// Attempts returns the number of the workers' attempts.
func (s *Shop) Attempts() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.observed {
		if o.Stage == idem.StageAttempt {
			n++
		}
	}
	return n
}

// Logger returns a logger to the shop's log.
func (s *Shop) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Write writes to the log.
func (s *Shop) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

// Logged returns the log.
func (s *Shop) Logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// Post delivers a body as the provider does, with the right token unless header has another one.
func Post(ctx context.Context, url, body string, header map[string]string) (status int, answer string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("token", "right")
	for k, v := range header {
		r.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(said), err
}

// Exec executes SQL.
func (s *Shop) Exec(sql string, args ...any) {
	s.Helper()
	Exec(s, s.Pool, sql, args...)
}

// WantEffects checks the number of effects.
func (s *Shop) WantEffects(want int) {
	s.Helper()
	if got := QueryOne[int](s, s.Pool, `select count(*) from effects`); got != want {
		s.Errorf("the database holds %d effects, want %d", got, want)
	}
}

// WantState checks the state of a stored event; "" means that there is none.
func (s *Shop) WantState(id string, want idem.State) {
	s.Helper()
	got := QueryOne[idem.State](s, s.Pool, `select coalesce((select state from idem_events where event like '%/' || $1), '')`, id)
	if got != want {
		s.Errorf("event %s is stored as %q, want %q", id, got, want)
	}
}

// QueryOne returns the only value of a query.
func QueryOne[V any](t testing.TB, pool *pgxpool.Pool, sql string, args ...any) (v V) {
	t.Helper()
	if err := pool.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
