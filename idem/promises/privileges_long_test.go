//go:build long

package promises_test

import (
	"fmt"
	"net/http"
	"strings"
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
	parks := func(s *app) { s.Store(e); s.Drain(1) }
	for name, process := range map[string]func(s *app, m *fixable){
		"a first try": func(s *app, m *fixable) {
			m.Fixed.Store(true)
			if outcome, err := s.First.Accept(s.Context(), e); outcome != idem.Done {
				s.Error(outcome, err)
			}
		},
		"a delivery after it was parked": func(s *app, m *fixable) {
			parks(s)
			m.Fixed.Store(true)
			s.Store(e)
			s.Drain(1)
		},
		"Replay": func(s *app, m *fixable) {
			parks(s)
			m.Fixed.Store(true)
			s.WantReplayed(idem.Filter{}, idem.Replayed{Done: 1})
		},
		"a worker": func(s *app, m *fixable) { m.Fixed.Store(true); s.Store(e); s.Drain(1) },
		"a worker, after Requeue": func(s *app, m *fixable) {
			s.Store(e)
			s.Drain(1)
			m.Fixed.Store(true)
			s.wantRequeued(idem.Filter{}, 1)
			s.Drain(1)
		},
		"Discard": func(s *app, m *fixable) {
			parks(s)
			s.WantDiscarded(idem.Filter{Keys: []string{"o1"}}, "a test", 1)
		},
	} {
		for _, keep := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s, m := newApp(t).openInbox(), &fixable{}
				s.On(m.Handle)
				s.First.KeepPayloads, s.Inbox.KeepPayloads = keep, keep
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
				if got := s.Listed(idem.Filter{States: []idem.State{idem.StateDone, idem.StateDiscarded}}); len(got) != 0 {
					t.Errorf("%d events are listed that are done", len(got))
				}
			})
		}
	}
}

// What a role needs of each table, and no more; and for each of these rights
// a role that lacks it.
func TestHealthAsksForTheRightsThatAReceiverNeedsAndForNoMore(t *testing.T) {
	t.Parallel()
	const all = "select insert update delete"
	keeping := map[string]string{"idem_events": all, "idem_payloads": all, "idem_archive": "select insert update delete", "idem_prunes": "select insert update", "idem_pauses": "select delete", "idem_audit": "select", "idem_workers": all}
	inbox := map[string]string{"idem_events": all, "idem_payloads": all, "idem_archive": "select update delete", "idem_prunes": "select insert update", "idem_pauses": "select delete", "idem_audit": "select", "idem_workers": all}
	for name, needs := range map[string]map[string]string{"it keeps bodies": keeping, "it drops them": inbox} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owner, role, roleName := asRole(t)
			if err := idem.Migrate(t.Context(), owner); err != nil {
				t.Fatal(err)
			}
			change := func(change, verb, table string) {
				t.Helper()
				execAll(t, owner, fmt.Sprintf("%s %s on %s %s %s", change, verb, table, map[string]string{"grant": "to", "revoke": "from"}[change], roleName))
			}
			execAll(t, owner, `create table effects (event text not null, scope text not null default '')`)
			change("grant", "select, insert", "effects")
			for table, verbs := range needs {
				change("grant", strings.ReplaceAll(verbs, " ", ", "), table)
			}
			s := overPool(t, role)
			s.On((&fixable{}).Handle)
			s.First = s.NewFirst()
			s.openInbox()
			s.First.KeepPayloads, s.Inbox.KeepPayloads = name == "it keeps bodies", name == "it keeps bodies"
			part := s.Inbox
			s.WantHealth("it has all that it needs", s.NewHealth(part), "", "")

			// Nothing of it is missed.
			s.endpoint(s.First, idem.StateDone)
			for range 2 {
				s.WantAnswer(paid("e1"), http.StatusOK)
				s.WantAnswer(`{"id":"new","type":"new"}`, http.StatusOK)
			}
			s.Store(letter("e2", "o2", 0), letter("bad2", "o2", 0))
			s.Drain(2)
			if _, err := s.First.Prune(t.Context()); err != nil {
				t.Error(err)
			}
			execAll(t, owner, `delete from idem_payloads where source <> ''`, `delete from idem_events`)

			// Each is asked for.
			for table, verbs := range needs {
				for verb := range strings.FieldsSeq(verbs) {
					change("revoke", verb, table)
					want := fmt.Sprintf("its role lacks rights: %s on %s: grant", verb, table)
					h := s.NewHealth(part)
					s.WantHealth(verb+" on "+table, h, "postgres", want)
					if said := fmt.Sprint(h.Report()); strings.Contains(said, roleName) {
						t.Errorf("it names the role: %s", said)
					}
					change("grant", verb, table)
				}
			}
			execAll(t, owner, `alter table idem_events enable row level security`)
			s.WantHealth("a host has hidden the rows", s.NewHealth(part), "postgres", "its role lacks rights: rows of idem_events, which row level security hides: grant")
			execAll(t, owner, `alter table idem_events disable row level security`)
			s.WantHealth("all are granted again", s.NewHealth(part), "", "")
		})
	}
}
