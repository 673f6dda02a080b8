package idemtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// charges is a provider of events of type "paid", which anybody may send.
type charges struct {
	idem.Routes
	opened int // deliveries
}

type charge struct{ ID, Type string }

func (*charges) Name() string { return "charges" }

func (s *charges) Open(r *http.Request) (idem.Event, error) {
	s.opened++
	body, err := idem.ReadBody(r)
	if err != nil {
		return idem.Event{}, err
	}
	c := new(charge)
	if err := json.Unmarshal(body, c); err != nil {
		return idem.Event{}, err
	}
	return idem.Event{ID: c.ID, Type: c.Type, Key: "charge", Payload: body}, nil
}

func paid(id string) *http.Request {
	body := strings.NewReader(fmt.Sprintf(`{"ID":%q,"Type":"paid"}`, id))
	r, err := http.NewRequest(http.MethodPost, "/webhooks/charges", body)
	if err != nil {
		panic(err)
	}
	return r
}

// world is what a handler can reach besides its transaction: other connections,
// its memory, and somebody else's server.
type world struct {
	pool   *pgxpool.Pool
	source *charges
	count  int
	seen   map[string]bool
	mails  []string
	broken bool
	server map[string]string // what it was asked to do, by idempotency key
}

type handler func(ctx context.Context, tx pgx.Tx, w *world, id string) error

// effects counts what a handler did.
type effects func(ctx context.Context, pool *pgxpool.Pool, w *world) (int, error)

const insertEffect = `insert into effects values ($1)`

// book is the handler as it should be.
func book(ctx context.Context, tx pgx.Tx, _ *world, id string) error {
	_, err := tx.Exec(ctx, insertEffect, id)
	return err
}

func inTable(ctx context.Context, pool *pgxpool.Pool, _ *world) (n int, err error) {
	err = pool.QueryRow(ctx, `select count(*) from effects`).Scan(&n)
	return n, err
}

func inMemory(_ context.Context, _ *pgxpool.Pool, w *world) (int, error) { return w.count, nil }

func inMails(_ context.Context, _ *pgxpool.Pool, w *world) (int, error) { return len(w.mails), nil }

func onServer(_ context.Context, _ *pgxpool.Pool, w *world) (int, error) { return len(w.server), nil }

// function is ExactlyOnce or ExactlyOnceInbox.
type function func(
	testing.TB, func(*pgxpool.Pool) idem.Source, []*http.Request, func(context.Context, *pgxpool.Pool) error,
)

// rehearse delivers events to a handler through exactlyOnce, and returns what
// that says about it.
func rehearse(t *testing.T, exactlyOnce function, h handler, count effects, ids ...string) string {
	t.Helper()
	idemtest.URL(t) // without any Postgres, the test ends here
	var w *world
	source := func(pool *pgxpool.Pool) idem.Source {
		if _, err := pool.Exec(t.Context(), `create table effects (id text not null)`); err != nil {
			t.Error(err)
		}
		s := &charges{}
		w = &world{pool: pool, source: s, seen: make(map[string]bool), server: make(map[string]string)}
		idem.Handle(&s.Routes, "paid", func(ctx context.Context, tx pgx.Tx, c *charge) error { return h(ctx, tx, w, c.ID) })
		return s
	}
	check := func(ctx context.Context, pool *pgxpool.Pool) error {
		switch n, err := count(ctx, pool, w); {
		case err != nil:
			return err
		case n != len(ids):
			return fmt.Errorf("%d effects of %d events", n, len(ids))
		}
		return nil
	}
	var deliveries []*http.Request
	for _, id := range ids {
		deliveries = append(deliveries, paid(id))
	}
	r := &recorder{TB: t}
	r.run(func() { exactlyOnce(r, source, deliveries, check) })
	return strings.Join(r.failures, "\n")
}

// recorder is a test that keeps its failures to itself.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) run(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }
