package idem_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
)

// What a role needs of each table, and no more, in both modes; and for each of these rights
// a role that lacks it.
func TestHealthAsksForTheRightsThatAReceiverNeedsAndForNoMore(t *testing.T) {
	t.Parallel()
	const all = "select insert update delete"
	processor := map[string]string{"idem_events": all, "idem_payloads": all, "idem_archive": "select update delete", "idem_prunes": "select insert update", "idem_audit": "select"}
	keeping := map[string]string{"idem_events": all, "idem_payloads": all, "idem_archive": "select insert update delete", "idem_prunes": "select insert update", "idem_audit": "select"}
	inbox := map[string]string{"idem_events": all, "idem_payloads": all, "idem_archive": "select update delete", "idem_prunes": "select insert update", "idem_audit": "select", "idem_workers": all}
	for name, needs := range map[string]map[string]string{"processor": processor, "processor that keeps bodies": keeping, "inbox": inbox} {
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
			s := &app{T: t, pool: role, notes: &notes{}, worked: make(chan idem.Observation, 100)}
			s.on((&fixable{}).handle)
			s.processor = s.newProcessor()
			s.processor.KeepPayloads = name == "processor that keeps bodies"
			s.openInbox()
			var part health.Part = s.processor
			if name == "inbox" {
				part = s.inbox
			}
			s.wantHealth("it has all that it needs", s.newHealth(part), "", "")

			// Nothing of it is missed.
			if name == "inbox" {
				s.store(letter("e1", "o1", 0), letter("bad2", "o2", 0))
				s.drain(2)
			} else {
				s.endpoint(s.processor, idem.StateDone)
				for range 2 {
					s.wantAnswer(paid("e1"), http.StatusOK)
					s.wantAnswer(`{"id":"new","type":"new"}`, http.StatusOK)
				}
				s.wantAnswer(paid("bad1"), http.StatusOK) // it is parked
			}
			if _, err := s.processor.Prune(t.Context()); err != nil {
				t.Error(err)
			}
			execAll(t, owner, `delete from idem_payloads where source <> ''`, `delete from idem_events`)

			// Each is asked for.
			for table, verbs := range needs {
				for verb := range strings.FieldsSeq(verbs) {
					change("revoke", verb, table)
					want := fmt.Sprintf("its role lacks rights: %s on %s: grant", verb, table)
					h := s.newHealth(part)
					s.wantHealth(verb+" on "+table, h, "postgres", want)
					if said := fmt.Sprint(h.Report()); strings.Contains(said, roleName) {
						t.Errorf("it names the role: %s", said)
					}
					change("grant", verb, table)
				}
			}
			s.wantHealth("all are granted again", s.newHealth(part), "", "")
		})
	}
}
