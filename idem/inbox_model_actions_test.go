package idem_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/paghooks/paghooks/idem"
)

// Whatever happens to an inbox, in whichever order, it is as its model says:
// each event has at most one effect, those of one key have theirs in order, and
// what was acknowledged is done in the end, or parked where one can see it.
//
// To look longer: go test -run TestInboxIsItsModel -rapid.checks=5000. To see a
// failure again: -rapid.seed, as it says.
func TestInboxIsItsModel(t *testing.T) {
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	if !asked {
		if err := flag.Set("rapid.checks", "60"); err != nil {
			t.Fatal(err)
		}
	}
	t.Parallel()
	s := newModelApp(t)
	rapid.Check(t, func(t *rapid.T) {
		m := &machine{modelApp: s, model: newModel()}
		s.clear()
		m.Restart(t)
		t.Repeat(rapid.StateMachineActions(m))
		m.drain(t)
	})
}

// machine does things to an inbox, and to its model.
type machine struct {
	*modelApp
	model *model
	names int
}

func (m *machine) newEvent(t *rapid.T) *modelEvent {
	m.names++
	return &modelEvent{
		id:        fmt.Sprintf("model-%03d", m.names),
		eventType: rapid.SampledFrom([]string{"paid", "paid", "paid", "odd"}).Draw(t, "type"),
		key:       rapid.SampledFrom([]string{"model-a", "model-b", "model-c", ""}).Draw(t, "key"),
		occurred:  rapid.SampledFrom([]int{-2, -1, 0, 0, 1}).Draw(t, "occurred"),
	}
}

// anEvent is one that is stored.
func (m *machine) anEvent(t *rapid.T) *modelEvent {
	if len(m.model.events) == 0 {
		t.Skip("there is none")
	}
	return m.model.events[rapid.SampledFrom(slices.Sorted(maps.Keys(m.model.events))).Draw(t, "event")]
}

func (m *machine) Deliver(t *rapid.T) {
	for range rapid.IntRange(1, 4).Draw(t, "events") {
		e := m.newEvent(t)
		want(t, e.id, m.accept(m.inbox, e), m.model.deliver(e))
	}
}

func (m *machine) DeliverConcurrentDuplicates(t *rapid.T) {
	e := m.newEvent(t)
	outcomes := make([]idem.Outcome, 5)
	var deliveries sync.WaitGroup
	for i := range outcomes {
		deliveries.Go(func() { outcomes[i] = m.accept(m.inbox, e) })
	}
	deliveries.Wait()
	wanted := []idem.Outcome{m.model.deliver(e)}
	for range outcomes[1:] {
		wanted = append(wanted, m.model.deliver(e))
	}
	slices.Sort(outcomes)
	slices.Sort(wanted)
	want(t, e.id, outcomes, wanted)
}

func (m *machine) Redeliver(t *rapid.T) {
	e := m.anEvent(t)
	want(t, e.id, m.accept(m.inbox, e), m.model.deliver(e))
}

func (m *machine) DeliverInline(t *rapid.T) {
	e := m.newEvent(t)
	want(t, e.id, m.accept(m.processor, e), m.model.deliverInline(e))
}

func (m *machine) RedeliverInline(t *rapid.T) {
	e := m.anEvent(t)
	want(t, e.id, m.accept(m.processor, e), m.model.deliverInline(e))
	m.GoOn(t)
}

// GoOn has the processor go on with what is held no more.
func (m *machine) GoOn(t *rapid.T) {
	m.processor.AwaitGoingOn()
	m.model.goOn(new(idem.Replayed))
	want(t, "the error of going on", m.processor.GoOn(m.Context()), nil)
}

// Fail has the next runs of handlers for one lane fail.
func (m *machine) Fail(t *rapid.T) {
	lane := m.anEvent(t).lane()
	mishaps := rapid.SliceOfN(rapid.SampledFrom([]mishap{
		mishapError, mishapError, mishapPanic, mishapSwallowed, mishapFinal, mishapLater, mishapAgain,
	}), 1, 4).Draw(t, "mishaps")
	m.model.mishaps[lane] = append(m.model.mishaps[lane], mishaps...)
	m.prepare(lane, mishaps)
}

// Step has workers work until there is nothing left to do.
func (m *machine) Step(t *rapid.T) {
	wanted := m.model.work()
	slices.Sort(wanted)
	want(t, "what the workers did", m.work(), wanted)
}

// Crash claims the first event of a lane, as a worker does, and dies.
func (m *machine) Crash(t *rapid.T) {
	e := modelLane(m.anEvent(t).lane()).head(m.model)
	if e == nil || e.state != idem.StatePending {
		t.Skip("no worker would take it")
	}
	if e.claimed {
		e.crashes++
	}
	e.claimed = true
	m.exec(fmt.Sprintf(`update idem_events set starts = starts + 1, crashes = crashes + (claimed_by is not null)::int,
		claimed_by = -1 where event = 'notes//%s'`, e.id))
}

// Restart starts the application again, maybe as another version.
func (m *machine) Restart(t *rapid.T) {
	m.model.deployment = deployment{
		odd:        rapid.SampledFrom([]string{"handled", "unhandled", "ignored"}).Draw(t, "odd"),
		passParked: rapid.Bool().Draw(t, "pass parked"),
	}
	m.start(m.model.deployment)
}

