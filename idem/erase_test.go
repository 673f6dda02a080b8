package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
)

// secret is a person's name, which the tests look for.
const secret = "Ana-de-Souza"

// naming fails as handlers do that write what they got into their errors.
func naming(ctx context.Context, tx pgx.Tx, n *note) error {
	if strings.HasPrefix(n.ID, "bad") {
		return idem.NoRetry(fmt.Errorf("no order of %s", n.Order))
	}
	return pay(ctx, tx, n)
}

// ofPerson is a body of that person.
func ofPerson(id string) string {
	return fmt.Sprintf(`{"id":%q,"type":"paid","order":"o","name":%q}`, id, secret)
}

// erase has ana erase the events of these ids.
func (s *app) erase(ana *operator.Operator, want operator.Erased, ids ...string) {
	s.Helper()
	var events []idem.StoredEvent
	for _, id := range ids {
		found, err := ana.WithID(s.Context(), id)
		if err != nil {
			s.Fatal(err)
		}
		events = append(events, found...)
	}
	got, err := ana.Erase(s.Context(), events, "request 17")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		s.Errorf("Erase(%q) = %v (-want +got):\n%s", ids, err, diff)
	}
}

// columnsWith lists the columns of this package's tables in which a text is, as table.column.
func (s *app) columnsWith(text string) (found []string) {
	s.Helper()
	// By oid: a cast of a name to regclass would also be tried on the tables of other schemas, and fail.
	columns := queryOne[[]string](s, `
		select array_agg(relname || '.' || attname) from pg_class join pg_attribute on attrelid = pg_class.oid
		where relnamespace = current_schema::regnamespace and relkind in ('r', 'p', 'v') and not relispartition
			and relname like 'idem\_%' and attnum > 0 and not attisdropped`)
	for _, c := range columns {
		table, column, _ := strings.Cut(c, ".")
		// Bytes as text, and the rest as it prints.
		shown := fmt.Sprintf(`case when pg_typeof(%[1]s) = 'bytea'::regtype then encode(%[1]s::text::bytea, 'escape') else %[1]s::text end`, column)
		if queryOne[bool](s, `select exists (select from `+table+` where position($1 in `+shown+`) > 0)`, text) {
			found = append(found, c)
		}
	}
	slices.Sort(found)
	return found
}

func TestAnErasedEventLeavesOnlyItsNameAndIsADuplicateForGood(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]bool{"bodies are dropped": false, "bodies are kept": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			s.on(naming)
			s.openInbox()
			s.processor.KeepPayloads, s.inbox.KeepPayloads = keep, keep
			s.endpoint(s.processor, idem.StateDone)
			s.wantAnswer(ofPerson("inline"), http.StatusOK)
			s.wantAnswer(ofPerson("badinline"), http.StatusOK)
			s.store(identify([]byte(strings.ReplaceAll(ofPerson("worked"), `"o"`, `"p"`))), identify([]byte(strings.ReplaceAll(ofPerson("badworked"), `"o"`, `"`+secret+`"`))))
			s.drain(2)
			ana := operator.New(s.inbox, "ana")
			s.erase(ana, operator.Erased{Events: 2, NotDone: 2}, "inline", "badinline", "worked", "badworked")
			ana.EraseNotDone = true
			s.erase(ana, operator.Erased{Events: 4}, "inline", "badinline", "worked", "badworked")
			for id, want := range map[string]string{
				"inline": "(done,,0,o)", "badinline": `(discarded,"discarded: erased",1,o)`,
				"worked": "(done,,0,p)", "badworked": `(discarded,"discarded: erased",1,` + secret + `)`,
			} {
				s.wantRow(id, "row(state, last_error, attempts, key)", want)
			}
			// The entity's id stays, and here it is the name.
			if diff := cmp.Diff([]string{"idem_event_log.entity", "idem_events.key"}, s.columnsWith(secret)); diff != "" {
				t.Error("what is left (-want +got):\n" + diff)
			}
			effects := queryOne[int](s, `select count(*) from effects`)
			for _, id := range []string{"inline", "badinline", "worked", "badworked"} {
				e := identify([]byte(ofPerson(id)))
				for mode, accept := range map[string]func(context.Context, idem.Event) (idem.Outcome, error){"processor": s.processor.Accept, "inbox": s.inbox.Accept} {
					if outcome, err := accept(t.Context(), e); outcome != idem.Duplicate || err != nil {
						t.Errorf("%s: %s comes again: %s, %v, want a duplicate", mode, id, outcome, err)
					}
				}
			}
			s.wantEffects(effects)
			if n := queryOne[int](s, `select (select count(*) from idem_payloads) + (select count(*) from idem_archive)`); n != 0 {
				t.Errorf("%d bodies are stored after the redeliveries, want none", n)
			}
		})
	}
}

func TestEventsBehindAnErasedOneGoOn(t *testing.T) {
	t.Parallel()
	s, m := newApp(t), &fixable{}
	s.on(m.handle)
	s.openInbox()
	s.store(letter("bad1", "a", 1), letter("a2", "a", 2), letter("a3", "a", 3))
	s.drain(1)
	m.fixed.Store(true)
	ana := operator.New(s.inbox, "ana")
	ana.EraseNotDone = true
	s.erase(ana, operator.Erased{Events: 1}, "bad1")
	s.drain(2)
	m.wantDone(t, "a2", "a3")
}

