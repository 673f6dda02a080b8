package idem_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

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
		fails   bool // the handler, too
		state   idem.State
	}{
		"marking":                    {`before insert on idem_events for each row`, paid("e1"), false, ""},
		"keeping the payload":        {`before insert on idem_archive for each row`, paid("e1"), false, ""},
		"an event without a handler": {`before insert on idem_events for each row`, `{"id":"e1","type":"new"}`, false, ""},
		"its payload":                {`before insert on idem_payloads for each row`, `{"id":"e1","type":"new"}`, false, ""},
		"the handler":                {`before insert on effects for each row`, paid("e1"), false, idem.StateRetrying},
		"COMMIT":                     {`after insert on effects deferrable initially deferred for each row`, paid("e1"), false, idem.StateRetrying},
		"counting a failure":         {`before insert on idem_events for each row when (new.state = 'retrying')`, paid("e1"), true, ""},
		"the payload of what failed": {`before insert on idem_payloads for each row`, paid("e1"), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			s.processor.KeepPayloads = true
			h := pay
			if c.fails {
				h = payAndFail
			}
			s.on(h)
			kind := "trigger"
			if name == "COMMIT" {
				kind = "constraint trigger"
			}
			s.exec(`create function full_disk() returns trigger language plpgsql as $$
				begin raise 'could not extend file: No space left on device' using errcode = '53100'; end $$;
				create ` + kind + ` full_disk ` + c.trigger + ` execute function full_disk()`)
			for range 2 {
				s.wantAnswer(c.body, http.StatusServiceUnavailable)
				s.wantEffects(0)
				s.wantState("e1", c.state)
			}
			s.exec(`drop function full_disk cascade`)
			s.deploy(func(n *notes) {
				idem.Handle(&n.Routes, "paid", pay)
				idem.Handle(&n.Routes, "new", pay)
			})
			s.wantAnswer(c.body, http.StatusOK)
			s.wantAnswer(c.body, http.StatusOK)
			s.wantEffects(1)
			s.wantState("e1", idem.StateDone)
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
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "failed before" && len(s.outcomes()) == 0 {
			return payAndFail(ctx, tx, n)
		}
		return pay(ctx, tx, n)
	})
	s.wantAnswer(paid("failed before"), http.StatusServiceUnavailable)
	s.wantAnswer(paid("done before"), http.StatusOK)
	bodies := []string{paid("e1"), paid("failed before"), paid("done before"), `{"id":"e2","type":"new"}`, "not JSON"}
	standby.Store(true)
	pool.Reset()
	for _, body := range bodies {
		s.wantAnswer(body, http.StatusServiceUnavailable)
	}
	standby.Store(false)
	s.wantEffects(1)
	for _, body := range bodies {
		s.wantAnswer(body, http.StatusOK)
	}
	s.wantEffects(3)
	if n := queryOne[int](s, `select sum(attempts) from idem_events`); n != 1 {
		t.Errorf("%d failures are counted, want the 1 of a handler", n)
	}
}
