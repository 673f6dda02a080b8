package promises_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/testkit"
)

// Whatever happens to an inbox, in whichever order, it is as its model says:
// each event has at most one effect, those of one key have theirs in order, and
// what was acknowledged is done in the end, or parked where one can see it.
//
// This and the scripts are not parallel: where an event of another test has this process to itself, a first try does not
// begin, but is stored.
func TestInboxIsItsModel(t *testing.T) {
	tryHistories(t, 3, 20)
}

// tryHistories has random things happen to an inbox: some histories of some actions at most.
func tryHistories(t *testing.T, histories, most int) {
	s := newModelApp(t)
	testkit.Random(t, histories, func(r *rand.Rand) {
		m := s.machine(t, r)
		m.Restart()
		m.Check()
		names := slices.Sorted(maps.Keys(actions))
		for range 1 + r.IntN(most) {
			name := names[r.IntN(len(names))]
			m.happens(name, "")
			actions[name](m)
			m.Check()
		}
		m.drain()
	})
}

// machine is an inbox with empty tables, and its model.
func (s *modelApp) machine(t *testing.T, r *rand.Rand) *machine {
	empty := &modelApp{app: s.emptied(t), runs: make(map[string]int), mishaps: make(map[string][]mishap)}
	return &machine{modelApp: empty, model: newModel(), Rand: r}
}

func newModelApp(t *testing.T) *modelApp {
	t.Helper()
	s := &modelApp{app: openApp(t, poolOf(t, 10))}
	s.WorkersElsewhere("notes")
	s.Exec(`alter table effects add column place bigserial, add column lane text`)
	return s
}

// modelApp is the inbox that is compared with its model, on a real database.
type modelApp struct {
	*app
	settled []string // by the workers

	mu      sync.Mutex // also of what is settled
	runs    map[string]int
	mishaps map[string][]mishap
}

// start makes two inboxes on the same tables, one of which works first, as a process that
// starts does.
func (s *modelApp) start(d deployment) {
	source := &notes{}
	idem.Handle(&source.Routes, "paid", s.handle)
	idem.Handle(&source.Routes, "broken", s.handle)
	switch d.odd {
	case "handled":
		idem.Handle(&source.Routes, "odd", s.handle)
	case "ignored":
		source.Ignore("odd")
	}
	s.First = newFirst(s.Pool, source)
	s.First.Logger = nil
	s.First.PassParked = d.passParked
	s.Inbox = idem.NewInbox(s.Pool, source)
	s.Inbox.Logger = nil
	s.Inbox.Workers, s.Inbox.PollOnly = 1, true
	s.Inbox.MaxAttempts, s.Inbox.PassParked = modelAttempts, d.passParked
	s.Inbox.Backoff = func(int) time.Duration { return 0 }
	s.Inbox.Observe = func(_ context.Context, o idem.Observation) {
		if o.Stage == idem.StageAttempt {
			s.mu.Lock()
			s.settled = append(s.settled, o.Event.ID+" is "+string(o.Outcome))
			s.mu.Unlock()
		}
	}
}

// prepare has the next runs of handlers for an event, or a lane, fail; of none if there is
// nothing to fail with.
func (s *modelApp) prepare(name string, mishaps []mishap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mishaps == nil {
		clear(s.mishaps)
	}
	s.mishaps[name] = append(s.mishaps[name], mishaps...)
}

