package promises_test

import (
	"cmp"
	"maps"
	"slices"

	"github.com/paghooks/paghooks/idem"
)

// model is the promise of the inbox, without a database: a map from an event's
// id to its state, and what the handlers have done. TestInboxIsItsModel and the
// scripts compare the two after every action.
type model struct {
	deployment

	clock   int // ticks with every event that is stored: the order of arrival
	events  map[string]*modelEvent
	runs    map[string]int      // of handlers, by id
	effects map[string][]string // ids in order, by lane
	mishaps map[string][]mishap // in store for the next runs of handlers, by id or by lane
	pauses  map[modelPause]bool
}

// modelPause pauses the events of a type, of an entity, or of both; "" is any.
type modelPause struct{ eventType, key string }

func (m *model) paused(e *modelEvent) bool {
	for p := range m.pauses {
		if (p.eventType == "" || p.eventType == e.eventType) && (p.key == "" || p.key == e.key) {
			return true
		}
	}
	return false
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
	}
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
	crashes := e.crashes
	e.requeue()
	e.crashes = crashes
	return idem.Pending
}

// conflict is a delivery of another body with the id of a stored event.
func (m *model) conflict(e *modelEvent) idem.Outcome {
	e.conflict = true
	return m.deliver(e)
}

// deliverFirst is a delivery to an inbox that works first, on the same tables, beside workers.
func (m *model) deliverFirst(e *modelEvent) idem.Outcome {
	switch route := m.route(e); {
	case route == "ignored":
		return idem.Ignored
	case route == "unhandled" && e.state == "":
		m.store(e)
		e.state = idem.StateUnhandled
		return idem.Unhandled
	case route == "broken" && e.state == "":
		m.store(e)
		return m.park(e)
	case route == "unhandled", route == "broken":
		return idem.Duplicate
	case e.state != "":
		return m.deliver(e)
	}
	m.store(e)
	if !m.paused(e) && !m.waits(e) && m.run(e) == "" {
		return m.succeed(e)
	}
	e.requeue()
	return idem.Pending
}

// pass takes what is parked out of its lane, where parked events are passed.
func (m *model) pass() {
	for _, e := range m.events {
		if m.passParked && e.state == idem.StateParked {
			e.inLane = false
		}
	}
}

// replay does as Replay does with an event that it has found, beside workers.
func (m *model) replay(e *modelEvent, total *idem.Replayed) {
	if e.claimed { // by a worker that has died
		e.claimed = false
		e.crashes++
	}
	switch route := m.route(e); {
	case route == "broken":
		total.Failed++
		e.attempts++
		m.park(e)
	case route != "handled":
		total.Unhandled++
	case m.waits(e) && e.state == idem.StatePending:
		total.Left++
	case m.waits(e):
		total.Failed++
	case m.run(e) == "":
		m.succeed(e)
		total.Done++
	default:
		total.Failed++
		e.attempts++
		e.crashes = 0
		m.park(e)
	}
}

// waits reports whether an earlier event of e's lane is not done.
func (m *model) waits(e *modelEvent) bool {
	head := modelLane(e.lane()).head(m)
	return head != nil && inOrder(head, e) < 0
}

func (m *model) route(e *modelEvent) string {
	switch e.eventType {
	case "odd":
		return m.odd
	case "broken": // it does not decode
		return "broken"
	}
	return "handled"
}

// run returns the result of the handler's runs for one attempt: what Postgres asks to
// run again is, up to four times.
func (m *model) run(e *modelEvent) (met mishap) {
	for runs := 1; ; runs++ {
		m.runs[e.id]++
		met = nextMishap(m.mishaps, e.id, e.lane())
		if met != mishapAgain || runs == 4 {
			return met
		}
	}
}

// nextMishap takes the next mishap of an event, or of its lane.
func nextMishap(mishaps map[string][]mishap, id, lane string) mishap {
	for _, name := range []string{id, lane} {
		if rest := mishaps[name]; len(rest) > 0 {
			mishaps[name] = rest[1:]
			return rest[0]
		}
	}
	return ""
}

func (m *model) succeed(e *modelEvent) idem.Outcome {
	m.effects[e.lane()] = append(m.effects[e.lane()], e.id)
	return e.finish()
}

// work does as workers do while time passes, until there is nothing left to do: each lane goes on
// until it is empty, or its first event is parked or paused. It returns what is observed.
func (m *model) work() (observed []string) {
	for again := true; again; {
		for _, e := range m.events {
			e.later = false
		}
		before := len(observed)
		observed = append(observed, m.drain()...)
		again = len(observed) > before
	}
	return observed
}

