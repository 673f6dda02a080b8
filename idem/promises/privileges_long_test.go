//go:build long

package promises_test

import (
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem"
)

// However an event came to be done, its body is in the archive then, with its
// times, and nowhere else.
func TestBodiesOfDoneEventsAreArchivedWhenAsked(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	e := letter("bad1", "o1", 0)
	e.OccurredAt = at
	deliver := func(s *app) { _, _ = s.processor.Accept(s.Context(), e) }
	for name, process := range map[string]func(s *app, m *fixable){
		"a delivery": func(s *app, m *fixable) { m.fixed.Store(true); deliver(s) },
		"a delivery after it was parked": func(s *app, m *fixable) {
			deliver(s)
			m.fixed.Store(true)
			deliver(s)
		},
		"Replay": func(s *app, m *fixable) {
			deliver(s)
			m.fixed.Store(true)
			s.wantReplayed(idem.Filter{}, idem.Replayed{Done: 1})
		},
		"a worker": func(s *app, m *fixable) { m.fixed.Store(true); s.store(e); s.drain(1) },
		"a worker, after Requeue": func(s *app, m *fixable) {
			s.store(e)
			s.drain(1)
			m.fixed.Store(true)
			s.wantRequeued(idem.Filter{}, 1)
			s.drain(1)
		},
		"Discard": func(s *app, m *fixable) {
			deliver(s)
			s.wantDiscarded(idem.Filter{Keys: []string{"o1"}}, "a test", 1)
		},
	} {
		for _, keep := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s, m := newApp(t).openInbox(), &fixable{}
				s.on(m.handle)
				s.processor.KeepPayloads, s.inbox.KeepPayloads = keep, keep
				process(s, m)
				if n := queryOne[int](s, `select count(*) from idem_payloads`); n != 0 {
					t.Error("the body is with those of events that are not done")
				}
				const archived = `select count(*) from idem_archive a join idem_events e using (event)
					where body = $1 and a.occurred_at = $2 and abs(extract(epoch from a.received_at - e.received_at)) < 60`
				want := 0
				if keep {
					want = 1
				}
				if got := queryOne[int](s, archived, e.Payload, at); got != want {
					t.Errorf("KeepPayloads %t: %d bodies are in the archive, want %d", keep, got, want)
				}
				if got := s.listed(idem.Filter{States: []idem.State{idem.StateDone, idem.StateDiscarded}}); len(got) != 0 {
					t.Errorf("%d events are listed that are done", len(got))
				}
			})
		}
	}
}
