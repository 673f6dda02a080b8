package idem_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/outbox"
)

var queryModes = []pgx.QueryExecMode{
	pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
	pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
}

// With PgBouncer and other poolers, pgx cannot keep prepared statements.
func TestEveryQueryModeOfPgxWorks(t *testing.T) {
	t.Parallel()
	for _, mode := range queryModes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			s := openApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode }))
			s.processor.KeepPayloads = true
			broken := true
			s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := pay(ctx, tx, n); err != nil || !broken {
					return err
				}
				return errors.New("no such order")
			})
			odd := `{"id":"it's \\ $1 \"odd\"","type":"paid"}`
			s.wantAnswer(odd, http.StatusServiceUnavailable)
			broken = false
			s.wantAnswer(odd, http.StatusOK)
			s.wantAnswer(odd, http.StatusOK)
			s.wantAnswer("\x00 not JSON", http.StatusOK)
			s.wantEffects(1)
			stats, err := s.processor.Stats(t.Context())
			if err != nil || stats.Unhandled.Events != 1 {
				t.Errorf("Stats = %+v, %v, want one unhandled", stats, err)
			}
			s.deploy(func(n *notes) { idem.HandleOthers(&n.Routes, func(string) bool { return false }, nothing) })
			s.wantReplayed(idem.Filter{IDs: []string{"it's"}}, idem.Replayed{})
			s.wantReplayed(idem.Filter{}, idem.Replayed{Unhandled: 1})
			s.exec(`update idem_events set received_at = '2020-01-01'`)
			s.wantPruned(s.processor, 2)
		})
	}
}

func TestDatabaseDefaultsDoNotMatter(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"default_transaction_isolation":  "serializable",
		"default_transaction_deferrable": "on",
		"lock_timeout":                   "5s",
		"standard_conforming_strings":    "off",
		"search_path":                    "", // the test's own
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
				if value != "" {
					c.ConnConfig.RuntimeParams[name] = value
				}
			}))
			s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				var isolation, lockTimeout string
				err := tx.QueryRow(ctx, `select current_setting('transaction_isolation'), current_setting('lock_timeout')`).
					Scan(&isolation, &lockTimeout)
				want := "read committed"
				if name == "default_transaction_isolation" {
					want = value // the application's choice
				}
				if isolation != want {
					t.Errorf("the handler runs at %s, want %s", isolation, want)
				}
				want = "0"
				if name == "lock_timeout" {
					want = value
				}
				if lockTimeout != want {
					t.Errorf("the handler's lock_timeout is %s, want %s", lockTimeout, want)
				}
				if err != nil {
					return err
				}
				return pay(ctx, tx, n)
			})
			s.wantAnswer(paid("e1"), http.StatusOK)
			s.wantAnswer(paid("e1"), http.StatusOK)
			s.wantEffects(1)
		})
	}
}

// A session is the application's, too: whatever is done in it, its settings stay,
// those that have a value of their own among them.
func TestSessionKeepsItsSettings(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			s := openApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
				c.MaxConns = 1
				c.ConnConfig.DefaultQueryExecMode = mode
				maps.Copy(c.ConnConfig.RuntimeParams, map[string]string{
					"lock_timeout": "5s", "synchronous_commit": "off", "enable_seqscan": "on", "plan_cache_mode": "force_custom_plan",
				})
			})).openInbox()
			s.on(refuseBad)
			const settings = `select pg_backend_pid() || string_agg(name || '=' || setting, ' ' order by name) from pg_settings`
			before := queryOne[string](s, settings)
			s.inbox.Workers = 1
			s.wantAnswer(paid("e1"), http.StatusOK)
			s.wantAnswer(paid("e1"), http.StatusOK)
			s.wantAnswer(paid("bad1"), http.StatusOK)
			s.wantAnswer(`{"id":"n1","type":"new"}`, http.StatusOK)
			s.store(letter("e2", "o2", 0), letter("bad2", "o2", 0), letter("e3", "o2", 0))
			if o, err := s.inbox.Accept(t.Context(), letter("e2", "o2", 0)); o != idem.Duplicate || err != nil {
				t.Errorf("Accept = %s, %v, want duplicate", o, err)
			}
			s.drain(2)
			s.wantReplayed(idem.Filter{}, idem.Replayed{Failed: 2, Unhandled: 1})
			s.wantDiscarded(idem.Filter{IDs: []string{"bad2"}}, "a test", 1)
			s.drain(1)
			s.wantRequeued(idem.Filter{IDs: []string{"bad1"}}, 1)
			s.wantPruned(s.processor, 0)
			if diff := cmp.Diff(before, queryOne[string](s, settings)); diff != "" {
				t.Error("settings (-before +after):\n" + diff)
			}
		})
	}
}

