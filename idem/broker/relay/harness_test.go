package relay_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// patience is a last resort: what is awaited comes much earlier, or never.
const patience = time.Minute

// note is the one event type of the provider that these tests invent.
type note struct {
	ID    string `json:"id"`
	Type  string `json:"type"`
	Order string `json:"order"`
}

// notes is a provider: its token is "right", and its account is in the header.
type notes struct{ idem.Routes }

func (*notes) Name() string { return "notes" }

func (*notes) Open(r *http.Request) (idem.Event, error) {
	if r.Header.Get("token") != "right" {
		return idem.Event{}, &idem.Refusal{Source: "notes", Reason: "wrong_token", Hint: "send the right token"}
	}
	body, err := idem.ReadBody(r)
	n := new(note)
	e := idem.Event{Source: "notes", Scope: r.Header.Get("account"), Payload: body}
	if json.Unmarshal(body, n) == nil {
		e.ID, e.Type, e.Key = n.ID, n.Type, n.Order
	}
	return e, err
}

func paid(id string) string { return fmt.Sprintf(`{"id":%q,"type":"paid","order":"o1"}`, id) }

// pay has one effect in the transaction.
func pay(ctx context.Context, tx pgx.Tx, n *note) error {
	e, _ := idem.EventFrom(ctx)
	_, err := tx.Exec(ctx, `insert into effects (event, scope) values ($1, $2)`, n.ID, e.Scope)
	return err
}

// fakeBroker notes what is published.
type fakeBroker struct {
	mu        sync.Mutex
	published []broker.Message
}

func (b *fakeBroker) Publish(_ context.Context, m broker.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.published = append(b.published, m)
	return nil
}

// app is an application under test: a database of its own, a provider, and receivers of
// what a relay published.
type app struct {
	*testing.T
	pool      *pgxpool.Pool
	notes     *notes
	processor *idem.Processor
	inbox     *idem.Inbox
	url       string // of the relay

	mu       sync.Mutex
	observed []idem.Observation
	log      strings.Builder
}

func newApp(t *testing.T) *app {
	t.Helper()
	s := &app{T: t, pool: idemtest.Pool(t), notes: &notes{}}
	if err := idem.Migrate(t.Context(), s.pool); err != nil {
		t.Fatal(err)
	}
	// The rows that keep the planner from thinking that the table is empty are of no interest to tests that count.
	s.exec(`delete from idem_payloads where source = ''; create table effects (event text not null, scope text not null)`)
	s.processor, s.inbox = idem.NewProcessor(s.pool, s.notes), idem.NewInbox(s.pool, s.notes)
	s.inbox.Backoff = func(int) time.Duration { return 0 }
	for _, c := range []*idem.Common{&s.processor.Common, &s.inbox.Common} {
		c.Observe, c.Logger = s.observe, s.logger()
	}
	return s
}

// on registers a handler for type "paid".
func (s *app) on(h idem.Handler[*note]) { idem.Handle(&s.notes.Routes, "paid", h) }

func (s *app) observe(_ context.Context, o idem.Observation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observed = append(s.observed, o)
}

// outcomes are what the observer was told, in order.
func (s *app) outcomes() []idem.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []idem.Outcome
	for _, o := range s.observed {
		all = append(all, o.Outcome)
	}
	return all
}

// attempts counts those of the workers.
func (s *app) attempts() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.observed {
		if o.Stage == idem.StageAttempt {
			n++
		}
	}
	return n
}

func (s *app) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Write writes to the log.
func (s *app) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

func (s *app) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// post posts a body as the provider does.
func (s *app) post(ctx context.Context, body string, header map[string]string) (int, string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, strings.NewReader(body))
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
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer), err
}

// wantAnswer delivers a body and checks the status.
func (s *app) wantAnswer(body string, want int) {
	s.Helper()
	status, answer, err := s.post(s.Context(), body, nil)
	if err != nil {
		s.Fatal(err)
	}
	if status != want {
		s.Errorf("the delivery was answered %d %s, want %d\n%s", status, answer, want, s.logged())
	}
}

// drain has the inbox process what is due, and checks how many attempts that took.
func (s *app) drain(want int) {
	s.Helper()
	before := s.attempts()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	if err := s.inbox.Drain(ctx); err != nil {
		s.Fatalf("Drain = %v\n%s", err, s.logged())
	}
	if got := s.attempts() - before; got != want {
		s.Errorf("the workers made %d attempts, want %d\n%s", got, want, s.logged())
	}
}

// wantEffects checks how often the handlers' work is in the database.
func (s *app) wantEffects(want int) {
	s.Helper()
	if got := queryOne[int](s, `select count(*) from effects`); got != want {
		s.Errorf("the database holds %d effects, want %d", got, want)
	}
}

// wantState checks what is stored of an event; "" means nothing is.
func (s *app) wantState(id string, want idem.State) {
	s.Helper()
	got := queryOne[string](s, `select coalesce((select state from idem_events where event like '%/' || $1), '')`, id)
	if got != string(want) {
		s.Errorf("event %s is stored as %q, want %q", id, got, want)
	}
}

// listed returns the stored events that f chooses.
func (s *app) listed(f idem.Filter) (found []idem.StoredEvent) {
	s.Helper()
	for e, err := range s.inbox.List(s.Context(), f) {
		if err != nil {
			s.Fatal(err)
		}
		found = append(found, e)
	}
	return found
}

func (s *app) exec(sql string) {
	s.Helper()
	if _, err := s.pool.Exec(s.Context(), sql); err != nil {
		s.Fatal(err)
	}
}

func queryOne[V any](s *app, sql string, args ...any) (v V) {
	s.Helper()
	if err := s.pool.QueryRow(s.Context(), sql, args...).Scan(&v); err != nil {
		s.Fatal(err)
	}
	return v
}

// wantStates counts all stored events by state.
func (s *app) wantStates(want map[idem.State]int) {
	s.Helper()
	got := queryOne[map[idem.State]int](s, `select coalesce(jsonb_object_agg(state, n), '{}') from (select state, count(*) as n from idem_events group by state) c`)
	if diff := cmp.Diff(want, got); diff != "" {
		s.Error("events by state (-want +got):\n" + diff)
	}
}
