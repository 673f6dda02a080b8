package testkit

import (
	"context"
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

// Shop is an application under test: a database of its own, a provider, an inbox that works first behind a server and,
// once [Shop.OpenInbox] or [OpenInboxShop] has made one, another with workers; and what they observe and log.
type Shop struct {
	testing.TB
	Pool  *pgxpool.Pool
	Notes *Source
	First *idem.Inbox
	Inbox *idem.Inbox
	URL   string // of First, or of Inbox in a shop of OpenInboxShop

	// Worked has the attempts of workers. A shop that a test puts together by hand, to work on what another one has
	// stored, makes it if it observes.
	Worked chan idem.Observation

	mu       sync.Mutex
	observed []idem.Observation
	log      strings.Builder
}

// NewShop returns a shop without handlers, in a schema of its own.
func NewShop(t testing.TB) *Shop {
	t.Helper()
	return OpenShop(t, idemtest.Pool(t))
}

// OpenShop returns a shop on the database of a pool. With IDEM_TEST_PARTITIONED=1 its events are in partitions.
func OpenShop(t testing.TB, pool *pgxpool.Pool) *Shop {
	t.Helper()
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if os.Getenv("IDEM_TEST_PARTITIONED") == "1" {
		Partition(t, pool)
	}
	// The rows that keep the planner from thinking that the table is empty are of no interest to tests that count.
	Exec(t, pool, `delete from idem_payloads where source = '';
		create table if not exists effects (event text not null, scope text not null default '')`)
	s := &Shop{TB: t, Pool: pool, Notes: new(Source), Worked: make(chan idem.Observation, 10_000)}
	s.First = s.NewFirst()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		p := s.First
		s.mu.Unlock()
		p.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// On registers a handler of paid notes.
func (s *Shop) On(h idem.Handler[*Note]) { idem.Handle(&s.Notes.Routes, "paid", h) }

// Deploy replaces the handlers, as a new version of the application would.
func (s *Shop) Deploy(register func(*Source)) {
	s.Notes = new(Source)
	register(s.Notes)
	p := s.NewFirst()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.First = p
}

// NewFirst returns another inbox that works first, on the same database and handlers: what
// another process would be.
func (s *Shop) NewFirst() *idem.Inbox {
	p := NewFirst(s.Pool, s.Notes)
	p.Observe, p.Logger = s.Observe, s.Logger()
	return p
}

// NewFirst returns an inbox that works first, without workers: what it cannot do is delivered again.
func NewFirst(pool *pgxpool.Pool, source idem.Source) *idem.Inbox {
	i := idem.NewInbox(pool, source)
	i.WorkFirst = true
	return i
}

// Deliver posts a body as the provider does, and returns what it is answered.
func (s *Shop) Deliver(body string) (status int, answer string) {
	s.Helper()
	status, answer, err := s.Post(s.Context(), body, nil)
	if err != nil {
		s.Fatal(err)
	}
	return status, answer
}

// Post is [Post] to the shop.
func (s *Shop) Post(ctx context.Context, body string, header map[string]string) (status int, answer string, err error) {
	return Post(ctx, s.URL, body, header)
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

// WantAnswer delivers a body and checks the status.
func (s *Shop) WantAnswer(body string, want int) {
	s.Helper()
	if status, answer := s.Deliver(body); status != want {
		s.Errorf("the delivery was answered %d %s, want %d\n%s", status, answer, want, s.Logged())
	}
}

// StartDelivery delivers e1, whose handler goes on once something waits for a lock. It returns when the handler runs;
// delivered waits for the answer.
func (s *Shop) StartDelivery() (delivered func()) {
	return s.StartDeliveryUntil(func(ctx context.Context) error { return s.Await(ctx, Blocked) })
}

// StartDeliveryUntil is [Shop.StartDelivery] with a handler that goes on once until returns.
func (s *Shop) StartDeliveryUntil(until func(context.Context) error) (delivered func()) {
	entered := make(chan struct{})
	s.On(func(ctx context.Context, tx pgx.Tx, n *Note) error {
		close(entered) // panics in a second run
		if err := until(ctx); err != nil {
			return err
		}
		return Pay(ctx, tx, n)
	})
	var delivery sync.WaitGroup
	delivery.Go(func() { s.WantAnswer(Paid("e1"), http.StatusOK) })
	<-entered
	return delivery.Wait
}

// Observe keeps an observation of the shop's inboxes.
func (s *Shop) Observe(_ context.Context, o idem.Observation) {
	s.mu.Lock()
	s.observed = append(s.observed, o)
	s.mu.Unlock()
	if o.Stage == idem.StageAttempt {
		s.Worked <- o
	}
}

// Observed returns what was observed, in order.
func (s *Shop) Observed() []idem.Observation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]idem.Observation(nil), s.observed...)
}

// Outcomes returns the observed outcomes, in order.
func (s *Shop) Outcomes() (all []idem.Outcome) {
	for _, o := range s.Observed() {
		all = append(all, o.Outcome)
	}
	return all
}

// Logger returns a logger to the shop's log.
func (s *Shop) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler((*shopLog)(s), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Logged returns the log.
func (s *Shop) Logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// shopLog is a shop's log, to write to.
type shopLog Shop

func (l *shopLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log.Write(p)
}
