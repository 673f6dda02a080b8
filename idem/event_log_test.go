package idem_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
)

// What support staff sees of an event, by the names that it uses.
func TestEventLogShowsEveryEventInPlainColumns(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	s.on(refuseBad)
	s.wantAnswer(paid("done/1"), http.StatusOK)
	s.wantAnswer(`{"id":"done/1","type":"paid","order":"another body"}`, http.StatusOK)
	s.wantAnswer(`{"id":"new","type":"new"}`, http.StatusOK)
	s.store(in("shop/1", letter("bad1", "o7", 1)))
	s.drain(1)
	s.store(in("shop/1", letter("e2", "o7", 2)))
	s.drain(0)

	type line struct {
		Source, Scope, EventID, Type, Entity, State string
		Attempts                                    int
		LastError                                   string
		Occurred, Conflict, Due, Done, Failures     bool
	}
	rows, err := s.pool.Query(t.Context(), `select source, scope, event_id, type, entity, state, attempts, coalesce(last_error, ''),
		occurred_at is not null, conflict_at is not null, due_at is not null, done_at is not null, failures is not null from idem_event_log order by received_at`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[line])
	if err != nil {
		t.Fatal(err)
	}
	want := []line{
		{"notes", "", "done/1", "paid", "o1", "done", 0, "", false, true, false, true, false},
		{"notes", "", "new", "new", "", "unhandled", 0, "", false, false, false, false, false},
		{"notes", "shop%2F1", "bad1", "paid", "o7", "parked", 1, "no such order", true, false, false, false, true},
		{"notes", "shop%2F1", "e2", "paid", "o7", "pending", 0, "", true, false, false, false, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("idem_event_log (-want +got):\n" + diff)
	}
	if n := queryOne[int](s, `select count(*) from information_schema.columns
		where table_schema = current_schema() and table_name = 'idem_event_log' and data_type = 'bytea'`); n != 0 {
		t.Error("the log shows bodies")
	}
}

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

// sqlOf returns the blocks of SQL in a document.
func sqlOf(t *testing.T, path string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(text), "```sql\n")
	for _, block := range blocks[1:] {
		sql, _, _ := strings.Cut(block, "```")
		all = append(all, sql)
	}
	return all
}

// With the rights that docs/oncall.md grants, and no others.
func TestSupportReadsTheViewAndNothingElse(t *testing.T) {
	t.Parallel()
	owner, role, name := asRole(t)
	if err := idem.Migrate(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	index, grant := "", ""
	for _, sql := range sqlOf(t, "../docs/oncall.md") {
		if strings.Contains(sql, "create index") {
			index += sql
		} else {
			grant += sql
		}
	}
	schema := strings.TrimSuffix(name, "_app")
	execAll(t, owner, index, strings.NewReplacer("schema public", "schema "+schema, "to support", "to "+name).Replace(grant))
	p := idem.NewProcessor(owner, &notes{})
	p.Logger = nil
	for _, id := range []string{"new1", "new2"} {
		if outcome, err := p.Accept(t.Context(), idem.Event{ID: id, Type: "new", Key: "o1", Payload: []byte(newBody)}); outcome != idem.Unhandled || err != nil {
			t.Fatal(outcome, err)
		}
	}
	execAll(t, owner, `update idem_events set state = 'done' where event = 'notes//new1'`)
	var seen []string
	if err := role.QueryRow(t.Context(), `select array_agg(concat_ws(' ', event_id, state, done_at is not null) order by event_id) from idem_event_log where entity = 'o1'`).Scan(&seen); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"new1 done t", "new2 unhandled f"}, seen); diff != "" {
		t.Error("support sees (-want +got):\n" + diff)
	}
	for _, sql := range []string{
		`select event from idem_events`, `select body from idem_payloads`, `select body from idem_archive`, `select actor from idem_audit`,
	} {
		if _, err := role.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("%s: %v, want it denied", sql, err)
		}
	}
	if n, err := operator.New(p, "").ScanOfKey(t.Context()); n != 0 || err != nil || index == "" {
		t.Errorf("with the index of docs/oncall.md %d events are read, %v", n, err)
	}
}