// tripCounter counts round trips: writes that are followed by a read.
type tripCounter struct {
	net.Conn
	trips   *atomic.Int32
	written atomic.Bool
}

func (c *tripCounter) Write(p []byte) (int, error) {
	c.written.Store(true)
	return c.Conn.Write(p)
}

func (c *tripCounter) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.written.Swap(false) {
		c.trips.Add(1)
	}
	return n, err
}

// countTrips has a pool of one connection count its round trips.
func countTrips(c *pgxpool.Config, trips *atomic.Int32) {
	dial := c.ConnConfig.DialFunc
	c.ConnConfig.TLSConfig, c.ConnConfig.Fallbacks = nil, nil // a message of TLS is no round trip
	c.MaxConns = 1
	c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false } // on a slow machine
	c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return &tripCounter{Conn: conn, trips: trips}, err
	}
}

func TestRoundTripsPerEvent(t *testing.T) {
	t.Parallel()
	var trips atomic.Int32
	s := openApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) { countTrips(c, &trips) }))
	s.on(pay) // one statement
	s.exec(`create table processed (id text primary key)`)
	count := func(f func()) int32 {
		before := trips.Load()
		f()
		return trips.Load() - before
	}
	byHand := func(id string) func() {
		return func() {
			err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), `insert into processed values ($1) on conflict do nothing`, id); err != nil {
					return err
				}
				_, err := tx.Exec(t.Context(), `insert into effects (event, scope) values ($1, $2)`, id, "")
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	event := func(id string) func() { return func() { s.wantAnswer(paid(id), http.StatusOK) } }
	idem.Handle(&s.notes.Routes, "declared", func(ctx context.Context, _ pgx.Tx, n *note) error {
		idem.ExecAtCommit(ctx, `insert into effects (event, scope) values ($1, $2)`, n.ID, "")
		return nil
	})
	declared := func() { s.wantAnswer(`{"id":"q1","type":"declared"}`, http.StatusOK) }
	outbox := outbox.New(s.pool, "shop", nil)
	outbox.PollOnly = true // a notification is a round trip of its own, some time later
	idem.Handle(&s.notes.Routes, "emitted", func(ctx context.Context, _ pgx.Tx, n *note) error {
		idem.ExecAtCommit(ctx, `insert into effects (event, scope) values ($1, $2)`, n.ID, "")
		return outbox.Emit(ctx, broker.Message{Type: "order.paid", Key: n.ID, Body: []byte(n.ID)})
	})
	emitted := func() { s.wantAnswer(`{"id":"m1","type":"emitted"}`, http.StatusOK) }
	s.wantAnswer(`{"id":"q0","type":"declared"}`, http.StatusOK)
	s.wantAnswer(`{"id":"m0","type":"emitted"}`, http.StatusOK)
	for i := range 3 { // statements are prepared by then
		event(fmt.Sprint("warm", i))()
		event(fmt.Sprint("warm", i))()
		byHand(fmt.Sprint("warm", i))()
	}
	for _, c := range []struct {
		name string
		run  func()
		want int32
	}{
		{"a new event: begin and mark, the handler's statement, commit", event("e1"), 3},
		{"a new event whose handler declares: begin and mark, the statement and commit", declared, 2},
		{"one that also emits a message: begin and mark, both rows and commit", emitted, 2},
		{"the same by hand: begin, insert, the statement, commit", byHand("e1"), 4},
		{"a duplicate: begin and mark, rollback and look", event("e1"), 2},
	} {
		if got := count(c.run); got != c.want {
			t.Errorf("%s: %d round trips, want %d", c.name, got, c.want)
		}
	}
	if got := queryOne[int](s, `select count(*) from idem_payloads where source = 'shop'`); got != 2 {
		t.Errorf("%d messages are stored, want 2", got)
	}
}

// The body goes into the database as it came, whatever is in it.
func TestPayloadIsKeptByteForByte(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	body := make([]byte, 256)
	for i := range body {
		body[i] = byte(i)
	}
	s.wantAnswer(string(body), http.StatusOK)
	if got := queryOne[[]byte](s, `select body from idem_payloads`); !bytes.Equal(got, body) {
		t.Errorf("kept as %q", got)
	}
}
