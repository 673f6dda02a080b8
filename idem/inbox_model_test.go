package idem_test

import (
	"cmp"
	"maps"
	"slices"

	"github.com/paghooks/paghooks/idem"
)

// model is what the inbox promises, without a database: a map from an event's
// id to its state, and what the handlers have done. TestInboxIsItsModel
// compares the two after every action.
type model struct {
	deployment

	clock   int // ticks with every event that is stored: the order of arrival
	events  map[string]*modelEvent
	runs    map[string]int      // of handlers, by id
	effects map[string][]string // ids in order, by queue
	mishaps map[string][]mishap // in store for the next runs of handlers, by queue
}

// deployment is what may differ from one start of the application to the next.
type deployment struct {
	odd         string // what becomes of events of type "odd": handled, unhandled or ignored
	passFailed  bool
	handToInbox bool
}

// The limits that are met within a few actions.
const (
	modelAttempts  = 3
	modelCrashes   = 2
	modelParkAfter = 3
)

// mishap is how a run of a handler fails; "" is not at all.
type mishap string

const (
	mishapError     mishap = "an error"
	mishapPanic     mishap = "a panic"
	mishapSwallowed mishap = "an SQL error that the handler swallows"
	mishapFinal     mishap = "never retry this"
	mishapLater     mishap = "try again at a time"
	mishapAgain     mishap = "a serialization failure"
)

type modelEvent struct {
	id, eventType, key string
	occurred           int // the provider's time: before (-) or after (+) all arrivals; 0 is not said

	state             idem.State // "" until it is stored
	attempts, crashes int
	claimed           bool // by a worker that has died
	queued            bool // has a place in its queue
	stored, placed    int  // when it got its row, and its place
	aged              bool // arrived longer ago than events are kept
}

func (e *modelEvent) queue() string { return cmp.Or(e.key, e.id) }

// at is what decides about the place in the queue.
func (e *modelEvent) at() int {
	if e.occurred != 0 {
		return e.occurred * 1_000_000
	}
	return e.placed
}

func inQueue(a, b *modelEvent) int {
	return cmp.Or(cmp.Compare(a.at(), b.at()), cmp.Compare(a.placed, b.placed))
}

func byArrival(a, b *modelEvent) int { return cmp.Compare(a.stored, b.stored) }

func newModel() *model {
	return &model{
		events:  make(map[string]*modelEvent),
		runs:    make(map[string]int),
		effects: make(map[string][]string),
		mishaps: make(map[string][]mishap),
	}
}

func (m *model) tick() int {
	m.clock++
	return m.clock
}

// store gives a new event its row.
func (m *model) store(e *modelEvent) {
	if m.events[e.id] == nil {
		m.events[e.id] = e
		e.stored = m.tick()
		e.placed = e.stored
	}
}

// enqueue makes an event pending. One that has a place in its queue keeps it.
func (m *model) enqueue(e *modelEvent) {
	if !e.queued {
		e.queued, e.placed = true, m.tick()
	}
	e.state = idem.StatePending
}

// deliver is a delivery to the inbox.
func (m *model) deliver(e *modelEvent) idem.Outcome {
	switch {
	case m.route(e) == "ignored":
		return idem.Ignored
	case e.state == idem.StatePending, e.state == idem.StateDone, e.state == idem.StateDiscarded:
		return idem.Duplicate
	}
	m.store(e)
	m.enqueue(e)
	e.attempts, e.crashes, e.claimed = 0, 0, false
	return idem.Pending
}

