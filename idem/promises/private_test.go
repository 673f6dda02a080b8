package promises_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestPrivateDataIsWhereThePageSaysAndNowhereAfterErase(t *testing.T) {
	t.Parallel()
	const entity, actor, reason = "cus-7781", "ines@shop", "request-17"
	letter := func(id string) idem.Event {
		return identify(fmt.Appendf(nil, `{"id":"evt-5512-%[1]s","type":"paid","order":"%[2]s-%[1]s","name":%[3]q}`, id, entity, secret))
	}
	s := newInboxApp(t)
	var fixed atomic.Bool
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if fixed.Load() {
			return nil
		}
		return fmt.Errorf("no order of %s", secret)
	})
	heard := &hearing{}
	s.First.KeepPayloads, s.First.Tracer = true, heard
	s.Inbox.KeepPayloads, s.Inbox.MaxAttempts, s.Inbox.Tracer = true, 1, heard

	person, ids := map[string]bool{}, map[string]bool{} // where they are
	look := func() {
		for _, place := range s.columnsWith(secret) {
			person[place] = true
		}
		for _, place := range s.columnsWith(entity, "evt-5512", actor, reason) {
			ids[place] = true
		}
	}
	ines := operator.New(s.Inbox, actor)
	ines.Progress = func(sum idem.Replayed, of int) { // she stops what she has begun, at its last event
		if sum.Failed != of {
			return
		}
		running, err := ines.Actions(t.Context(), 0, 1)
		if err == nil {
			err = ines.Stop(t.Context(), running[0].ID, reason)
		}
		if err != nil {
			t.Error(err)
		}
	}
	accept := func(accept func(context.Context, idem.Event) (idem.Outcome, error), id string, want idem.Outcome) {
		t.Helper()
		if outcome, _ := accept(t.Context(), letter(id)); outcome != want {
			t.Errorf("%s is %s, want %s", id, outcome, want)
		}
		look()
	}
	replay := func(want idem.Replayed) {
		t.Helper()
		if sum, err := replayed(t.Context(), reason)(ines.PlanReplay(t.Context(), idem.Filter{})); counted(sum) != counted(want) || err != nil {
			t.Errorf("Replay = %+v, %v, want %+v", sum, err, want)
		}
		look()
	}

	// Delivered, failed in a first try, and parked.
	accept(s.First.Accept, "inline", idem.Retrying)
	accept(s.Inbox.Accept, "inline", idem.Pending)
	accept(s.Inbox.Accept, "worked", idem.Pending)
	s.Drain(2)
	look()

	// Replayed in vain, looked at, given up; then fixed, done and archived.
	replay(idem.Replayed{Failed: 2})
	err := ines.Record(t.Context(), "reveal", "notes//evt-5512-inline", reason, func(context.Context) (string, error) { return "shown", nil })
	if err != nil {
		t.Fatal(err)
	}
	if n, err := acted(t.Context(), reason)(ines.PlanDiscard(t.Context(), idem.Filter{IDs: []string{"evt-5512-worked"}})); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	look()
	fixed.Store(true)
	replay(idem.Replayed{Done: 1})
	fixed.Store(false)
	accept(s.Inbox.Accept, "open", idem.Pending)
	s.Drain(1)
	look()

	// Paused, and resumed.
	pause := operator.Pause{Key: entity}
	plan, err := ines.PlanPause(t.Context(), pause, time.Hour)
	if err == nil {
		_, err = plan.Do(t.Context(), reason)
	}
	look()
	if err == nil {
		plan, err = ines.PlanResume(t.Context(), pause)
	}
	if err == nil {
		_, err = plan.Do(t.Context(), reason)
	}
	if err != nil {
		t.Fatal(err)
	}

	logged, observed := s.Logged(), ""
	for _, o := range s.Observed() {
		observed += fmt.Sprintf("%v %s\n", o.Err, o.Event.Payload)
		if text := o.Label + o.Source + string(o.Outcome); strings.Contains(text, secret) || strings.Contains(text, entity) {
			t.Errorf("labels of metrics are %q", text)
		}
	}
	for place, text := range map[string]string{"Logger": logged, "Observe": observed, "Tracer": heard.text()} {
		if strings.Contains(text, secret) {
			person[place] = true
		}
	}
	if strings.Contains(logged, `"name"`) || strings.Contains(logged, `\"name\"`) {
		t.Error("the log has a body:\n" + logged)
	}
	if diff := cmp.Diff(placesOf(t, "Data about the person"), slices.Sorted(maps.Keys(person))); diff != "" {
		t.Error("places with the person's name (-the page +found):\n" + diff)
	}
	maps.DeleteFunc(ids, func(place string, _ bool) bool { return person[place] })
	if diff := cmp.Diff(placesOf(t, "Ids, and persons that act"), slices.Sorted(maps.Keys(ids))); diff != "" {
		t.Error("places with ids and names of operators (-the page +found):\n" + diff)
	}

	// Erased, and delivered again.
	ines.EraseNotDone = true
	s.erase(ines, "3 erased", "evt-5512-inline", "evt-5512-worked", "evt-5512-open")
	for _, id := range []string{"inline", "worked", "open"} {
		accept(s.First.Accept, id, idem.Duplicate)
		accept(s.Inbox.Accept, id, idem.Duplicate)
	}
	if found := s.columnsWith(secret); len(found) > 0 {
		t.Errorf("after Erase the person's name is in %v", found)
	}
	left := map[string]bool{}
	for _, id := range []string{entity, "evt-5512"} {
		for _, place := range s.columnsWith(id) {
			left[place] = true
		}
	}
	want := []string{"idem_audit.events", "idem_audit.filter", "idem_audit.result", "idem_audit_events.event", "idem_event_log.entity", "idem_event_log.event_id", "idem_events.event", "idem_events.key", "idem_pauses.key"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(left))); diff != "" {
		t.Error("ids that are left (-want +got):\n" + diff)
	}
}

