package promises_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

func TestMissingTablesAreExplained(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(pay)
	if _, err := s.Pool.Exec(t.Context(), `drop table idem_events cascade`); err != nil {
		t.Fatal(err)
	}
	s.WantAnswer(paid("e1"), http.StatusServiceUnavailable)
	s.WantAnswer(`{"id":"e2","type":"new"}`, http.StatusServiceUnavailable)
	if n := strings.Count(s.Logged(), "call idem.Migrate"); n != 2 {
		t.Error("the log does not tell what to do:\n" + s.Logged())
	}
}

// A full disk refuses one write or another. Nothing is acknowledged, and the
// next delivery finds everything as it should be.
//
// A trigger answers what Postgres does then, 53100: to fill a real disk takes a
// file system of its own, and root.
func TestFullDiskAsksForRedelivery(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		trigger string
		body    string
	}{
		"marking":                    {`before insert on idem_events for each row`, paid("e1")},
		"keeping the payload":        {`before insert on idem_archive for each row`, paid("e1")},
		"an event without a handler": {`before insert on idem_events for each row`, `{"id":"e1","type":"new"}`},
		"its payload":                {`before insert on idem_payloads for each row`, `{"id":"e1","type":"new"}`},
		"the handler":                {`before insert on effects for each row`, paid("e1")},
		"COMMIT":                     {`after insert on effects deferrable initially deferred for each row`, paid("e1")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			s.First.KeepPayloads = true
			s.On(pay)
			kind := "trigger"
			if name == "COMMIT" {
				kind = "constraint trigger"
			}
			s.Exec(`create function full_disk() returns trigger language plpgsql as $$
				begin raise 'could not extend file: No space left on device' using errcode = '53100'; end $$;
				create ` + kind + ` full_disk ` + c.trigger + ` execute function full_disk()`)
			for range 2 {
				s.WantAnswer(c.body, http.StatusServiceUnavailable)
				s.WantEffects(0)
				s.WantState("e1", "")
			}
			s.Exec(`drop function full_disk cascade`)
			s.Deploy(func(n *notes) {
				idem.Handle(&n.Routes, "paid", pay)
				idem.Handle(&n.Routes, "new", pay)
			})
			s.WantAnswer(c.body, http.StatusOK)
			s.WantAnswer(c.body, http.StatusOK)
			s.WantEffects(1)
			s.WantState("e1", idem.StateDone)
		})
	}
}

// During a failover the server is a standby, or the old primary: it reads only. Once
// its name leads to the new primary, the first delivery is taken: no connection to the
// other one is left, although that server answers.
func TestReadOnlyServerAsksForRedelivery(t *testing.T) {
	t.Parallel()
	var standby atomic.Bool
	pool := openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
		c.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
			if standby.Load() {
				c.RuntimeParams["default_transaction_read_only"] = "on"
			}
			return nil
		}
	})
	s := openApp(t, pool)
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "failed before" && len(s.Outcomes()) == 0 {
			return payAndFail(ctx, tx, n)
		}
		return pay(ctx, tx, n)
	})
	s.WantAnswer(paid("failed before"), http.StatusServiceUnavailable)
	s.WantAnswer(paid("done before"), http.StatusOK)
	bodies := []string{paid("e1"), paid("failed before"), paid("done before"), `{"id":"e2","type":"new"}`, "not JSON"}
	standby.Store(true)
	pool.Reset()
	for _, body := range bodies {
		s.WantAnswer(body, http.StatusServiceUnavailable)
	}
	standby.Store(false)
	s.WantEffects(1)
	for _, body := range bodies {
		s.WantAnswer(body, http.StatusOK)
	}
	s.WantEffects(3)
	if n := queryOne[int](s, `select sum(attempts) from idem_events`); n != 0 {
		t.Errorf("%d failures of first tries are counted", n)
	}
}

// The primary became read-only: a full disk of its provider's, say. Each failing statement would replace all
// connections, and write a line.
func TestAReadOnlyPrimaryCostsFewLinesAndConnections(t *testing.T) {
	t.Parallel()
	const deliveries = 30
	var connected atomic.Int32
	var readOnly atomic.Bool
	s := openApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
		c.MaxConns = 4
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			connected.Add(1)
			if !readOnly.Load() {
				return nil
			}
			_, err := conn.Exec(ctx, `set default_transaction_read_only = on`)
			return err
		}
	}))
	s.On(pay)
	var open [4]*pgxpool.Conn
	acquireAll := func() {
		t.Helper()
		for n := range open {
			conn, err := s.Pool.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			open[n] = conn
		}
		for _, conn := range open {
			conn.Release()
		}
	}
	readOnly.Store(true)
	s.Pool.Reset()
	acquireAll()
	connected.Store(0)
	for range deliveries {
		s.WantAnswer(paid("e1"), http.StatusServiceUnavailable)
	}
	if n := int(connected.Load()); n > deliveries-len(open) { // those that were there are not replaced because of another one
		t.Errorf("%d deliveries have made %d connections, want %d", deliveries, n, deliveries-len(open))
	}
	if n := strings.Count(s.Logged(), "level=ERROR"); n != 1 {
		t.Errorf("%d deliveries have written %d lines, want one:\n%s", deliveries, n, s.Logged())
	}
	readOnly.Store(false)
	for range 4 { // each of the pool's connections is asked once at most
		s.Deliver(paid("e1"))
	}
	s.WantAnswer(paid("e1"), http.StatusOK)
}

// A trigger of the database's administrator names whom it likes.
func TestWordsOfATriggerOnTheTablesAreNotLogged(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.Exec(`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'maria@example.com is on the list'; end $$;
		create trigger refuses before insert on idem_events for each row execute function refuse()`)
	s.On(pay)
	s.WantAnswer(paid("e1"), http.StatusServiceUnavailable)
	if log := s.Logged(); strings.Contains(log, "maria") || !strings.Contains(log, "a trigger refuses it") || !strings.Contains(log, "P0001") {
		t.Errorf("the log says\n%s", log)
	}
}
