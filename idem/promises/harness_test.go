package promises_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/inside"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // unless -parallel says something else: tests mostly wait
	os.Exit(m.Run())
}

// note is the one event type of the provider that these tests invent.
type note = testkit.Note

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

// engine is the inside of a receiver, which other packages of this project use.
type engine interface {
	Pool() *pgxpool.Pool
	Choose(ctx context.Context, f idem.Filter) (idem.Filter, error)
	Replay(ctx context.Context, f idem.Filter, dry bool, ran func(sum idem.Replayed, e idem.Event, failure error)) (idem.Replayed, error)
	Discard(ctx context.Context, f idem.Filter, reason string, changed func(context.Context, pgx.Tx, []string) error) (int64, error)
	DryPrune(ctx context.Context) (int64, error)
}

// requeuer is the inside of an inbox.
type requeuer interface {
	Requeue(ctx context.Context, f idem.Filter, changed func(context.Context, pgx.Tx, []string) error) (int64, error)
}

// writer is the inside of an inbox.
type writer interface {
	Waiting() int // the number of deliveries that wait to be stored
}

func engineOf(r idem.Receiver) engine { return inside.Of[engine](r) }

// app is an application under test: a database of its own, a provider, a
// inbox that works first behind a server and, once newInbox has made one, another that answers first.
type app struct {
	*testing.T
	pool  *pgxpool.Pool
	notes *notes
	first *idem.Inbox
	inbox *idem.Inbox
	url   string // of first, or of inbox once there is one

	mu       sync.Mutex
	observed []idem.Observation
	log      strings.Builder
	worked   chan idem.Observation // attempts of workers
}

// newFirst is another inbox that works first, on the same database and handlers: what
// another process would be.
func (s *app) newFirst() *idem.Inbox {
	p := newFirst(s.pool, s.notes)
	p.Observe, p.Logger = s.observe, s.logger()
	return p
}

// nowhere is a pool of a database that does not exist, for deliveries that must not come to it.
var nowhere = func() *pgxpool.Pool {
	pool, err := pgxpool.New(context.Background(), "postgres://nobody@127.0.0.1:1/none")
	if err != nil {
		panic(err)
	}
	return pool
}()

// newFirst is an inbox that works first, without workers: what it cannot do is delivered again.
func newFirst(pool *pgxpool.Pool, source idem.Source) *idem.Inbox {
	i := idem.NewInbox(pool, source)
	i.WorkFirst = true
	return i
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
	p := s.newFirst()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = p
}

// on registers a handler for type "paid".
func (s *app) on(h idem.Handler[*note]) { idem.Handle(&s.notes.Routes, "paid", h) }

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
	return testkit.Post(ctx, s.url, body, header)
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

// openInbox opens an inbox beside first, on the same database and
// handlers, whose workers try nothing twice by themselves.
func (s *app) openInbox() *app {
	s.inbox = s.newInbox(s.pool)
	s.inbox.Backoff = func(int) time.Duration { return time.Hour }
	return s
}

func (s *app) exec(sql string) {
	s.Helper()
	testkit.Exec(s, s.pool, sql)
}

// session opens a session beside the pool, which lasts until the end of the test, and executes
// statements in it.
func (s *app) session(sql string) *pgx.Conn {
	s.Helper()
	conn, err := pgx.ConnectConfig(s.Context(), s.pool.Config().ConnConfig)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(s.Context(), sql); err != nil {
		s.Fatal(err)
	}
	return conn
}

// await asks Postgres a question until the answer is yes.
func (s *app) await(ctx context.Context, question string, args ...any) error {
	for yes := false; !yes; {
		if err := s.pool.QueryRow(ctx, question, args...).Scan(&yes); err != nil {
			return err
		}
		pause()
	}
	return nil
}

// startDelivery delivers e1, whose handler goes on once something waits for a lock. It returns when the handler runs;
// delivered waits for the answer.
func (s *app) startDelivery() (delivered func()) {
	return s.startDeliveryUntil(func(ctx context.Context) error { return s.await(ctx, blocked) })
}