// A handler that returns what Postgres says, or prints all of it, names nobody by that.
func TestWhatPostgresQuotesOfARowIsInNoErrorThatIsStoredLoggedOrObserved(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.Exec(`create table people (email text unique, age int, constraint adult check (age > 17)); insert into people values ('` + secret + `', 30)`)
	statements := map[string]func(context.Context, pgx.Tx) error{
		"unique": func(ctx context.Context, tx pgx.Tx) error {
			return runSQL(ctx, tx, `insert into people values ($1)`, secret)
		},
		"check": func(ctx context.Context, tx pgx.Tx) error {
			return runSQL(ctx, tx, `insert into people values ($1 || 'x', 3)`, secret)
		},
		"number": func(ctx context.Context, tx pgx.Tx) error { return runSQL(ctx, tx, `select $1::text::int`, secret) },
		"json": func(ctx context.Context, tx pgx.Tx) error {
			return runSQL(ctx, tx, `select $1::text::jsonb`, `{"a": `+secret)
		},
		"date": func(ctx context.Context, tx pgx.Tx) error { return runSQL(ctx, tx, `select $1::text::date`, secret) },
		"cast": func(ctx context.Context, tx pgx.Tx) error { return runSQL(ctx, tx, `select $1::int`, []string{secret}) },
		"deferred": func(ctx context.Context, tx pgx.Tx) error {
			idem.ExecAtCommit(ctx, `insert into people values ($1)`, secret)
			return nil
		},
		"detail": func(ctx context.Context, tx pgx.Tx) error {
			err := runSQL(ctx, tx, `insert into people values ($1)`, secret)
			said, ok := errors.AsType[*pgconn.PgError](err)
			if !ok {
				return err
			}
			return errors.Join(fmt.Errorf("storing a person: %w: %s", err, said.Detail), errors.New("in full"))
		},
	}
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error { return statements[n.Order](ctx, tx) })
	s.openInbox()
	for name := range statements {
		s.WantAnswer(fmt.Sprintf(`{"id":"inline %[1]s","type":"paid","order":%[1]q}`, name), http.StatusServiceUnavailable)
	}
	s.Inbox.MaxAttempts = 1
	for name := range statements {
		s.Store(idem.Event{ID: "worked " + name, Type: "paid", Key: "worked " + name, Payload: fmt.Appendf(nil, `{"type":"paid","order":%q}`, name)})
	}
	s.Drain(len(statements))
	for name, want := range map[string]string{
		"unique":   `ERROR: duplicate key value violates unique constraint "people_email_key" (SQLSTATE 23505)`,
		"check":    `ERROR: new row for relation "people" violates check constraint "adult" (SQLSTATE 23514)`,
		"number":   `ERROR: invalid input syntax for type integer: "…" (SQLSTATE 22P02)`,
		"json":     `ERROR: invalid input syntax for type json (SQLSTATE 22P02)`,
		"date":     `ERROR: invalid input syntax for type date: "…" (SQLSTATE 22007)`,
		"cast":     `failed to encode args[0]: unable to encode … into binary format for int4 (OID 23): cannot find encode plan`,
		"deferred": `ERROR: duplicate key value violates unique constraint "people_email_key" (SQLSTATE 23505)`,
		"detail":   "storing a person: ERROR: duplicate key value violates unique constraint \"people_email_key\" (SQLSTATE 23505): …\nin full",
	} {
		got := queryOne[string](s, `select last_error from idem_events where event like '%/worked ' || $1`, name)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if found := s.columnsWith(secret); len(found) > 0 {
		t.Errorf("%s is in %v", secret, found)
	}
	if strings.Contains(s.Logged(), secret) {
		t.Error("the log names the person:\n" + s.Logged())
	}
	failures := 0
	for _, o := range s.Observed() {
		if o.Err != nil {
			failures++
			if strings.Contains(o.Err.Error(), secret) {
				t.Errorf("an observation names the person: %v", o.Err)
			}
		}
	}
	if want := 2 * len(statements); failures != want {
		t.Errorf("%d failures were observed, want %d", failures, want)
	}
}

