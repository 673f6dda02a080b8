package idem_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

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
	switch r.Header.Get("token") {
	case "right":
	case "":
		return idem.Event{}, &idem.Refusal{Source: "notes", Reason: "missing_token", Hint: "send a token"}
	case "none":
		return idem.Event{}, &idem.Refusal{Source: "notes", Reason: idem.ReasonNotConfigured, Hint: "configure a token"}
	case "unsure":
		return idem.Event{}, fmt.Errorf("notes: the token cannot be looked up")
	default:
		return idem.Event{}, &idem.Refusal{Source: "notes", Reason: "wrong_token", Hint: "send the right token"}
	}
	body, err := idem.ReadBody(r)
	if err != nil {
		return idem.Event{}, err
	}
	e := identify(body)
	e.Scope = r.Header.Get("account")
	return e, nil
}

func identify(body []byte) idem.Event {
	n := new(note)
	e := idem.Event{Source: "notes", Payload: body}
	if json.Unmarshal(body, n) == nil {
		e.ID, e.Type, e.Key = n.ID, n.Type, n.Order
	}
	return e
}

// app is an application under test: a database of its own, a provider, a
// processor behind a server and, once newInbox has made one, an inbox.
type app struct {
	*testing.T
	pool      *pgxpool.Pool
	notes     *notes
	processor *idem.Processor
	inbox     *idem.Inbox
	url       string // of the processor, or of the inbox once there is one

	mu       sync.Mutex
	observed []idem.Observation
	log      strings.Builder
	worked   chan idem.Observation // attempts of workers
}

func newApp(t *testing.T) *app {
	t.Helper()
	return openApp(t, idemtest.Pool(t))
}

func openApp(t *testing.T, pool *pgxpool.Pool) *app {
	t.Helper()
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("IDEM_TEST_PARTITIONED") == "1" {
		partition(t, pool)
	}
	// The rows that keep the planner from thinking that the table is empty are of no interest to tests that count.
	_, err := pool.Exec(t.Context(), `delete from idem_payloads where source = '';
		create table if not exists effects (event text not null, scope text not null default '')`)
	if err != nil {
		t.Fatal(err)
	}
	s := &app{T: t, pool: pool, notes: &notes{}, worked: make(chan idem.Observation, 10_000)}
	s.processor = s.newProcessor()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		p := s.processor
		s.mu.Unlock()
		p.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// newProcessor is another processor on the same database and handlers: what
// another process would be.
func (s *app) newProcessor() *idem.Processor {
	p := idem.NewProcessor(s.pool, s.notes)
	p.Observe, p.Logger = s.observe, s.logger()
	return p
}

func (s *app) observe(_ context.Context, o idem.Observation) {
	s.mu.Lock()
	s.observed = append(s.observed, o)
	s.mu.Unlock()
	if o.Stage == idem.StageAttempt {
		s.worked <- o
	}
}

func (s *app) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(lockedWriter{&s.mu, &s.log}, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// deploy replaces the handlers, as a new version of the application would.
func (s *app) deploy(register func(*notes)) {
	s.notes = &notes{}
	register(s.notes)
	p := s.newProcessor()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processor = p
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// on registers a handler for type "paid".
func (s *app) on(h idem.Handler[*note]) { idem.Handle(&s.notes.Routes, "paid", h) }

// pay is the handler that a user would write: one effect in the transaction.
func pay(ctx context.Context, tx pgx.Tx, n *note) error {
	e, _ := idem.EventFrom(ctx)
	_, err := tx.Exec(ctx, `insert into effects (event, scope) values ($1, $2)`, n.ID, e.Scope)
	return err
}

func paid(id string) string { return fmt.Sprintf(`{"id":%q,"type":"paid","order":"o1"}`, id) }

// deliver posts a body as the provider does, and returns what it is answered.
func (s *app) deliver(body string) (status int, answer string) {
	s.Helper()
	status, answer, err := s.post(s.Context(), body, nil)
	if err != nil {
		s.Fatal(err)
	}
	return status, answer
}

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
	if status, answer := s.deliver(body); status != want {
		s.Errorf("the delivery was answered %d %s, want %d\n%s", status, answer, want, s.logged())
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

// wantPayload checks whether the body of an event is stored.
func (s *app) wantPayload(id string, want string) {
	s.Helper()
	got := queryOne[[]byte](s, `select coalesce((select body from (select event, body from idem_payloads union all select event, body from idem_archive) p where event like '%/' || $1), '')`, id)
	if string(got) != want {
		s.Errorf("the payload of %s is stored as %q, want %q", id, got, want)
	}
}

func queryOne[V any](s *app, sql string, args ...any) V {
	s.Helper()
	var v V
	if err := s.pool.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		s.Fatal(err)
	}
	return v
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

func (s *app) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}
