package idem_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

// modelApp is the inbox that is compared with its model, on a real database.
type modelApp struct {
	*app
	settled []string // by the workers

	mu      sync.Mutex // also of what is settled
	runs    map[string]int
	mishaps map[string][]mishap
}

func newModelApp(t *testing.T) *modelApp {
	t.Helper()
	s := &modelApp{app: newApp(t)}
	s.exec(`alter table effects add column place bigserial, add column lane text`)
	return s
}

// clear is an empty database.
func (s *modelApp) clear() {
	s.exec(`truncate idem_events, idem_payloads, idem_archive, effects restart identity`)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs, s.mishaps = make(map[string]int), make(map[string][]mishap)
}

// start makes an inbox and a processor on the same tables, as a process that
// starts does.
func (s *modelApp) start(d deployment) {
	source := &notes{}
	idem.Handle(&source.Routes, "paid", s.handle)
	switch d.odd {
	case "handled":
		idem.Handle(&source.Routes, "odd", s.handle)
	case "ignored":
		source.Ignore("odd")
	}
	s.processor = idem.NewProcessor(s.pool, source)
	s.processor.Logger = nil
	s.processor.ParkAfter, s.processor.PassParked = modelParkAfter, d.passParked
	s.inbox = idem.NewInbox(s.pool, source)
	s.inbox.Logger = nil
	s.inbox.Workers, s.inbox.PollOnly = 1, true
	s.inbox.MaxAttempts, s.inbox.MaxCrashes, s.inbox.PassParked = modelAttempts, modelCrashes, d.passParked
	s.inbox.Backoff = func(int) time.Duration { return 0 }
	s.inbox.Observe = func(_ context.Context, o idem.Observation) {
		if o.Stage == idem.StageAttempt {
			s.mu.Lock()
			s.settled = append(s.settled, o.Event.ID+" is "+string(o.Outcome))
			s.mu.Unlock()
		}
	}
}

// prepare has the next runs of handlers for a lane fail; of none if there is
// nothing to fail with.
func (s *modelApp) prepare(lane string, mishaps []mishap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mishaps == nil {
		clear(s.mishaps)
	}
	s.mishaps[lane] = append(s.mishaps[lane], mishaps...)
}

// handle has its effect first, and then fails if it is to.
func (s *modelApp) handle(ctx context.Context, tx pgx.Tx, n *note) error {
	lane := n.Order
	if lane == "" {
		lane = n.ID
	}
	if _, err := tx.Exec(ctx, `insert into effects (event, lane) values ($1, $2)`, n.ID, lane); err != nil {
		return err
	}
	if idem.IsDryRun(ctx) {
		return nil
	}
	failure := errors.New("there is no such order")
	switch s.next(n.ID, lane) {
	case mishapError:
		return failure
	case mishapPanic:
		panic(failure)
	case mishapSwallowed:
		_, _ = tx.Exec(ctx, `select 1 / 0`)
	case mishapFinal:
		return idem.NoRetry(failure)
	case mishapLater:
		return idem.RetryAt(time.Now().Add(time.Hour), failure)
	case mishapAgain:
		_, err := tx.Exec(ctx, `do $$ begin raise exception 'once more' using errcode = '40001'; end $$`)
		return err
	}
	return nil
}

func (s *modelApp) next(id, lane string) (met mishap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[id]++
	if rest := s.mishaps[lane]; len(rest) > 0 {
		met, s.mishaps[lane] = rest[0], rest[1:]
	}
	return met
}

type acceptor interface {
	Accept(context.Context, idem.Event) (idem.Outcome, error)
}

// accept delivers an event; the outcome tells of an error, too.
func (s *modelApp) accept(to acceptor, e *modelEvent) idem.Outcome {
	event := idem.Event{
		ID: e.id, Type: e.eventType, Key: e.key,
		Payload: fmt.Appendf(nil, `{"id":%q,"type":%q,"order":%q}`, e.id, e.eventType, e.key),
	}
	if e.occurred != 0 {
		event.OccurredAt = time.Date(2050+50*e.occurred, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	outcome, err := to.Accept(s.Context(), event)
	if stored := outcome.Acknowledged(); stored != (err == nil) {
		return idem.Outcome(fmt.Sprint(outcome, ": ", err))
	}
	return outcome
}

// work has workers work until nothing is left to do, with time passing between.
// It returns what was settled, sorted.
func (s *modelApp) work() []string {
	s.Helper()
	s.settled = nil
	for before := -1; before < len(s.settled); {
		before = len(s.settled)
		s.exec(`update idem_payloads set due_at = now() where due_at > now()`)
		if err := s.inbox.Drain(s.Context()); err != nil {
			s.Fatal(err)
		}
	}
	slices.Sort(s.settled)
	return s.settled
}

// stuck counts the lanes whose first event nobody will find.
func (s *modelApp) stuck() int {
	return queryOne[int](s.app, `
select count(*) from (
	select distinct on (lane) event, due_at from idem_payloads where lane is not null
	order by lane, coalesce(occurred_at, received_at), received_at, event) head
join idem_events using (event) join idem_payloads p using (event) where (state = 'pending' or p.held) and p.due_at is null`)
}

// row is an event as the tables hold it.
type row struct {
	ID                       string
	State                    idem.State
	Attempts, Crashes        int
	Claimed, InLane, Payload bool
	Held                     bool
}

func (s *modelApp) rows() []row {
	rows, err := s.pool.Query(s.Context(), `
select event, state, attempts, crashes, claimed_by is not null, lane is not null, body is not null, coalesce(held, false)
from idem_events left join idem_payloads using (event) order by event`)
	if err != nil {
		s.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	if err != nil {
		s.Fatal(err)
	}
	for i := range all {
		all[i].ID = strings.TrimPrefix(all[i].ID, "notes//")
	}
	return all
}

func (s *modelApp) effects() map[string][]string {
	rows, err := s.pool.Query(s.Context(), `select lane, array_agg(event order by place) from effects group by lane`)
	if err != nil {
		s.Fatal(err)
	}
	all := make(map[string][]string)
	var lane string
	var events []string
	if _, err := pgx.ForEachRow(rows, []any{&lane, &events}, func() error {
		all[lane] = slices.Clone(events)
		return nil
	}); err != nil {
		s.Fatal(err)
	}
	return all
}

// rows are the rows that the tables are to hold.
func (m *model) rows() []row {
	all := []row{}
	for _, id := range slices.Sorted(maps.Keys(m.events)) {
		e := m.events[id]
		all = append(all, row{
			id, e.state, e.attempts, e.crashes, e.claimed, e.inLane,
			e.state != idem.StateDone && e.state != idem.StateDiscarded, e.held,
		})
	}
	return all
}

// counts are those of Stats.
type counts struct{ Pending, Retrying, Unhandled, Parked, BlockedKeys int64 }

func countsOf(s idem.Stats) counts {
	return counts{s.Pending.Events, s.Retrying.Events, s.Unhandled.Events, s.Parked.Events, s.BlockedKeys}
}

func (m *model) stats() (c counts) {
	for _, e := range m.events {
		switch e.state {
		case idem.StatePending:
			c.Pending++
		case idem.StateRetrying:
			c.Retrying++
		case idem.StateUnhandled:
			c.Unhandled++
		case idem.StateParked:
			c.Parked++
		}
	}
	for _, lane := range m.lanes() {
		if all := lane.waiting(m); len(all) > 1 && all[0].state != idem.StatePending {
			c.BlockedKeys++
		}
	}
	return c
}