func TestRedactErrorDecidesWhatAnErrorSaysAndNotWhatItIs(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(func(context.Context, pgx.Tx, *note) error { return idem.NoRetry(errNamesAna) })
	s.openInbox()
	for name, redact := range map[string]func(error) string{
		"typed": func(err error) string { return fmt.Sprintf("%T", errors.Unwrap(errors.Unwrap(err))) },
		"panic": func(error) string { panic(secret) },
	} {
		s.First.RedactError, s.Inbox.RedactError = redact, redact
		e := idem.Event{ID: name, Type: "paid", Key: name, Payload: []byte(`{"type":"paid"}`)}
		if outcome, err := s.First.Accept(t.Context(), e); outcome != idem.Parked || err != nil {
			t.Errorf("a first try is %s, %v, want parked", outcome, err)
		}
		s.Store(e)
		s.Drain(1)
		if outcome, err := s.First.Accept(t.Context(), idem.Event{ID: name + "unreadable", Type: "paid", Payload: []byte(`{"type":7,"name":"` + secret + `"}`)}); outcome != idem.Parked || err != nil {
			t.Error(outcome, err)
		}
	}
	want := map[string]string{"typed": "*errors.errorString", "panic": "the error is not shown, because RedactError panicked"}
	for name, text := range want {
		s.WantRow(name, "row(state, last_error = '"+text+"')", "(parked,t)")
	}
	if sum, err := s.Inbox.Replay(t.Context(), idem.Filter{}); counted(sum) != counted(idem.Replayed{Failed: 4}) || err != nil {
		t.Error(sum, err)
	}
	_, err := s.First.DryRun(t.Context(), idem.Event{ID: "dry", Type: "paid", Payload: []byte(`{"type":"paid"}`)})
	if !errors.Is(err, errNamesAna) || strings.Contains(err.Error(), secret) {
		t.Errorf("DryRun = %v, want the handler's error in other words", err)
	}
	for _, o := range s.Observed() {
		if o.Err != nil && strings.Contains(o.Err.Error(), secret) {
			t.Errorf("an observation names the person: %v", o.Err)
		}
	}
	if strings.Contains(s.Logged(), secret) {
		t.Error("the log names the person:\n" + s.Logged())
	}
	if found := s.columnsWith(secret); len(found) != 1 || found[0] != "idem_payloads.body" {
		t.Errorf("%s is in %v, want the bodies alone", secret, found)
	}
}

