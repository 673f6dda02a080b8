package brokertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/relay"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/postgres"
)

// longestWait is the time that a test waits for something that must happen.
const longestWait = 2 * time.Minute

// shop is an application under test: a relay in front of the queue, and a database.
type shop struct {
	testing.TB
	queue    Queue
	provider *provider
	pool     *pgxpool.Pool
	database string // its URL
	relay    *relay.Relay
	url      string        // of the relay
	changed  chan struct{} // has an element after something has happened

	mu      sync.Mutex
	handled []string // IDs of the messages that the consumers were done with
}

func newShop(t testing.TB, q Queue) *shop {
	s := &shop{TB: t, queue: q, provider: newProvider(), changed: make(chan struct{}, 1)}
	s.openDatabase(idemtest.URL(t))
	s.relay = s.newRelay()
	s.url = s.serve(s.relay)
	return s
}

// ownDatabase has the shop use a Postgres of its own.
func (s *shop) ownDatabase(cluster postgres.Cluster) *postgres.Cluster {
	s.Helper()
	if err := cluster.Start(s.Context()); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			s.Error(err)
		}
	})
	s.openDatabase(cluster.URL())
	return &cluster
}

func (s *shop) openDatabase(url string) {
	s.Helper()
	pool, err := openPool(s.Context(), url)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(pool.Close)
	if err := idem.Migrate(s.Context(), pool); err != nil {
		s.Fatal(err)
	}
	_, err = pool.Exec(s.Context(), `create table ledger (seq bigserial primary key, event text not null, entity text not null, n int not null)`)
	if err != nil {
		s.Fatal(err)
	}
	s.pool, s.database = pool, url
}

// openPool opens a pool with room for a few tests beside each other.
func openPool(ctx context.Context, url string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 6
	return pgxpool.NewWithConfig(ctx, config)
}

func (s *shop) newRelay() *relay.Relay {
	r := relay.New(s.provider, s.queue.Publisher, secret)
	r.Logger = nil
	return r
}

func (s *shop) serve(h http.Handler) (url string) {
	server := httptest.NewServer(h)
	s.Cleanup(server.Close)
	return server.URL
}

func (s *shop) newInbox() *idem.Inbox {
	i := idem.NewInbox(s.pool, s.provider)
	i.Logger, i.Observe = nil, s.observe
	i.Backoff = func(int) time.Duration { return 0 }
	i.Poll = 100 * time.Millisecond
	return i
}

// newFirst returns an inbox that works first, without workers: what fails is delivered again.
func (s *shop) newFirst() *idem.Inbox {
	i := s.newInbox()
	i.WorkFirst = true
	return i
}

func (s *shop) observe(context.Context, idem.Observation) { s.change() }

func (s *shop) change() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// await waits until holds does, and looks again whenever something has happened.
func (s *shop) await(what string, holds func() bool) {
	s.Helper()
	late := time.After(longestWait)
	for !holds() {
		select {
		case <-s.changed:
		case <-late:
			s.Fatalf("waited %s in vain: %s\n%s", longestWait, what, s.stored())
		}
	}
}

// consume has the queue consumed in the background.
func (s *shop) consume(handle broker.Handle) (stop func()) {
	return Background(s, func(ctx context.Context) error {
		return s.queue.Consume(ctx, func(ctx context.Context, m broker.Message) error {
			err := handle(ctx, m)
			if err == nil {
				s.mu.Lock()
				s.handled = append(s.handled, m.ID)
				s.mu.Unlock()
			}
			s.change()
			return err
		})
	})
}

// collect consumes messages in the background, and returns a function that returns those that
// have arrived, each once.
func (s *shop) collect() (arrived func() []broker.Message) {
	var mu sync.Mutex
	var all []broker.Message
	s.consume(func(_ context.Context, m broker.Message) error {
		mu.Lock()
		defer mu.Unlock()
		if !slices.ContainsFunc(all, func(earlier broker.Message) bool { return earlier.ID == m.ID }) {
			all = append(all, m)
		}
		return nil
	})
	return func() []broker.Message {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// wasHandled reports whether a consumer is done with a message.
func (s *shop) wasHandled(n note) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.handled, messageID(n))
}

// messageID is the ID of the message that a relay makes of a note.
func messageID(n note) string { return "shop/" + n.ID }

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: atOnce}}

// post delivers a note as the provider does.
func (s *shop) post(ctx context.Context, url string, n note) (status int, answer string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(string(n.body())))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("token", token)
	resp, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

// deliver delivers notes one after the other, and wants 200.
func (s *shop) deliver(notes ...note) {
	s.Helper()
	for _, n := range notes {
		if status, answer, err := s.post(s.Context(), s.url, n); err != nil || status != http.StatusOK {
			s.Fatalf("the delivery of %s was answered %d %s, %v, want 200", n.ID, status, answer, err)
		}
	}
}