// What is being processed is a handler's; what was changed by hand is still found.
func TestEraseLeavesWhatIsBeingProcessedAndTakesWhatHasNoBody(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(naming)
	s.openInbox()
	s.store(identify([]byte(ofPerson("bad1"))))
	s.drain(1)
	s.wantAnswer(paid("e2"), http.StatusOK)
	ana := operator.New(s.inbox, "ana")
	ana.EraseNotDone = true
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from idem_events for update`); err != nil {
		t.Fatal(err)
	}
	s.erase(ana, operator.Erased{Busy: 2}, "bad1", "e2")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.exec(`delete from idem_payloads where event like '%bad1'`)
	s.erase(ana, operator.Erased{Events: 2}, "bad1", "e2")
	s.wantRow("bad1", "row(state, last_error)", `(discarded,"discarded: erased")`)
	s.wantState("e2", idem.StateDone)
}

func TestTheAuditTrailSaysWhoErasedWhatWithoutAWordOfIt(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(naming)
	s.openInbox()
	s.store(identify([]byte(strings.ReplaceAll(ofPerson("bad1"), `"o"`, `"`+secret+`"`))), letter("e2", "p", 1))
	s.drain(2)
	ana := operator.New(s.inbox, "ana@shop")
	if _, err := ana.Replay(t.Context(), idem.Filter{}, "try again"); err != nil {
		t.Fatal(err)
	}
	s.erase(ana, operator.Erased{Events: 1, NotDone: 1}, "bad1", "e2")
	ana.EraseNotDone = true
	s.erase(ana, operator.Erased{Events: 2}, "bad1", "e2")
	want := []operator.Action{
		{Action: "replay", Filter: "states unhandled parked", Reason: "try again", Events: 1, Result: "0 done, 1 failed, 0 without a handler; first failure: paid bad1"},
		{Action: "erase", Filter: "2 by row key", Reason: "request 17", Events: 1, Result: "1 erased; 1 left alone: not done"},
		{Action: "erase", Filter: "2 by row key", Reason: "request 17", Events: 2, Result: "2 erased"},
	}
	for n := range want {
		want[n].Actor, want[n].Source = "ana@shop", "notes"
	}
	trail := s.trail()
	if diff := cmp.Diff(want, trail, anyTime); diff != "" {
		t.Error("the trail (-want +got):\n" + diff)
	}
	keys, err := ana.ActionEvents(t.Context(), trail[2].ID)
	if diff := cmp.Diff([]string{"notes//bad1", "notes//e2"}, keys); diff != "" || err != nil {
		t.Error(err, "the events (-want +got):\n"+diff)
	}
	if text := queryOne[string](s, `select string_agg(a::text, '') from idem_audit a`); strings.Contains(text, secret) {
		t.Error("the trail names the person: " + text)
	}
}

func TestTheAuditTrailHasNoHandlersErrorAlsoWhereItsSessionWasEnded(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	fixed := false
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if !fixed {
			return idem.NoRetry(errors.New("no such order"))
		}
		err := runSQL(ctx, tx, `select pg_terminate_backend(pg_backend_pid())`)
		return fmt.Errorf("no order of %s: %w", secret, err)
	})
	s.openInbox()
	s.processor.RedactError = func(error) string { return "redacted" }
	s.wantAnswer(paid("bad1"), http.StatusOK)
	fixed = true
	for _, o := range []*operator.Operator{operator.New(s.inbox, "ana"), operator.New(s.processor, "ana")} {
		if r, err := o.Replay(t.Context(), idem.Filter{}, ""); err != nil || r.Failed != 1 {
			t.Errorf("Replay = %+v, %v, want one failed", r, err)
		}
	}
	for _, a := range s.trail() {
		if want := "0 done, 1 failed, 0 without a handler; first failure: paid bad1"; a.Result != want {
			t.Errorf("the trail says %q, want %q", a.Result, want)
		}
	}
}

func TestEraseIsRefusedWithoutAReasonANameOrItsOwnSource(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(pay)
	s.openInbox()
	s.store(letter("e1", "o", 0))
	events := s.listed(idem.Filter{States: []idem.State{idem.StatePending}})
	ofOther := []idem.StoredEvent{{Event: idem.Event{Source: "letters", ID: "e1"}}}
	for says, erase := range map[string]func() (operator.Erased, error){
		"give a reason":               func() (operator.Erased, error) { return operator.New(s.inbox, "ana").Erase(t.Context(), events, "") },
		"the operator has no name":    func() (operator.Erased, error) { return operator.New(s.inbox, "").Erase(t.Context(), events, "17") },
		`one of source "letters" was`: func() (operator.Erased, error) { return operator.New(s.inbox, "ana").Erase(t.Context(), ofOther, "17") },
	} {
		if e, err := erase(); err == nil || !strings.Contains(err.Error(), says) || e != (operator.Erased{}) {
			t.Errorf("Erase = %v, %v, want an error with %q", e, err, says)
		}
	}
	s.wantPayload("e1", string(letter("e1", "o", 0).Payload))
}