func TestAnErasedEventLeavesOnlyItsNameAndIsADuplicateForGood(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]bool{"bodies are dropped": false, "bodies are kept": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			s.On(naming)
			s.openInbox()
			s.First.KeepPayloads, s.Inbox.KeepPayloads = keep, keep
			s.endpoint(s.First, idem.StateDone)
			s.WantAnswer(ofPerson("inline"), http.StatusOK)
			s.Store(identify([]byte(ofPerson("badinline"))), identify([]byte(strings.ReplaceAll(ofPerson("worked"), `"o"`, `"p"`))), identify([]byte(strings.ReplaceAll(ofPerson("badworked"), `"o"`, `"`+secret+`"`))))
			s.Drain(3)
			ana := operator.New(s.Inbox, "ana")
			s.erase(ana, "2 erased; 2 left alone: not done", "inline", "badinline", "worked", "badworked")
			ana.EraseNotDone = true
			s.erase(ana, "4 erased", "inline", "badinline", "worked", "badworked")
			for id, want := range map[string]string{
				"inline": "(done,,0,o)", "badinline": `(discarded,"discarded: erased",1,o)`,
				"worked": "(done,,0,p)", "badworked": `(discarded,"discarded: erased",1,` + secret + `)`,
			} {
				s.WantRow(id, "row(state, last_error, attempts, key)", want)
			}
			// The entity's id stays, and here it is the name.
			if diff := cmp.Diff([]string{"idem_event_log.entity", "idem_events.key"}, s.columnsWith(secret)); diff != "" {
				t.Error("what is left (-want +got):\n" + diff)
			}
			effects := queryOne[int](s, `select count(*) from effects`)
			for _, id := range []string{"inline", "badinline", "worked", "badworked"} {
				e := identify([]byte(ofPerson(id)))
				for mode, accept := range map[string]func(context.Context, idem.Event) (idem.Outcome, error){"work first": s.First.Accept, "inbox": s.Inbox.Accept} {
					if outcome, err := accept(t.Context(), e); outcome != idem.Duplicate || err != nil {
						t.Errorf("%s: %s comes again: %s, %v, want a duplicate", mode, id, outcome, err)
					}
				}
			}
			s.WantEffects(effects)
			if n := queryOne[int](s, `select (select count(*) from idem_payloads) + (select count(*) from idem_archive)`); n != 0 {
				t.Errorf("%d bodies are stored after the redeliveries, want none", n)
			}
		})
	}
}

func TestEventsBehindAnErasedOneGoOn(t *testing.T) {
	t.Parallel()
	s, m := newApp(t), &fixable{}
	s.On(m.Handle)
	s.openInbox()
	s.Store(letter("bad1", "a", 1), letter("a2", "a", 2), letter("a3", "a", 3))
	s.Drain(1)
	m.Fixed.Store(true)
	ana := operator.New(s.Inbox, "ana")
	ana.EraseNotDone = true
	s.erase(ana, "1 erased", "bad1")
	s.Drain(2)
	m.WantDone(t, "a2", "a3")
}