// drain is work in no time: it leaves events that are due later.
func (m *model) drain() (observed []string) {
	m.pass()
	for _, lane := range m.lanes() {
		for e := lane.head(m); e != nil && e.state == idem.StatePending && !e.later && !m.paused(e); e = lane.head(m) {
			observed = append(observed, e.id+" is "+string(m.workOn(e)))
		}
		if e := lane.head(m); e != nil && e.state == idem.StatePending && m.paused(e) {
			e.later = true
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
		e.state, e.inLane = idem.StateUnhandled, false
		return idem.Unhandled
	case "broken":
		e.attempts++
		return m.park(e)
	}
	met := m.run(e)
	if met != "" {
		e.crashes = 0 // its handler returned: it kills no process
	}
	switch {
	case met == "":
		return m.succeed(e)
	case met == mishapLater, met == mishapAgain: // not the event's fault: nothing is counted
		e.later = true
		return idem.Retrying
	case met == mishapFinal, e.attempts+1 >= modelAttempts:
		e.attempts++
		return m.park(e)
	}
	e.attempts++
	return idem.Retrying
}

func (m *model) park(e *modelEvent) idem.Outcome {
	e.state, e.inLane = idem.StateParked, !m.passParked
	return idem.Parked
}

func (m *model) lanes() []modelLane {
	names := make(map[modelLane]bool)
	for _, e := range m.events {
		names[modelLane(e.lane())] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// find lists the events that a filter chooses, in the order of lanes.
func (m *model) find(f idem.Filter) (found []*modelEvent) {
	states := f.States
	if states == nil {
		states = []idem.State{idem.StateUnhandled, idem.StateParked}
	}
	for _, e := range m.events {
		isOpen := e.state != idem.StateDone && e.state != idem.StateDiscarded
		if isOpen && slices.Contains(states, e.state) && chosen(f.Keys, e.key) && chosen(f.IDs, e.id) && chosen(f.Types, e.eventType) {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, inOrder)
	return found
}

// deployment holds the settings that may differ from one start of the application to the next.
type deployment struct {
	odd        string // what becomes of events of type "odd": handled, unhandled or ignored
	passParked bool
}

type modelEvent struct {
	id, eventType, key string
	occurred           int // the provider's time: before (-) or after (+) all arrivals; 0 is not said

	state             idem.State // "" until it is stored
	attempts, crashes int
	claimed           bool // by a worker that has died
	later             bool // it is due later
	conflict          bool // another body came with its id
	inLane            bool // its later ones wait for it
	stored            int  // when it came
	aged              bool // arrived longer ago than events are kept
}

func (e *modelEvent) lane() string { return laneOf(e.key, e.id) }

// laneOf names a lane: an event without an entity has one of its own.
func laneOf(key, id string) string {
	if key == "" {
		return "event " + id
	}
	return "entity " + key
}

// at decides about the place in the lane.
func (e *modelEvent) at() int {
	if e.occurred != 0 {
		return e.occurred * 1_000_000
	}
	return e.stored
}

// requeue makes an event pending, as if it were new.
func (e *modelEvent) requeue() {
	e.state, e.inLane = idem.StatePending, true
	e.attempts, e.crashes, e.claimed, e.later = 0, 0, false, false
}

func (e *modelEvent) finish() idem.Outcome {
	e.state, e.inLane, e.claimed = idem.StateDone, false, false
	return idem.Done
}

// mishap is a way in which a run of a handler fails; "" is none.
type mishap string

const (
	mishapError     mishap = "an error"
	mishapPanic     mishap = "a panic"
	mishapSwallowed mishap = "an SQL error that the handler swallows"
	mishapFinal     mishap = "never retry this"
	mishapLater     mishap = "try again at a time"
	mishapAgain     mishap = "a serialization failure"
)

// The limits that are met within a few actions.
const (
	modelAttempts = 3
	modelCrashes  = 3
)

// modelLane is a lane's name.
type modelLane string

// head is the first event of the lane; nil if it is empty.
func (l modelLane) head(m *model) *modelEvent {
	if all := l.waiting(m); len(all) > 0 {
		return all[0]
	}
	return nil
}

func (l modelLane) waiting(m *model) (all []*modelEvent) {
	for _, e := range m.events {
		if e.inLane && e.lane() == string(l) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, inOrder)
	return all
}

func inOrder(a, b *modelEvent) int {
	return cmp.Or(cmp.Compare(a.at(), b.at()), cmp.Compare(a.stored, b.stored))
}

func chosen(among []string, name string) bool { return among == nil || slices.Contains(among, name) }

func newModel() *model {
	return &model{
		events:  make(map[string]*modelEvent),
		runs:    make(map[string]int),
		effects: make(map[string][]string),
		mishaps: make(map[string][]mishap),
		pauses:  make(map[modelPause]bool),
	}
}
