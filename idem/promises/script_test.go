package promises_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// A script is a history that somebody has thought of: what happens to an inbox, and what is so in the end. It happens to
// the model and to the database, which are compared after each action.
//
//	deliver a; deliver b; fail a; work; discard a; work → a discarded, ledger b
//
// An event is of the type paid and of the entity o1 unless its first delivery says something else; events that the end does
// not name are done, or not stored. The ledger has the effects in their order within each entity.
type script struct{ reason, text string }

// scriptVerbs are what can happen, with the words that follow: an event, mostly.
var scriptVerbs = map[string]func(m *machine, words []string){
	// deliver a [paid|odd|broken] [o2|alone] [early|late]: the body of a broken one does not decode
	"deliver": func(m *machine, words []string) {
		e := m.event(words)
		m.want(e.id, m.accept(m.Inbox, e), m.model.deliver(e))
	},
	// first: the same, to an inbox that works first beside workers that are alive
	"first": func(m *machine, words []string) {
		e := m.event(words)
		m.want(e.id, m.accept(m.First, e), m.model.deliverFirst(e))
	},
	// mistake a: another body comes with its id
	"mistake": func(m *machine, words []string) {
		e := m.event(words)
		m.want(e.id, m.acceptBody(m.Inbox, e, true), m.model.conflict(e))
	},
	// fail a [how] …: so end the next runs of its handler; for good, if nothing is said
	"fail": func(m *machine, words []string) {
		var mishaps []mishap
		for _, how := range words[1:] {
			if fails[how] == "" {
				m.Fatalf("nothing fails with %q", how)
			}
			mishaps = append(mishaps, fails[how])
		}
		if mishaps == nil {
			mishaps = []mishap{mishapFinal}
		}
		m.model.mishaps[words[0]] = append(m.model.mishaps[words[0]], mishaps...)
		m.prepare(words[0], mishaps)
	},
	// work: workers do what is due, and time passes, until nothing is left to do
	"work": func(m *machine, _ []string) { m.Step() },
	// drain: workers do what is due now
	"drain": func(m *machine, _ []string) {
		wanted := m.model.drain()
		slices.Sort(wanted)
		m.want("what the workers did", m.drained(), wanted)
	},
	// crash a: a worker that has claimed it dies
	"crash": func(m *machine, words []string) { m.crash(m.event(words)) },
	// replay, dry, requeue, discard: what the words choose
	"replay":  func(m *machine, words []string) { m.replay(m.those(words)) },
	"dry":     func(m *machine, words []string) { m.replayDry(m.those(words)) },
	"requeue": func(m *machine, words []string) { m.requeue(m.those(words)) },
	"discard": func(m *machine, words []string) { m.discard(m.those(words)) },
	// pause and resume: everything, a type, an entity, or a type of an entity
	"pause": func(m *machine, words []string) {
		p := those(words)
		m.model.pauses[p] = true
		m.pausing(operator.Pause{Type: p.eventType, Key: p.key}, time.Hour)
	},
	"resume": func(m *machine, words []string) {
		p := those(words)
		delete(m.model.pauses, p)
		m.want("the error of the resume", m.resuming(operator.Pause{Type: p.eventType, Key: p.key}), nil)
		for _, e := range m.model.events {
			e.later = false
		}
	},
	// deploy: odd events are handled, unhandled or ignored from now on, or parked ones are passed
	"deploy": func(m *machine, words []string) {
		for _, word := range words {
			if m.model.passParked = m.model.passParked || word == "pass"; word != "pass" {
				m.model.odd = word
			}
		}
		m.start(m.model.deployment)
	},
}

// fails are the ways in which a run of a handler fails.
var fails = map[string]mishap{
	"error": mishapError, "panic": mishapPanic, "swallowed": mishapSwallowed,
	"final": mishapFinal, "later": mishapLater, "again": mishapAgain,
}

// event is one that is stored, or a new one.
func (m *machine) event(words []string) *modelEvent {
	m.Helper()
	if e := m.model.events[words[0]]; e != nil {
		return e
	}
	e := &modelEvent{id: words[0], eventType: "paid", key: "o1"}
	for _, word := range words[1:] {
		switch {
		case word == "early":
			e.occurred = -1
		case word == "late":
			e.occurred = 1
		case word == "alone":
			e.key = ""
		case isEntity(word):
			e.key = word
		default:
			e.eventType = word
		}
	}
	return e
}

func isEntity(word string) bool { return len(word) == 2 && word[0] == 'o' }

// those is a filter of states, entities, types and ids; of all that is in the default states, if there are no words.
func (m *machine) those(words []string) (f idem.Filter) {
	for _, word := range words {
		switch {
		case slices.Contains([]string{"pending", "parked", "unhandled", "done", "discarded"}, word):
			f.States = append(f.States, idem.State(word))
		case isEntity(word):
			f.Keys = append(f.Keys, word)
		case word == "paid", word == "odd", word == "broken":
			f.Types = append(f.Types, word)
		default:
			f.IDs = append(f.IDs, word)
		}
	}
	return f
}

// those is a type, an entity or both.
func those(words []string) (p modelPause) {
	for _, word := range words {
		if isEntity(word) {
			p.key = word
		} else {
			p.eventType = word
		}
	}
	return p
}

// play plays scripts, one after the other, on one database.
func play(t *testing.T, scripts ...script) {
	t.Helper()
	s := newModelApp(t)
	for _, c := range scripts {
		t.Run(c.reason, func(t *testing.T) {
			m := s.machine(t, nil)
			m.model.odd = "unhandled"
			m.start(m.model.deployment)
			text, end, ok := strings.Cut(c.text, " → ")
			if !ok {
				t.Fatal("the script has no end")
			}
			for action := range strings.SplitSeq(text, "; ") {
				words := strings.Fields(action)
				verb, ok := scriptVerbs[words[0]]
				if !ok {
					t.Fatalf("there is no verb %q", words[0])
				}
				m.happens(action, "")
				verb(m, words[1:])
				m.Check()
			}
			m.ends(end)
		})
	}
}

// ends checks the end of a script.
func (m *machine) ends(end string) {
	m.Helper()
	states, ledger := make(map[string]string), make(map[string][]string)
	for id := range m.model.events {
		states[id] = "done"
	}
	for said := range strings.SplitSeq(end, ", ") {
		words := strings.Fields(said)
		if words[0] != "ledger" {
			states[words[0]] = words[1]
			continue
		}
		for _, id := range words[1:] {
			lane := m.event([]string{id}).lane()
			ledger[lane] = append(ledger[lane], id)
		}
	}
	got := make(map[string]string)
	for _, row := range m.rows() {
		got[row.ID] = string(row.State)
	}
	m.want("the states in the end", got, states)
	m.want("the ledger", m.effects(), ledger)
}
