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
	"pgregory.net/rapid"

	"github.com/paghooks/paghooks/idem"
)

// subject is the inbox that is compared with its model, on a real database.
type subject struct {
	*shop
	inbox    *idem.Inbox
	observed chan idem.Observation // of the workers
	fences   int

	mu      sync.Mutex
	runs    map[string]int
	mishaps map[string][]mishap
}

func newSubject(t *testing.T) *subject {
	t.Helper()
	s := &subject{shop: newShop(t), observed: make(chan idem.Observation, 1000)}
	s.exec(`alter table effects add column place bigserial, add column queue text`)
	return s
}

// clear is an empty database.
func (s *subject) clear() {
	s.exec(`truncate idem_events, idem_payloads, idem_claims, effects restart identity`)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs, s.mishaps = make(map[string]int), make(map[string][]mishap)
}

// start makes an inbox and a processor on the same tables, as a process that
// starts does.
func (s *subject) start(d deployment) {
	source := &notes{}
	idem.Handle(&source.Routes, "paid", s.handle)
	idem.Handle(&source.Routes, "fence", func(context.Context, pgx.Tx, *note) error { return nil })
	switch d.odd {
	case "handled":
		idem.Handle(&source.Routes, "odd", s.handle)
	case "ignored":
		source.Ignore("odd")
	}
	s.processor = idem.NewProcessor(s.pool, source)
	s.processor.Logger = nil
	s.processor.ParkAfter, s.processor.HandToInbox = modelParkAfter, d.handToInbox
	s.inbox = idem.NewInbox(s.pool, source)
	s.inbox.Logger = nil
	s.inbox.Workers, s.inbox.PollOnly, s.inbox.Poll = 1, true, 5*time.Millisecond
	s.inbox.MaxAttempts, s.inbox.MaxCrashes, s.inbox.PassParked = modelAttempts, modelCrashes, d.passFailed
	s.inbox.Backoff = func(int) time.Duration { return 0 }
	s.inbox.Observe = func(_ context.Context, o idem.Observation) {
		if o.Outcome != idem.Pending && o.Outcome != idem.Duplicate && o.Outcome != idem.Ignored {
			s.observed <- o
		}
	}
}

// prepare has the next runs of handlers for a queue fail; of none if there is
// nothing to fail with.
func (s *subject) prepare(queue string, mishaps []mishap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mishaps == nil {
		clear(s.mishaps)
	}
	s.mishaps[queue] = append(s.mishaps[queue], mishaps...)
}

// handle has its effect first, and then fails if it is to.
func (s *subject) handle(ctx context.Context, tx pgx.Tx, n *note) error {
	queue := n.Order
	if queue == "" {
		queue = n.ID
	}
	if _, err := tx.Exec(ctx, `insert into effects (event, queue) values ($1, $2)`, n.ID, queue); err != nil {
		return err
	}
	if idem.IsDryRun(ctx) {
		return nil
	}
	failure := errors.New("there is no such order")
	switch s.next(n.ID, queue) {
	case mishapError:
		return failure
	case mishapPanic:
		panic(failure)
	case mishapSwallowed:
		_, _ = tx.Exec(ctx, `select 1 / 0`)
	case mishapFinal:
		return idem.NoRetry(failure)
	case mishapLater:
		return idem.RetryAt(time.Now(), failure)
	case mishapAgain:
		_, err := tx.Exec(ctx, `do $$ begin raise exception 'once more' using errcode = '40001'; end $$`)
		return err
	}
	return nil
}

func (s *subject) next(id, queue string) (met mishap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[id]++
	if rest := s.mishaps[queue]; len(rest) > 0 {
		met, s.mishaps[queue] = rest[0], rest[1:]
	}
	return met
}

type acceptor interface {
	Accept(context.Context, idem.Event) (idem.Outcome, error)
}