// deliverUntilTaken delivers notes one after the other, each again, as the provider does,
// until it gets 200.
func (s *shop) deliverUntilTaken(notes ...note) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), longestWait)
	defer cancel()
	for len(notes) > 0 {
		status, answer, err := s.post(ctx, s.url, notes[0])
		if err == nil && status == http.StatusOK {
			notes = notes[1:]
		} else if ctx.Err() != nil {
			s.Errorf("the delivery of %s was never taken: at last %d %s, %v", notes[0].ID, status, answer, err)
			return
		}
	}
}

// deliverAll delivers the notes of each order one after the other, and orders at the
// same time.
func (s *shop) deliverAll(notes []note, deliver func(...note)) {
	s.Helper()
	orders := map[string][]note{}
	for _, n := range notes {
		orders[n.Order] = append(orders[n.Order], n)
	}
	var deliveries sync.WaitGroup
	for _, order := range orders {
		deliveries.Go(func() { deliver(order...) })
	}
	deliveries.Wait()
}

// paid are events of so many orders, each so many.
func paid(orders, each int) (notes []note) {
	start := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for n := range each {
		for o := range orders {
			notes = append(notes, note{
				ID: fmt.Sprintf("evt_%d_%d", o, n), Type: "paid", Order: fmt.Sprintf("order-%d", o), N: n,
				At: start.Add(time.Duration(n) * time.Second),
			})
		}
	}
	return notes
}

// effects counts the ledger's rows; it is 0 while Postgres is unavailable.
func (s *shop) effects() (count int) {
	_ = s.pool.QueryRow(s.Context(), `select count(*) from ledger`).Scan(&count)
	return count
}

// stored counts the events in each state, for people and for tests.
func (s *shop) stored() string {
	rows, err := s.pool.Query(context.WithoutCancel(s.Context()), `select state || ' ' || count(*) from idem_events where event like 'notes/%' group by state order by state`)
	if err != nil {
		return err.Error()
	}
	states, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err.Error()
	}
	return strings.Join(states, ", ")
}

func (s *shop) wantStored(want string) {
	s.Helper()
	if got := s.stored(); got != want {
		s.Errorf("the database has %q, want %q", got, want)
	}
}

// awaitEffects waits until notes have their effects, each one, and nothing else has.
func (s *shop) awaitEffects(notes []note) {
	s.Helper()
	s.await(fmt.Sprintf("%d events to have their effects", len(notes)), func() bool { return s.effects() >= len(notes) })
	var want []string
	for _, n := range notes {
		want = append(want, n.ID)
	}
	got := s.ledger(`select event from ledger order by event`)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		s.Errorf("the ledger has effects of\n%v\nwant\n%v", got, want)
	}
}

// wantOrder checks that each order's effects are in the order of its events.
func (s *shop) wantOrder() {
	s.Helper()
	wrong := s.ledger(`select event from (select event, n, lag(n) over (partition by entity order by seq) as before from ledger) l where before > n`)
	if len(wrong) > 0 {
		s.Errorf("these events took effect after a later one of their order: %v", wrong)
	}
}

func (s *shop) ledger(sql string) []string {
	s.Helper()
	rows, err := s.pool.Query(s.Context(), sql)
	if err != nil {
		s.Fatal(err)
	}
	events, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		s.Fatal(err)
	}
	return events
}

// note is an event of the provider that these tests invent.
type note struct {
	ID    string    `json:"id"`
	Type  string    `json:"type"` // "paid"; "poison": its handler always fails
	Order string    `json:"order"`
	N     int       `json:"n"` // its place among the order's events
	At    time.Time `json:"at"`
	Text  string    `json:"text,omitempty"`
}

func (n note) body() []byte {
	body, err := json.Marshal(n)
	if err != nil {
		panic(err) // texts and numbers
	}
	return body
}

const (
	token  = "right"
	secret = "0123456789abcdef0123456789abcdef" // of the relay
)

// provider is the source of notes. All of them have an effect in the ledger.
type provider struct{ idem.Routes }

func newProvider() *provider {
	p := &provider{}
	idem.Handle(&p.Routes, "paid", book)
	idem.Handle(&p.Routes, "poison", func(context.Context, pgx.Tx, *note) error { return errors.New("poison") })
	return p
}

// book has the one effect of an event.
func book(ctx context.Context, tx pgx.Tx, n *note) error {
	_, err := tx.Exec(ctx, `insert into ledger (event, entity, n) values ($1, $2, $3)`, n.ID, n.Order, n.N)
	return err
}

// Name implements [idem.Source].
func (*provider) Name() string { return "notes" }

// Open implements [idem.Source].
func (*provider) Open(r *http.Request) (idem.Event, error) {
	if r.Header.Get("token") != token {
		return idem.Event{}, &idem.Refusal{Source: "notes", Reason: "wrong_token", Hint: "send the right token"}
	}
	body, err := idem.ReadBody(r)
	if err != nil {
		return idem.Event{}, err
	}
	n := new(note)
	if err := json.Unmarshal(body, n); err != nil {
		return idem.Event{}, err
	}
	return idem.Event{Source: "notes", Scope: "shop", ID: n.ID, Type: n.Type, Key: n.Order, OccurredAt: n.At, Payload: body}, nil
}