func (m *machine) filter(t *rapid.T) (f idem.Filter) {
	switch rapid.SampledFrom([]string{"all", "key", "id", "type"}).Draw(t, "filter") {
	case "key":
		f.Keys = []string{m.anEvent(t).key}
	case "id":
		f.IDs = []string{m.anEvent(t).id, m.anEvent(t).id}
	case "type":
		f.Types = []string{m.anEvent(t).eventType}
	}
	f.States = rapid.SampledFrom([][]idem.State{
		nil,
		{idem.StateParked},
		{idem.StatePending},
		{idem.StateRetrying},
		{idem.StateUnhandled, idem.StateParked, idem.StatePending, idem.StateRetrying},
	}).Draw(t, "states")
	return f
}

func (m *machine) Replay(t *rapid.T) {
	f := m.filter(t)
	var wanted idem.Replayed
	for _, e := range m.model.find(f) {
		m.model.replay(e, &wanted)
	}
	m.model.goOn(&wanted)
	got, err := m.processor.Replay(m.Context(), f)
	want(t, "replayed", counted(got), counted(wanted))
	want(t, "Replay's error", err, nil)
}

func (m *machine) DryReplay(t *rapid.T) {
	f := m.filter(t)
	var wanted idem.Replayed
	for _, e := range m.model.find(f) {
		if m.model.route(e) == "handled" {
			wanted.Done++
		} else {
			wanted.Unhandled++
		}
	}
	got, err := m.inbox.DryReplay(m.Context(), f)
	want(t, "replayed dry", counted(got), counted(wanted))
	want(t, "DryReplay's error", err, nil)
}

func (m *machine) Requeue(t *rapid.T) {
	f := m.filter(t)
	found := m.model.find(f)
	for _, e := range found {
		e.requeue()
	}
	n, err := m.inbox.Requeue(m.Context(), f)
	want(t, "requeued", n, int64(len(found)))
	want(t, "Requeue's error", err, nil)
}

func (m *machine) Discard(t *rapid.T) {
	f := m.filter(t)
	if f.IDs == nil && f.Keys == nil && f.Types == nil && f.States == nil {
		t.Skip("it names nothing")
	}
	found := m.model.find(f)
	for _, e := range found {
		e.state, e.inLane, e.held, e.claimed = idem.StateDiscarded, false, false, false
	}
	n, err := m.inbox.Discard(m.Context(), f, "by hand")
	want(t, "discarded", n, int64(len(found)))
	want(t, "Discard's error", err, nil)
}

// Age has an event have arrived 100 days ago.
func (m *machine) Age(t *rapid.T) {
	e := m.anEvent(t)
	e.aged = true
	m.exec(fmt.Sprintf(`update idem_events set received_at = received_at - interval '100 d' where event = 'notes//%s'`, e.id))
}

func (m *machine) Prune(t *rapid.T) {
	old := map[idem.State]bool{idem.StateDone: true, idem.StateUnhandled: true, idem.StateDiscarded: true}
	m.inbox.ParkedRetention = 0
	if rapid.Bool().Draw(t, "prune parked ones, too") {
		m.inbox.ParkedRetention, old[idem.StateParked] = 50*24*time.Hour, true
	}
	for _, e := range m.model.events { // by the first of the two runs
		if e.state == idem.StateRetrying && m.model.route(e) == "ignored" {
			e.state = idem.StateUnhandled
		}
	}
	var wanted int64
	maps.DeleteFunc(m.model.events, func(_ string, e *modelEvent) bool {
		forget := e.aged && old[e.state] && !e.held
		if forget {
			wanted++
		}
		return forget
	})
	m.exec(`delete from idem_prunes`) // what is aged was there
	n, err := m.prunedTwice(m.inbox)
	want(t, "pruned", n, wanted)
	want(t, "Prune's error", err, nil)
}

// Check compares the inbox with its model.
func (m *machine) Check(t *rapid.T) {
	want(t, "the tables", m.rows(), m.model.rows())
	want(t, "the effects", m.effects(), m.model.effects)
	m.mu.Lock()
	want(t, "the runs of handlers", m.runs, m.model.runs)
	m.mu.Unlock()
	stats, err := m.inbox.Stats(m.Context())
	want(t, "Stats's error", err, nil)
	want(t, "the stats", countsOf(stats), m.model.stats())
	want(t, "lanes whose first event is held back", m.stuck(), 0)
}

// drain works on all that there is, first as it comes and then again, with
// handlers that do not fail.
func (m *machine) drain(t *rapid.T) {
	clear(m.model.mishaps)
	m.prepare("", nil)
	m.model.odd = "handled"
	m.start(m.model.deployment)
	m.Step(t)
	m.Check(t)
	visible := make(map[string]bool)
	for stored, err := range m.inbox.List(m.Context(), idem.Filter{States: notDone}) {
		want(t, "List's error", err, nil)
		visible[stored.ID] = true
	}
	for id, e := range m.model.events {
		if done := e.state == idem.StateDone || e.state == idem.StateDiscarded; done == visible[id] {
			t.Errorf("%s is %s, and visible: %t", id, e.state, visible[id])
		}
	}
	if _, err := m.inbox.Requeue(m.Context(), idem.Filter{States: notDone}); err != nil {
		t.Fatal(err)
	}
	for _, e := range m.model.find(idem.Filter{States: notDone}) {
		e.requeue()
	}
	m.Step(t)
	m.Check(t)
	want(t, "events that are not done in the end", len(m.model.find(idem.Filter{States: notDone})), 0)
	want(t, "effects beyond the first", queryOne[int](m.app, `select count(*) - count(distinct event) from effects`), 0)
}

var notDone = []idem.State{idem.StatePending, idem.StateRetrying, idem.StateUnhandled, idem.StateParked}

func want(t *rapid.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}