// startDeliveryUntil is startDelivery with a handler that goes on once until returns.
func (s *app) startDeliveryUntil(until func(context.Context) error) (delivered func()) {
	entered := make(chan struct{})
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		close(entered) // panics in a second run
		if err := until(ctx); err != nil {
			return err
		}
		return pay(ctx, tx, n)
	})
	var delivery sync.WaitGroup
	delivery.Go(func() { s.wantAnswer(paid("e1"), http.StatusOK) })
	<-entered
	return delivery.Wait
}

// listed are the events that List yields.
func (s *app) listed(f idem.Filter) []idem.StoredEvent {
	s.Helper()
	var all []idem.StoredEvent
	for stored, err := range s.first.List(s.Context(), f) {
		if err != nil {
			s.Fatal(err)
		}
		all = append(all, stored)
	}
	return all
}

// contents is all that the tables hold.
func (s *app) contents() []string {
	s.Helper()
	return queryOne[[]string](s, `select coalesce(array_agg(line order by line), '{}') from (
		select 'event ' || e::text as line from idem_events e union all
		select 'payload ' || p::text from idem_payloads p where source <> '' union all
		select 'archive ' || a::text from idem_archive a union all
		select 'effect ' || f::text from effects f) tables`)
}

func (s *app) wantContents(want []string) {
	s.Helper()
	if diff := cmp.Diff(want, s.contents()); diff != "" {
		s.Error("the tables have changed (-want +got):\n" + diff)
	}
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

func queryOne[V any](s *app, sql string, args ...any) V {
	s.Helper()
	return testkit.QueryOne[V](s, s.pool, sql, args...)
}

// blocked asks whether a session of the app waits for a lock.
const blocked = `select exists (select from pg_stat_activity
	where application_name = current_setting('application_name') and wait_event_type = 'Lock')`

// pay is the handler that a user would write: one effect in the transaction.
func pay(ctx context.Context, tx pgx.Tx, n *note) error { return testkit.Pay(ctx, tx, n) }

func paid(id string) string { return testkit.Paid(id) }

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
	s.first = s.newFirst()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		p := s.first
		s.mu.Unlock()
		p.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// emptied is the app for a test within the one that has made it, with empty tables: a schema costs as much as ten
// deliveries.
func (s *app) emptied(t *testing.T) *app {
	t.Helper()
	inner := &app{T: t, pool: s.pool, notes: s.notes, first: s.first, inbox: s.inbox, url: s.url, worked: s.worked}
	inner.exec(`truncate idem_events, idem_payloads, idem_archive, idem_pauses, effects restart identity`)
	return inner
}

func in(scope string, e idem.Event) idem.Event {
	e.Scope = scope
	return e
}

// refuseBad is a handler that cannot do the events whose id begins with bad.
func refuseBad(ctx context.Context, tx pgx.Tx, n *note) error {
	if strings.HasPrefix(n.ID, "bad") {
		return idem.NoRetry(errors.New("no such order"))
	}
	return pay(ctx, tx, n)
}

// payAndFail is a handler that fails after its work.
func payAndFail(ctx context.Context, tx pgx.Tx, n *note) error {
	if err := pay(ctx, tx, n); err != nil {
		return err
	}
	return errors.New("no such order")
}

// fixable is a handler that cannot do what is bad until it is fixed, and what it
// has done.
type fixable struct {
	fixed atomic.Bool

	mu   sync.Mutex
	done []string
}

func (f *fixable) handle(ctx context.Context, tx pgx.Tx, n *note) error {
	if !f.fixed.Load() {
		return refuseBad(ctx, tx, n)
	}
	idem.AfterCommit(ctx, func(context.Context) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.done = append(f.done, n.ID)
	})
	return pay(ctx, tx, n)
}

func (f *fixable) wantDone(t *testing.T, want ...string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if diff := cmp.Diff(want, f.done); diff != "" {
		t.Error("done (-want +got):\n" + diff)
	}
}

func ids(events []idem.StoredEvent) []string {
	var all []string
	for _, s := range events {
		all = append(all, strings.TrimPrefix(s.Scope+" "+s.ID, " "))
	}
	return all
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// inTx executes batches in its transaction also when they have their own.
type inTx struct{ pgx.Tx }

func (tx inTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	b.QueuedQueries = slices.DeleteFunc(b.QueuedQueries, func(q *pgx.QueuedQuery) bool {
		return strings.HasPrefix(q.SQL, "begin") || q.SQL == "commit"
	})
	return tx.Tx.SendBatch(ctx, b)
}
