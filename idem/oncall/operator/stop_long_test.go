//go:build long

package operator_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/testkit"
)

// What changes all events in one transaction records that in it. A stop that was asked for before
// then rolls it back, however late it is noticed.
func TestDiscardThatSomebodyStopsChangesNothing(t *testing.T) {
	t.Parallel()
	const stop = `update idem_audit set stopped_by = 'bob' where ended_at is null`
	for name, stopAndLetGo := range map[string]func(s *testkit.Shop, events pgx.Tx, ended <-chan error) error{
		"while it waits for its events": func(s *testkit.Shop, events pgx.Tx, ended <-chan error) error {
			s.Exec(stop)
			err := <-ended // it is noticed before the events are free
			_ = events.Rollback(s.Context())
			return err
		},
		"before it is recorded": func(s *testkit.Shop, events pgx.Tx, ended <-chan error) error {
			stopping, err := s.Pool.Begin(s.Context())
			if err == nil {
				_, err = stopping.Exec(s.Context(), stop)
			}
			if err != nil {
				s.Fatal(err)
			}
			_ = events.Rollback(s.Context())
			s.Until(`select exists (select from pg_stat_activity where $1 = any(pg_blocking_pids(pid)) and query like '%set events = %')`, stopping.Conn().PgConn().PID())
			if err := stopping.Commit(s.Context()); err != nil {
				s.Fatal(err)
			}
			return <-ended
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testkit.NewShop(t)
			s.Deploy(func(*testkit.Source) {})
			s.WantAnswer(testkit.Paid("e2"), 200) // unhandled
			events, err := s.Pool.Begin(t.Context())
			if err == nil {
				_, err = events.Exec(t.Context(), `lock table idem_events in exclusive mode`)
			}
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				_, err := testkit.Acted(t.Context(), "a test")(operator.New(s.First, "ana").PlanDiscard(t.Context(), idem.Filter{IDs: []string{"e2"}}))
				ended <- err
			}()
			s.Until(`select exists (select from pg_locks where not granted and relation = 'idem_events'::regclass)`)
			if err := stopAndLetGo(s, events, ended); !errors.Is(err, operator.ErrStopped) {
				t.Errorf("Discard = %v, want that bob has stopped it", err)
			}
			s.WantState("e2", idem.StateUnhandled)
			if got := testkit.QueryOne[string](t, s.Pool, `select result from idem_audit order by id desc limit 1`); got != "stopped by bob" {
				t.Errorf("its result is %q", got)
			}
		})
	}
}

// A note of how far a replay has come is not worth waiting for.
func TestReplayGoesOnAfterTheNetworkForgetsItsNote(t *testing.T) {
	t.Parallel()
	proxy := new(pgproxy.Proxy)
	s := testkit.OpenShop(t, testkit.OpenPool(t, idemtest.URL(t), proxy.Through))
	s.Deploy(func(*testkit.Source) {})
	for _, id := range []string{"e1", "e2"} {
		s.WantAnswer(testkit.Paid(id), 200) // unhandled
	}
	s.Deploy(func(n *testkit.Source) { idem.Handle(&n.Routes, "paid", testkit.Pay) })
	forget := sync.OnceFunc(proxy.Forget)
	s.First.Observe = func(context.Context, idem.Observation) { forget() }
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	if r, err := testkit.Replayed(ctx, "")(operator.New(s.First, "ana").PlanReplay(ctx, idem.Filter{})); testkit.Counted(r) != testkit.Counted(idem.Replayed{Done: 2}) || err != nil {
		t.Error(r, err)
	}
	s.WantEffects(2)
}
