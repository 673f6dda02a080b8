package idem_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

// openInbox opens an inbox beside the processor, on the same database and
// handlers, whose workers try nothing twice by themselves.
func (s *app) openInbox() *app {
	s.inbox = s.newInbox(s.pool)
	s.inbox.Backoff = func(int) time.Duration { return time.Hour }
	return s
}

func (s *app) exec(sql string) {
	s.Helper()
	if _, err := s.pool.Exec(s.Context(), sql); err != nil {
		s.Fatal(err)
	}
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

// blocked asks whether a session of the app waits for a lock.
const blocked = `select exists (select from pg_stat_activity
	where application_name = current_setting('application_name') and wait_event_type = 'Lock')`

// startDelivery delivers e1, whose handler goes on once another delivery waits for it. It
// returns when the handler runs; delivered waits for the answer.
func (s *app) startDelivery() (delivered func()) {
	entered := make(chan struct{})
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		close(entered) // panics in a second run
		if err := s.await(ctx, blocked); err != nil {
			return err
		}
		return pay(ctx, tx, n)
	})
	var delivery sync.WaitGroup
	delivery.Go(func() { s.wantAnswer(paid("e1"), http.StatusOK) })
	<-entered
	return delivery.Wait
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

// listed are the events that List yields.
func (s *app) listed(f idem.Filter) []idem.StoredEvent {
	s.Helper()
	var all []idem.StoredEvent
	for stored, err := range s.processor.List(s.Context(), f) {
		if err != nil {
			s.Fatal(err)
		}
		all = append(all, stored)
	}
	return all
}

func ids(events []idem.StoredEvent) []string {
	var all []string
	for _, s := range events {
		all = append(all, strings.TrimPrefix(s.Scope+" "+s.ID, " "))
	}
	return all
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

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