// handle has its effect first, and then fails if it is to.
func (s *modelApp) handle(ctx context.Context, tx pgx.Tx, n *note) error {
	lane := laneOf(n.Order, n.ID)
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

func (s *modelApp) next(id, lane string) mishap {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runs[id]++
	return nextMishap(s.mishaps, id, lane)
}

// accept delivers an event; the outcome tells of an error, too.
func (s *modelApp) accept(to *idem.Inbox, e *modelEvent) idem.Outcome {
	return s.acceptBody(to, e, false)
}

// acceptBody delivers an event, or another body with its id.
func (s *modelApp) acceptBody(to *idem.Inbox, e *modelEvent, other bool) idem.Outcome {
	event := idem.Event{
		ID: e.id, Type: e.eventType, Key: e.key,
		Payload: fmt.Appendf(nil, `{"id":%q,"type":%q,"order":%q}`, e.id, e.eventType, e.key),
	}
	if e.eventType == "broken" {
		event.Payload = []byte(`{"order":7}`)
	}
	if other {
		event.Payload = append(event.Payload, ' ')
	}
	if e.occurred != 0 {
		event.OccurredAt = time.Date(2050+50*e.occurred, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	outcome, err := to.Accept(s.Context(), event)
	if stored := outcome.Acknowledged(); stored != (err == nil) && outcome != idem.Parked {
		return idem.Outcome(fmt.Sprint(outcome, ": ", err))
	}
	return outcome
}

// work has workers work until nothing is left to do, with time passing between.
// It returns what was settled, sorted.
func (s *modelApp) work() (settled []string) {
	s.Helper()
	for before := -1; before < len(settled) || s.due() > 0; {
		before = len(settled)
		s.Exec(`update idem_payloads p set due_at = now() where due_at > now() and ` + notPaused)
		settled = append(settled, s.drained()...)
	}
	slices.Sort(settled)
	return settled
}

// notPaused are events that no pause has put off.
const notPaused = `not exists (select from idem_pauses x where x.until = p.due_at and x.ended_at is null)`

// drained has workers do what is due now, and returns what was settled, sorted.
func (s *modelApp) drained() []string {
	s.Helper()
	s.settled = nil
	if err := s.Inbox.Drain(s.Context()); err != nil {
		s.Fatal(err)
	}
	slices.Sort(s.settled)
	return s.settled
}

// due counts the lanes whose first event is due, and was not begun: it runs alone in this process, where other tests
// run events of theirs.
func (s *modelApp) due() int {
	return queryOne[int](s.app, `
select count(*) from (
	select distinct on (coalesce(lane, event)) event, due_at from idem_payloads
	order by coalesce(lane, event), coalesce(occurred_at, received_at), received_at, event) p
join idem_events using (event) where state = 'pending' and due_at is not null and `+notPaused)
}

// stuck counts the lanes whose first event nobody will find.
func (s *modelApp) stuck() int {
	return queryOne[int](s.app, `
select count(*) from (
	select distinct on (lane) event, due_at from idem_payloads where lane is not null
	order by lane, coalesce(occurred_at, received_at), received_at, event) head
join idem_events using (event) join idem_payloads p using (event) where state = 'pending' and p.due_at is null`)
}

func (s *modelApp) rows() []row {
	rows, err := s.Pool.Query(s.Context(), `
select event, state, attempts, crashes, claimed_by is not null, lane is not null, body is not null, conflict_at is not null
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
	rows, err := s.Pool.Query(s.Context(), `select lane, array_agg(event order by place) from effects group by lane`)
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
			e.state != idem.StateDone && e.state != idem.StateDiscarded, e.conflict,
		})
	}
	return all
}

// row is an event as the tables hold it.
type row struct {
	ID                                 string
	State                              idem.State
	Attempts, Crashes                  int
	Claimed, InLane, Payload, Conflict bool
}

// machine does things to an inbox, and to its model.
type machine struct {
	*modelApp
	*rand.Rand
	model    *model
	names    int
	happened []string
}

// actions are the things that it does.
var actions = map[string]func(*machine){
	"deliver": (*machine).Deliver, "deliver concurrent duplicates": (*machine).DeliverConcurrentDuplicates, "redeliver": (*machine).Redeliver,
	"deliver first": (*machine).DeliverFirst, "redeliver first": (*machine).RedeliverFirst,
	"fail": (*machine).Fail, "step": (*machine).Step, "crash": (*machine).Crash, "restart": (*machine).Restart,
	"replay": (*machine).Replay, "replay dry": (*machine).DryReplay, "requeue": (*machine).Requeue, "discard": (*machine).Discard,
	"age": (*machine).Age, "prune": (*machine).Prune,
}

// happens notes what is done, for a failure.
func (m *machine) happens(what string, with any) {
	m.happened = append(m.happened, fmt.Sprintf("%s %+v", what, with))
}

func (m *machine) newEvent() *modelEvent {
	m.names++
	e := &modelEvent{
		id:        fmt.Sprintf("model-%03d", m.names),
		eventType: testkit.Pick(m.Rand, "paid", "paid", "paid", "odd"),
		key:       testkit.Pick(m.Rand, "model-a", "model-b", "model-c", ""),
		occurred:  testkit.Pick(m.Rand, -2, -1, 0, 0, 1),
	}
	m.happens("  new", *e)
	return e
}

// anEvent is one that is stored. If there is none, some are delivered; ignored ones are not stored.
func (m *machine) anEvent() *modelEvent {
	for len(m.model.events) == 0 {
		m.Deliver()
	}
	id := testkit.Pick(m.Rand, slices.Sorted(maps.Keys(m.model.events))...)
	m.happens("  of", id)
	return m.model.events[id]
}

func (m *machine) Deliver() {
	for range 1 + m.IntN(4) {
		e := m.newEvent()
		m.want(e.id, m.accept(m.Inbox, e), m.model.deliver(e))
	}
}

func (m *machine) DeliverConcurrentDuplicates() {
	e := m.newEvent()
	outcomes := make([]idem.Outcome, 5)
	var deliveries sync.WaitGroup
	for i := range outcomes {
		deliveries.Go(func() { outcomes[i] = m.accept(m.Inbox, e) })
	}
	deliveries.Wait()
	wanted := []idem.Outcome{m.model.deliver(e)}
	for range outcomes[1:] {
		wanted = append(wanted, m.model.deliver(e))
	}
	slices.Sort(outcomes)
	slices.Sort(wanted)
	m.want(e.id, outcomes, wanted)
}

func (m *machine) Redeliver() {
	e := m.anEvent()
	m.want(e.id, m.accept(m.Inbox, e), m.model.deliver(e))
}

func (m *machine) DeliverFirst() {
	for range 1 + m.IntN(4) {
		e := m.newEvent()
		m.want(e.id, m.accept(m.First, e), m.model.deliverFirst(e))
	}
}

func (m *machine) RedeliverFirst() {
	e := m.anEvent()
	m.want(e.id, m.accept(m.First, e), m.model.deliverFirst(e))
}

// Fail has the next runs of handlers for one lane fail.
func (m *machine) Fail() {
	lane := m.anEvent().lane()
	var mishaps []mishap
	for range 1 + m.IntN(4) {
		mishaps = append(mishaps, testkit.Pick(m.Rand,
			mishapError, mishapError, mishapPanic, mishapSwallowed, mishapFinal, mishapLater, mishapAgain))
	}
	m.happens("  with", mishaps)
	m.model.mishaps[lane] = append(m.model.mishaps[lane], mishaps...)
	m.prepare(lane, mishaps)
}

// Step has workers work until there is nothing left to do.
func (m *machine) Step() {
	wanted := m.model.work()
	slices.Sort(wanted)
	m.want("what the workers did", m.work(), wanted)
}

// Crash claims the first event of a lane, as a worker does, and dies.
func (m *machine) Crash() {
	if e := modelLane(m.anEvent().lane()).head(m.model); e != nil && e.state == idem.StatePending { // else no worker would take it
		m.crash(e)
	}
}

// crash claims an event, as a worker does, and dies.
func (m *machine) crash(e *modelEvent) {
	if e.claimed {
		e.crashes++
	}
	e.claimed = true
	m.Exec(fmt.Sprintf(`update idem_events set starts = starts + 1, crashes = crashes + (claimed_by is not null)::int,
		claimed_by = -1 where event = 'notes//%s'`, e.id))
}

// Restart starts the application again, maybe as another version.
func (m *machine) Restart() {
	m.model.deployment = deployment{
		odd:        testkit.Pick(m.Rand, "handled", "unhandled", "ignored"),
		passParked: testkit.Pick(m.Rand, false, true),
	}
	m.happens("  with", m.model.deployment)
	m.start(m.model.deployment)
}

func (m *machine) filter() (f idem.Filter) {
	switch testkit.Pick(m.Rand, "all", "key", "id", "type") {
	case "key":
		f.Keys = []string{m.anEvent().key}
	case "id":
		f.IDs = []string{m.anEvent().id, m.anEvent().id}
	case "type":
		f.Types = []string{m.anEvent().eventType}
	}
	f.States = testkit.Pick(m.Rand,
		nil,
		[]idem.State{idem.StateParked},
		[]idem.State{idem.StatePending},
		[]idem.State{idem.StateUnhandled, idem.StateParked, idem.StatePending},
	)
	m.happens("  those", f)
	return f
}

func (m *machine) Replay()    { m.replay(m.filter()) }
func (m *machine) DryReplay() { m.replayDry(m.filter()) }
func (m *machine) Requeue()   { m.requeue(m.filter()) }
func (m *machine) Discard()   { m.discard(m.filter()) }

func (m *machine) replay(f idem.Filter) {
	var wanted idem.Replayed
	for _, e := range m.model.find(f) {
		m.model.replay(e, &wanted)
	}
	got, err := m.First.Replay(m.Context(), f)
	m.want("replayed", counted(got), counted(wanted))
	m.want("Replay's error", err, nil)
}

func (m *machine) replayDry(f idem.Filter) {
	var wanted idem.Replayed
	for _, e := range m.model.find(f) {
		switch m.model.route(e) {
		case "handled":
			wanted.Done++
		case "broken":
			wanted.Failed++
		default:
			wanted.Unhandled++
		}
	}
	got, err := m.Inbox.DryReplay(m.Context(), f)
	m.want("replayed dry", counted(got), counted(wanted))
	m.want("DryReplay's error", err, nil)
}

func (m *machine) requeue(f idem.Filter) {
	found := m.model.find(f)
	for _, e := range found {
		e.requeue()
	}
	n, err := m.Inbox.Requeue(m.Context(), f)
	m.want("requeued", n, int64(len(found)))
	m.want("Requeue's error", err, nil)
}

func (m *machine) discard(f idem.Filter) {
	if f.IDs == nil && f.Keys == nil && f.Types == nil && f.States == nil {
		return // it names nothing
	}
	found := m.model.find(f)
	for _, e := range found {
		e.state, e.inLane, e.claimed = idem.StateDiscarded, false, false
	}
	n, err := m.Inbox.Discard(m.Context(), f, "by hand")
	m.want("discarded", n, int64(len(found)))
	m.want("Discard's error", err, nil)
}

// Age has an event have arrived 100 days ago.
func (m *machine) Age() {
	e := m.anEvent()
	e.aged = true
	m.Exec(fmt.Sprintf(`update idem_events set received_at = received_at - interval '100 d' where event = 'notes//%s'`, e.id))
}

func (m *machine) Prune() {
	old := map[idem.State]bool{idem.StateDone: true, idem.StateUnhandled: true, idem.StateDiscarded: true}
	m.Inbox.Retention.Parked = 0
	if testkit.Pick(m.Rand, false, true) {
		m.happens("  parked ones, too", "")
		m.Inbox.Retention.Parked, old[idem.StateParked] = 50*24*time.Hour, true
	}
	var wanted int64
	maps.DeleteFunc(m.model.events, func(_ string, e *modelEvent) bool {
		forget := e.aged && old[e.state]
		if forget {
			wanted++
		}
		return forget
	})
	m.Exec(`delete from idem_prunes`) // what is aged was there
	n, err := m.prunedTwice(m.Inbox)
	m.want("pruned", n, wanted)
	m.want("Prune's error", err, nil)
}

// Check compares the inbox with its model.
func (m *machine) Check() {
	m.want("the tables", m.rows(), m.model.rows())
	m.want("the effects", m.effects(), m.model.effects)
	m.mu.Lock()
	m.want("the runs of handlers", m.runs, m.model.runs)
	m.mu.Unlock()
	stats, err := m.Inbox.Stats(m.Context())
	m.want("Stats's error", err, nil)
	m.want("the stats", countsOf(stats), m.model.stats())
	m.want("lanes whose first event is held back", m.stuck(), 0)
}

// drain works on all that there is, first as it comes and then again, with
// handlers that do not fail.
func (m *machine) drain() {
	clear(m.model.mishaps)
	m.prepare("", nil)
	m.model.odd = "handled"
	m.start(m.model.deployment)
	m.Step()
	m.Check()
	visible := make(map[string]bool)
	for stored, err := range m.Inbox.List(m.Context(), idem.Filter{States: notDone}) {
		m.want("List's error", err, nil)
		visible[stored.ID] = true
	}
	for id, e := range m.model.events {
		if done := e.state == idem.StateDone || e.state == idem.StateDiscarded; done == visible[id] {
			m.Errorf("%s is %s, and visible: %t", id, e.state, visible[id])
		}
	}
	if _, err := m.Inbox.Requeue(m.Context(), idem.Filter{States: notDone}); err != nil {
		m.Fatal(err)
	}
	for _, e := range m.model.find(idem.Filter{States: notDone}) {
		e.requeue()
	}
	m.Step()
	m.Check()
	m.want("events that are not done in the end", len(m.model.find(idem.Filter{States: notDone})), 0)
	m.want("effects beyond the first", queryOne[int](m.app, `select count(*) - count(distinct event) from effects`), 0)
}

func (m *machine) want(what string, got, want any) {
	m.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateErrors()); diff != "" {
		m.Fatalf("%s (-want +got):\n%s\nwhat happened:\n %s", what, diff, strings.Join(m.happened, "\n "))
	}
}

func (m *model) stats() (c counts) {
	for _, e := range m.events {
		switch e.state {
		case idem.StatePending:
			c.Pending++
		case idem.StateUnhandled:
			c.Unhandled++
		case idem.StateParked:
			c.Parked++
		}
	}
	for _, lane := range m.lanes() {
		if all := lane.waiting(m); len(all) > 1 && (all[0].state != idem.StatePending || all[0].later) {
			c.BlockedKeys++
		}
	}
	return c
}

// counts are those of Stats.
type counts struct{ Pending, Unhandled, Parked, BlockedKeys int64 }

func countsOf(s idem.Stats) counts {
	return counts{s.Pending.Events, s.Unhandled.Events, s.Parked.Events, s.BlockedKeys}
}

var notDone = []idem.State{idem.StatePending, idem.StateUnhandled, idem.StateParked}
