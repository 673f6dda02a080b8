//go:build long

package idemcmd

import (
	"fmt"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/testkit"
)

// What a tired person types first says what is wrong in its first line, and the command of that line, typed as it
// is, puts it right.
func TestTheFirstCommandNamesTheFaultAndItsRemedyRunsAsTyped(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		plant func(*shop) (mend func()) // mend is what the remedy says in words; nil for nothing
		check string                    // of the first finding
		says  string
		run   string // its command; %s is the schema
	}{
		"every handler fails": {
			func(s *shop) func() {
				s.fail("evt_1 paid pay_1", "evt_2 paid pay_2", "evt_3 paid pay_3")
				return s.deploy
			},
			"failing", "3 events fail, and are tried again by themselves", "idem requeue -source notes -state pending -failed",
		},
		"one poison event blocks a charge": {
			func(s *shop) func() {
				s.fail("evt_1 paid pay_1", "evt_2 paid pay_1", "evt_3 paid pay_1")
				return s.deploy
			},
			"failing", "1 event fails, and is tried again by itself; 2 events wait behind", "idem requeue -source notes -state pending -failed",
		},
		"parked, and others wait": {
			func(s *shop) func() {
				s.accept("bad_1 paid pay_1", "evt_2 paid pay_1", "evt_3 paid pay_1")
				testkit.KeepAlive(s, s.pool, "notes")
				return s.deploy
			},
			"parked", "1 event is parked, until a person acts: first bad_1, paid; 2 events wait behind", "idem requeue -source notes -state parked",
		},
		"parked, where no workers are": {
			func(s *shop) func() { s.accept("bad_1 paid pay_1"); return s.deploy },
			"parked", "1 event is parked", "idem replay -source notes -state parked",
		},
		"no workers, for the first minute": {
			func(s *shop) func() { s.store("evt_1"); return nil },
			"workers", "no workers are alive, and 1 event waits for them", "idem replay -source notes -state pending",
		},
		"a table is locked": {
			func(s *shop) func() { s.hold(`lock table idem_events`); return nil },
			"locks", "a session keeps idem_events locked", "select pg_terminate_backend(PID)",
		},
		"an index is being made, for ever": {
			func(s *shop) func() { s.hold(`lock table idem_payloads in share mode`); return nil },
			"locks", "a session keeps idem_payloads locked", "select pg_terminate_backend(PID)",
		},
		"idem_workers is dropped": {
			func(s *shop) func() { s.exec(`drop table idem_workers cascade`); return nil },
			"columns", "a table is gone", "idem migrate -again",
		},
		"the audit trail is dropped": {
			func(s *shop) func() { s.exec(`drop table idem_audit cascade`); return nil },
			"columns", "a table is gone", "idem migrate -again",
		},
		"the view is dropped": {
			func(s *shop) func() { s.exec(`drop view idem_event_log`); return nil },
			"view", "the view that support staff reads is gone", "idem migrate -again",
		},
		"an index is dropped": {
			func(s *shop) func() { s.exec(`drop index idem_payloads_lane`); return nil },
			"indexes", "an index is missing", "idem migrate -again",
		},
		"an index is not valid": {
			func(s *shop) func() {
				s.exec(`update pg_index set indisvalid = false where indexrelid = 'idem_payloads_due'::regclass`)
				return nil
			},
			"indexes", "an index is not valid", "reindex index concurrently idem_payloads_due",
		},
		"a primary key with duplicates": {
			func(s *shop) func() {
				s.exec(`alter table idem_events drop constraint idem_events_pkey`)
				for _, state := range []string{"pending", "done"} {
					s.exec(`insert into idem_events (event, type, key, state) values ('notes//e1', 'paid', '', '` + state + `')`)
				}
				return nil
			},
			"indexes", "a primary key is gone", "delete from idem_events where (tableoid, ctid) in (select tableoid, ctid from (select tableoid, ctid, " +
				"row_number() over (partition by event order by state = 'done' desc, received_at, ctid) as n from idem_events) d where n > 1); alter table idem_events add primary key (event)",
		},
		"a column is dropped": {
			func(s *shop) func() { s.exec(`alter table idem_payloads drop column trace`); return nil },
			"columns", "a column is gone", "alter table idem_payloads add column trace text",
		},
		"a default is dropped": {
			func(s *shop) func() { s.exec(`alter table idem_events alter column attempts drop default`); return nil },
			"columns", "a column has lost its default", "alter table idem_events alter column attempts set default 0",
		},
		"a column has another order": {
			func(s *shop) func() {
				s.exec(`alter table idem_prunes alter column source type text collate "default"`)
				return nil
			},
			"columns", "a column has another type", `drop view if exists idem_event_log; alter table idem_prunes alter column source type text collate "C" using source::text`,
		},
		"row level security is switched on": {
			func(s *shop) func() {
				s.role("")
				s.exec(`alter table idem_events enable row level security`)
				return nil
			},
			"rights", "row level security hides the rows of idem_events", "alter table idem_events disable row level security",
		},
		"a trigger raises": {
			func(s *shop) func() {
				s.exec(`create function refuse() returns trigger language plpgsql as $$ begin raise 'not today'; end $$;
					create trigger guard before update on idem_events for each row execute function refuse()`)
				return nil
			},
			"triggers", "a trigger on idem_events refuses it", "alter table idem_events disable trigger guard",
		},
		"a right is missing": {
			func(s *shop) func() { s.role(`revoke update on idem_payloads from ROLE`); return nil },
			"rights", "the role lacks rights", "grant update on idem_payloads to ROLE",
		},
		"nothing is migrated": {
			func(s *shop) func() {
				s.exec(`drop table idem_migrations, idem_archive, idem_audit, idem_audit_events, idem_prunes, idem_workers cascade; drop table idem_payloads, idem_events cascade`)
				return nil
			},
			"migrations", "the tables lack migrations", "idem migrate",
		},
		"autovacuum is off for a table": {
			func(s *shop) func() {
				s.exec(`alter table idem_payloads set (autovacuum_enabled = off)`)
				return nil
			},
			"autovacuum", "nothing removes the dead rows of a table", "alter table idem_payloads reset (autovacuum_enabled)",
		},
		"the rows that keep plans good are deleted": {
			func(s *shop) func() { s.exec(`delete from idem_payloads`); return nil },
			"plans", "the rows that keep plans good are gone", "insert into idem_payloads (event, source, received_at, body) select '//' || n, '', now(), " +
				"convert_to(repeat(' ', 400), 'UTF8') from generate_series(1, 300) n on conflict do nothing; analyze idem_payloads",
		},
		"an event's row is deleted by hand": {
			func(s *shop) func() {
				s.badNight()
				s.exec(`delete from idem_events where event not like '%/evt_3'; delete from idem_payloads where source <> '' and event not like '%/evt_3'`)
				return s.deploy
			},
			"stuck", "events wait for an earlier one that is not there", "idem prune -source notes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.workers = false
			before := s.findings()
			mend := c.plant(s)
			found := s.news(before)
			if len(found) == 0 || found[0].Check != c.check || !strings.Contains(found[0].Problem, c.says) {
				t.Fatalf("it says %v", found)
			}
			if status, _, _ := s.idem("doctor"); status != command.Attention {
				t.Errorf("exit status %d", status)
			}
			run := strings.NewReplacer("PID", fmt.Sprint(s.pid), "ROLE", s.text(`select current_schema()`)+"_app").Replace(c.run)
			if found[0].Command != run {
				t.Fatalf("it says %s, want %s", found[0].Command, run)
			}
			if mend != nil {
				mend()
			}
			for range 4 { // the view may go with a column
				if s.follow(found[0].Command); mend != nil {
					s.accept()
				}
				if found = s.news(before); len(found) == 0 {
					return
				}
			}
			t.Errorf("after the remedy it says %v", found)
		})
	}
}

// With a table locked, each verb waited for ever without a word.
func TestNoVerbWaitsForALockWithoutSayingWhoHoldsIt(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.badNight()
	s.hold(`lock table idem_events`)
	for _, v := range verbs {
		args := []string{v.name}
		switch v.name {
		case "show", "acknowledge", "discard", "erase", "rerun":
			args = append(args, "-reason", "x", "bad_2")
		case "pause":
			args = append(args, "-for", "2h", "-reason", "x")
		case "rescope":
			args = append(args, "-account", "store-2", "-to-account", "store-3")
		case "stop":
			args = append(args, "1")
		case "readmit", "doctor", "migrate", "tail": // it asks for secrets first; it has a test; it reads only what is applied; it has no database
			continue
		}
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			p, _, complaints := s.program(args...)
			if v.name == "stop" || v.name == "audit" { // which look for the sources
				p.Receivers = nil
			}
			status := p.run(t.Context())
			if says := fmt.Sprintf("keeps idem_events locked: wait for its end, or end it: select pg_terminate_backend(%d)", s.pid); status != command.Failed || !strings.Contains(complaints.String(), says) {
				t.Errorf("exit status %d, %s", status, complaints)
			}
		})
	}
}