// accept delivers an event; the outcome tells of an error, too.
func (s *subject) accept(to acceptor, e *modelEvent) idem.Outcome {
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

// work has a worker work until n events are settled, and nothing is left to do:
// two events in a row that come last in the ring of queues get their turn. It
// returns what was settled, sorted.
func (s *subject) work(t *rapid.T, n int) (settled []string) {
	s.exec(`update idem_events set due_at = now() where state = 'pending' and due_at is not null`)
	s.exec(`update idem_claims set until = now()`)
	ctx, stop := context.WithCancel(s.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- s.inbox.Run(ctx) }()
	for len(settled) < n {
		o := s.observation(t)
		settled = append(settled, o.Event.ID+" is "+string(o.Outcome))
	}
	for range 2 {
		settled = append(settled, s.fence(t)...)
	}
	stop()
	if err := <-ended; err != nil {
		s.Fatal(err)
	}
	slices.Sort(settled)
	return settled
}

// fence returns what is settled before an event that comes last.
func (s *subject) fence(t *rapid.T) (before []string) {
	s.fences++
	id := fmt.Sprint("fence-", s.fences)
	if outcome := s.accept(s.inbox, &modelEvent{id: id, eventType: "fence", key: "~model"}); outcome != idem.Pending {
		s.Fatalf("a fence is %s", outcome)
	}
	for o := s.observation(t); o.Event.ID != id; o = s.observation(t) {
		before = append(before, o.Event.ID+" is "+string(o.Outcome))
	}
	return before
}

func (s *subject) observation(t *rapid.T) idem.Observation {
	select {
	case o := <-s.observed:
		return o
	case <-time.After(10 * time.Second): // the last resort
		t.Fatalf("the worker does nothing, but there is work:\n%s", queryOne[string](s.shop,
			`select string_agg(format('%s %s due %s claimed until %s', event, state, due_at, until), E'\n') from idem_events left join idem_claims using (event) where state <> 'done'`))
		panic("unreachable")
	}
}

// row is what the tables hold of an event.
type row struct {
	ID                       string
	State                    idem.State
	Attempts, Crashes        int
	Claimed, Queued, Payload bool
}

func (s *subject) rows() []row {
	rows, err := s.pool.Query(s.Context(), `
select event, state, attempts, coalesce(crashes, 0), state = 'pending' and until is not null, queue is not null, body is not null
from idem_events left join idem_payloads using (event) left join idem_claims using (event) where not starts_with(event, 'notes//fence') order by event`)
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

func (s *subject) effects() map[string][]string {
	rows, err := s.pool.Query(s.Context(), `select queue, array_agg(event order by place) from effects group by queue`)
	if err != nil {
		s.Fatal(err)
	}
	all := make(map[string][]string)
	var queue string
	var events []string
	if _, err := pgx.ForEachRow(rows, []any{&queue, &events}, func() error {
		all[queue] = slices.Clone(events)
		return nil
	}); err != nil {
		s.Fatal(err)
	}
	return all
}

// rows is what the tables are to hold.
func (m *model) rows() []row {
	all := []row{}
	for _, id := range slices.Sorted(maps.Keys(m.events)) {
		e := m.events[id]
		all = append(all, row{
			id, e.state, e.attempts, e.crashes, e.claimed, e.queued,
			e.state != idem.StateDone && e.state != idem.StateDiscarded,
		})
	}
	return all
}

// counts are those of Stats.
type counts struct{ Pending, Retrying, Unhandled, Failed, BlockedKeys int64 }

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
			c.Failed++
		}
	}
	for _, q := range m.queues() {
		all := q.waiting(m)
		first := slices.IndexFunc(all, func(e *modelEvent) bool { return e.state == idem.StateParked })
		pending := func(e *modelEvent) bool { return e.state == idem.StatePending }
		if first >= 0 && slices.ContainsFunc(all[first+1:], pending) {
			c.BlockedKeys++
		}
	}
	return c
}