// deliverInline is a delivery to a processor on the same tables.
func (m *model) deliverInline(e *modelEvent) idem.Outcome {
	switch route := m.route(e); {
	case route == "ignored":
		return idem.Ignored
	case route == "unhandled" && (e.state == "" || e.state == idem.StateRetrying):
		m.store(e)
		e.state = idem.StateUnhandled
		return idem.Unhandled
	case route == "unhandled", e.state == idem.StateDone, e.state == idem.StateDiscarded:
		return idem.Duplicate
	}
	m.store(e)
	met := m.run(e)
	if met == "" {
		return m.succeed(e)
	}
	e.attempts++
	switch parkAfter := modelParkAfter; {
	case e.state == idem.StatePending:
		return idem.Pending
	case met == mishapFinal:
	case (e.state == "" || e.state == idem.StateRetrying) && e.attempts < parkAfter:
		e.state = idem.StateRetrying
		return idem.Retrying
	case m.handToInbox:
		m.enqueue(e)
		return idem.Pending
	}
	e.state = idem.StateParked
	return idem.Parked
}

func (m *model) route(e *modelEvent) string {
	if e.eventType == "odd" {
		return m.odd
	}
	return "handled"
}

// run is what the handler's runs for one attempt come to: what Postgres asks to
// run again is, up to four times.
func (m *model) run(e *modelEvent) (met mishap) {
	for runs := 1; ; runs++ {
		m.runs[e.id]++
		met = ""
		if rest := m.mishaps[e.queue()]; len(rest) > 0 {
			met, m.mishaps[e.queue()] = rest[0], rest[1:]
		}
		if met != mishapAgain || runs == 4 {
			return met
		}
	}
}

func (m *model) succeed(e *modelEvent) idem.Outcome {
	m.effects[e.queue()] = append(m.effects[e.queue()], e.id)
	return e.finish()
}

func (e *modelEvent) finish() idem.Outcome {
	e.state, e.queued, e.claimed = idem.StateDone, false, false
	return idem.Done
}

// work is what workers do until there is nothing left to do: each queue goes on
// until it is empty or its first event has failed for good. It returns what is
// observed, in the order of each queue.
func (m *model) work() (observed []string) {
	for _, queue := range m.queues() {
		for e := queue.head(m); e != nil && e.state == idem.StatePending; e = queue.head(m) {
			observed = append(observed, e.id+" is "+string(m.workOn(e)))
		}
	}
	return observed
}

func (m *model) workOn(e *modelEvent) idem.Outcome {
	if e.claimed {
		e.claimed = false
		e.crashes++
	}
	if e.crashes >= modelCrashes {
		return m.park(e)
	}
	switch m.route(e) {
	case "ignored":
		return e.finish()
	case "unhandled":
		e.state, e.queued = idem.StateUnhandled, false
		return idem.Unhandled
	}
	switch met := m.run(e); {
	case met == "":
		return m.succeed(e)
	case met == mishapFinal, met != mishapLater && e.attempts+1 >= modelAttempts:
		e.attempts++
		return m.park(e)
	case met != mishapLater:
		e.attempts++
	}
	return idem.Retrying
}

func (m *model) park(e *modelEvent) idem.Outcome {
	e.state, e.queued = idem.StateParked, !m.passFailed
	return idem.Parked
}

// modelQueue is a queue's name.
type modelQueue string

func (m *model) queues() []modelQueue {
	names := make(map[modelQueue]bool)
	for _, e := range m.events {
		names[modelQueue(e.queue())] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// head is the first event of the queue; nil if it is empty.
func (q modelQueue) head(m *model) *modelEvent {
	if all := q.waiting(m); len(all) > 0 {
		return all[0]
	}
	return nil
}

func (q modelQueue) waiting(m *model) (all []*modelEvent) {
	for _, e := range m.events {
		if e.queued && e.queue() == string(q) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, inQueue)
	return all
}

// find lists the events that a filter chooses, in the order of arrival.
func (m *model) find(f idem.Filter) (found []*modelEvent) {
	states := f.States
	if states == nil {
		states = []idem.State{idem.StateUnhandled, idem.StateParked}
	}
	for _, e := range m.events {
		if slices.Contains(states, e.state) && chosen(f.Keys, e.key) && chosen(f.IDs, e.id) && chosen(f.Types, e.eventType) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, byArrival)
	return found
}

func chosen(among []string, name string) bool { return among == nil || slices.Contains(among, name) }