// What is being processed is a handler's; what was changed by hand is still found.
func TestEraseLeavesWhatIsBeingProcessedAndTakesWhatHasNoBody(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(naming)
	s.openInbox()
	s.Store(identify([]byte(ofPerson("bad1"))))
	s.Drain(1)
	s.WantAnswer(paid("e2"), http.StatusOK)
	ana := operator.New(s.Inbox, "ana")
	ana.EraseNotDone = true
	tx, err := s.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from idem_events for update`); err != nil {
		t.Fatal(err)
	}
	s.erase(ana, "0 erased; 2 left alone: being processed or changed", "bad1", "e2")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Exec(`delete from idem_payloads where event like '%bad1'`)
	s.erase(ana, "2 erased", "bad1", "e2")
	s.WantRow("bad1", "row(state, last_error)", `(discarded,"discarded: erased")`)
	s.WantState("e2", idem.StateDone)
}

func TestTheAuditTrailSaysWhoErasedWhatWithoutAWordOfIt(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(naming)
	s.openInbox()
	s.Store(identify([]byte(strings.ReplaceAll(ofPerson("bad1"), `"o"`, `"`+secret+`"`))), letter("e2", "p", 1))
	s.Drain(2)
	ana := operator.New(s.Inbox, "ana@shop")
	if _, err := replayed(t.Context(), "try again")(ana.PlanReplay(t.Context(), idem.Filter{})); err != nil {
		t.Fatal(err)
	}
	s.erase(ana, "1 erased; 1 left alone: not done", "bad1", "e2")
	ana.EraseNotDone = true
	s.erase(ana, "2 erased", "bad1", "e2")
	want := []operator.Action{
		{Action: "replay", Filter: "states unhandled parked; 1 by row key", Reason: "try again", Events: 1, Result: "0 done, 1 failed, 0 without a handler; first failure: paid bad1"},
		{Action: "erase", Filter: "2 by row key", Reason: "request 17", Events: 1, Result: "1 erased; 1 left alone: not done"},
		{Action: "erase", Filter: "2 by row key", Reason: "request 17", Events: 2, Result: "2 erased"},
	}
	for n := range want {
		want[n].Actor, want[n].Source = "ana@shop", "notes"
	}
	trail := s.Trail()
	if diff := cmp.Diff(want, trail, testkit.AnyTime); diff != "" {
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
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if !fixed {
			return idem.NoRetry(errors.New("no such order"))
		}
		err := runSQL(ctx, tx, `select pg_terminate_backend(pg_backend_pid())`)
		return fmt.Errorf("no order of %s: %w", secret, err)
	})
	s.openInbox()
	s.First.RedactError = func(error) string { return "redacted" }
	s.Store(letter("bad1", "o1", 0))
	s.Drain(1)
	fixed = true
	for _, o := range []*operator.Operator{operator.New(s.Inbox, "ana"), operator.New(s.First, "ana")} {
		if r, err := replayed(t.Context(), "")(o.PlanReplay(t.Context(), idem.Filter{})); err != nil || r.Failed != 1 {
			t.Errorf("Replay = %+v, %v, want one failed", r, err)
		}
	}
	for _, a := range s.Trail() {
		if want := "0 done, 1 failed, 0 without a handler; first failure: paid bad1"; a.Result != want {
			t.Errorf("the trail says %q, want %q", a.Result, want)
		}
	}
}

func TestEraseIsRefusedWithoutAReasonANameOrItsOwnSource(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(pay)
	s.openInbox()
	s.Store(letter("e1", "o", 0))
	for says, of := range map[string]struct{ who, reason string }{"give a reason": {"ana", ""}, "the operator has no name": {"", "17"}} {
		n, err := acted(t.Context(), of.reason)(operator.New(s.Inbox, of.who).PlanErase(t.Context(), idem.Filter{IDs: []string{"e1"}}))
		if n != 0 || err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("an erase of %d events, %v, want an error with %q", n, err, says)
		}
	}
	letters := operator.New(idem.NewInbox(s.Pool, testkit.NewSource("letters")), "ana")
	letters.EraseNotDone = true
	if p, err := letters.PlanErase(t.Context(), idem.Filter{Events: []string{"notes//e1"}, IDs: []string{"e1"}}); p.Count != 0 || err != nil {
		t.Errorf("an operator of letters would erase %d events of notes, %v", p.Count, err)
	}
	s.WantPayload("e1", string(letter("e1", "o", 0).Payload))
}

// Nothing that is printed shows a secret, however it is printed.
func TestPrintedCredentialsShowNoSecret(t *testing.T) {
	t.Parallel()
	c := idem.Credentials{Scope: "shop-1", Secrets: []string{"open sesame", "open barley"}}
	type config struct {
		Name     string
		Accounts []idem.Credentials
		Main     *idem.Credentials
	}
	values := []any{c, &c, []idem.Credentials{c}, map[string]idem.Credentials{"a": c}, config{"x", []idem.Credentials{c}, &c}, &config{Main: &c}}
	for _, v := range values {
		var printed []string
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10v"} {
			printed = append(printed, fmt.Sprintf(verb, v))
		}
		encoded, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var text, jsonLog bytes.Buffer
		slog.New(slog.NewTextHandler(&text, nil)).Info("start", "config", v)
		slog.New(slog.NewJSONHandler(&jsonLog, nil)).Info("start", "config", v)
		printed = append(printed, string(encoded), text.String(), jsonLog.String(), fmt.Sprint(v), fmt.Sprintln(v))
		for _, p := range printed {
			for _, secret := range []string{"sesame", "barley", "736573616d65", "736573616D65", "115 101 115"} {
				if strings.Contains(p, secret) {
					t.Errorf("%T is printed with a secret: %s", v, p)
				}
			}
		}
	}
	if got, want := fmt.Sprintf("%+v", c), `{Scope:"shop-1" Secrets:2 redacted}`; got != want {
		t.Errorf("printed as %s, want %s", got, want)
	}
}

// secret is a person's name, which the tests look for.
const secret = "Ana-de-Souza"

// hearing is a tracer that notes what it is told.
type hearing struct {
	mu    sync.Mutex
	heard strings.Builder
}

func (h *hearing) Start(ctx context.Context, _ idem.Span) (context.Context, func(idem.Observation)) {
	return ctx, func(o idem.Observation) {
		h.mu.Lock()
		defer h.mu.Unlock()
		fmt.Fprintf(&h.heard, "%v\n", o.Err)
	}
}

func (h *hearing) Carrier(context.Context) string { return "a carrier for " + secret }

func (h *hearing) text() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.heard.String()
}

// columnsWith lists the columns of this package's tables in which a text is, as table.column.
func (s *app) columnsWith(texts ...string) []string {
	s.Helper()
	// By oid: a cast of a name to regclass would also be tried on the tables of other schemas, and fail.
	columns := queryOne[[]string](s, `
		select array_agg(relname || '.' || attname) from pg_class join pg_attribute on attrelid = pg_class.oid
		where relnamespace = current_schema::regnamespace and relkind in ('r', 'p', 'v') and not relispartition
			and relname like 'idem\_%' and attnum > 0 and not attisdropped`)
	var looks []string
	for _, c := range columns {
		table, column, _ := strings.Cut(c, ".")
		// Bytes as text, and the rest as it prints.
		shown := fmt.Sprintf(`case when pg_typeof(%[1]s) = 'bytea'::regtype then encode(%[1]s::text::bytea, 'escape') else %[1]s::text end`, column)
		looks = append(looks, `select '`+c+`' as place where exists (select from `+table+`, unnest($1::text[]) as said where position(said in `+shown+`) > 0)`)
	}
	return queryOne[[]string](s, `select coalesce(array_agg(place order by place collate "C"), '{}') from (`+strings.Join(looks, " union all ")+`) places`, texts)
}

// placesOf lists the places that a section of docs/private-data.md names: what is code in the first
// cells of its table.
func placesOf(t *testing.T, section string) (places []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/private-data.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "\n## "+section+"\n")
	rest, _, _ = strings.Cut(rest, "\n## ")
	code := regexp.MustCompile("`([^`]+)`")
	for line := range strings.SplitSeq(rest, "\n") {
		if cells := strings.Split(line, "|"); len(cells) > 1 {
			for _, match := range code.FindAllStringSubmatch(cells[1], -1) {
				places = append(places, match[1])
			}
		}
	}
	slices.Sort(places)
	return places
}

// erase has ana erase the events of these ids; the trail says so.
func (s *app) erase(ana *operator.Operator, want string, ids ...string) {
	s.Helper()
	n, err := acted(s.Context(), "request 17")(ana.PlanErase(s.Context(), idem.Filter{IDs: ids}))
	trail := s.Trail()
	if got := trail[len(trail)-1].Result; got != want || !strings.HasPrefix(want, fmt.Sprint(n)) || err != nil {
		s.Errorf("an erase of %q: %d, %v, %q, want %q", ids, n, err, got, want)
	}
}

// runSQL executes a statement, and returns its error as it is.
func runSQL(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	_, err := tx.Exec(ctx, sql, args...)
	return err
}

var errNamesAna = errors.New("no order of " + secret)

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
