package operator_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/testkit"
)

// A person unticks some of the events that a plan has found.
func TestAPlanLeavesWhatWasTakenOutOfIt(t *testing.T) {
	t.Parallel()
	pool := testkit.Open(t)
	park := func(ids ...string) {
		t.Helper()
		testkit.Exec(t, pool, `insert into idem_events (event, type, key, state) select 'notes//' || id, 'paid', '', 'parked' from unnest($1::text[]) id`, ids)
		testkit.Exec(t, pool, `insert into idem_payloads (event, source, received_at, body) select 'notes//' || id, 'notes', now(), '{}' from unnest($1::text[]) id`, ids)
	}
	park("e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8")
	p, err := operator.New(idem.NewInbox(pool, testkit.NewSource("notes")), "ana").PlanDiscard(t.Context(), idem.Filter{Types: []string{"paid"}})
	if err != nil || p.Action != "discard" || p.Count != 8 {
		t.Fatalf("the plan is %+v, %v", p, err)
	}
	for _, out := range []string{"notes//e7", "notes//e8"} {
		p.Keep(func(rowKey string) bool { return rowKey != out })
	}
	first, err := p.First(t.Context())
	if diff := cmp.Diff([]string{"e1", "e2", "e3", "e4", "e5"}, testkit.IDs(first)); diff != "" || p.Count != 6 || err != nil {
		t.Errorf("it is about %d events, %v, want 6; the first (-want +got):\n%s", p.Count, err, diff)
	}
	park("e9")
	if r, err := p.Do(t.Context(), "noise"); r.Acted != 6 || r.Left != nil || err != nil {
		t.Errorf("it acted on %d events, and left %v, %v, want 6", r.Acted, r.Left, err)
	}
	if n, err := p.Came(t.Context()); n != 1 || err != nil {
		t.Errorf("%d events came since, %v, want e9; the others were left out on purpose", n, err)
	}
	const parked = `select array_agg(event order by event) from idem_events where state = 'parked'`
	if diff := cmp.Diff([]string{"notes//e7", "notes//e8", "notes//e9"}, testkit.QueryOne[[]string](t, pool, parked)); diff != "" {
		t.Error("what is as it was (-want +got):\n" + diff)
	}
}

// each is a planner of each verb, of an event that it can be done to.
var each = map[string]planner{
	"replay": on(replay, idem.Filter{}), "dry replay": on(dryReplay, idem.Filter{}), "requeue": on(requeue, idem.Filter{}), "discard": on(discard, idem.Filter{}),
	"acknowledge": on(acknowledge, idem.Filter{}), "unacknowledge": on(unacknowledge, idem.Filter{}), "erase": on(erase, idem.Filter{IDs: []string{"ok0"}}),
	"readmit": readmit, "prune": prune, "rescope": rescope, "pause": pause, "resume": resume, "rerun": rerun,
}

// wantNothingChanged plans and does, and checks that Do returns an error that says so, and that nothing is changed.
func (s *night) wantNothingChanged(verb string, o *operator.Operator, says string) {
	s.Helper()
	o.RequeueWithoutWorkers = true
	if s.Exec(`delete from idem_pauses`); verb == "resume" { // others are refused what is paused
		paused(s)
	}
	p, err := each[verb](o, s.Context())
	if err != nil {
		s.Fatal(verb, err)
	}
	changes := s.changes()
	pauses := testkit.QueryOne[int](s, s.Pool, `select count(*) from idem_pauses`)
	if r, err := p.Do(s.Context(), "noise"); r.Acted != 0 || err == nil || !strings.Contains(err.Error(), says) {
		s.Errorf("%s: it acted on %d events, %v, want an error with %q", verb, r.Acted, err, says)
	}
	if all := changes(); all != nil {
		s.Errorf("%s: it changed %q", verb, all)
	}
	if n := testkit.QueryOne[int](s, s.Pool, `select count(*) from idem_pauses`); n != pauses {
		s.Errorf("%s: there are %d pauses, and were %d", verb, n, pauses)
	}
}

func TestWithoutANameOrATrailNoVerbDoesAnything(t *testing.T) {
	t.Parallel()
	s := newNight(t)
	setAside(s)
	aged(s)
	for verb := range each {
		s.wantNothingChanged(verb, operator.New(s.Inbox, ""), "give New who it acts for")
	}
	s.Exec(`create function refuse() returns trigger language plpgsql as $$ begin raise 'the disk is full'; end $$;
		create trigger refuse before insert on idem_audit for each row execute function refuse()`)
	for verb := range each {
		s.wantNothingChanged(verb, operator.New(s.Inbox, "ana"), verb+" could not be recorded, and was not begun")
	}
}

// What is stored for workers would wait for them, and the provider's next delivery of it would be a duplicate.
func TestWithoutWorkersNothingIsStoredForThem(t *testing.T) {
	t.Parallel()
	s := newNight(t)
	setAside(s)
	for _, verb := range []string{"requeue", "readmit"} {
		p, err := each[verb](operator.New(s.Inbox, "ana"), t.Context())
		if err != nil {
			t.Fatal(err)
		}
		changes := s.changes()
		if r, err := p.Do(t.Context(), "noise"); r.Acted != 0 || !errors.Is(err, operator.ErrNoWorkers) {
			t.Errorf("%s: it acted on %d events, %v, want that no workers are alive", verb, r.Acted, err)
		}
		if trail, _ := s.lastAction(); trail != "" || changes() != nil {
			t.Errorf("%s: it changed %q; the trail has %q", verb, changes(), trail)
		}
	}
}

// An action whose change is not recorded has not happened.
func TestChangeAndItsRecordAreOneTransaction(t *testing.T) {
	t.Parallel()
	s := newNight(t)
	s.Exec(`update idem_payloads set acknowledged_at = now() where event like '%/bad3'`)
	s.Exec(`create function refuse() returns trigger language plpgsql as $$ begin raise 'the disk is full'; end $$;
		create trigger refuse before update on idem_audit for each row when (new.result ~ '^\d+ (requeu|discard|acknowledg|unacknowledg|eras)ed') execute function refuse()`)
	for _, verb := range []string{"requeue", "discard", "acknowledge", "unacknowledge", "erase"} {
		s.wantNothingChanged(verb, operator.New(s.Inbox, "ana"), "the disk is full")
		if trail, _ := s.lastAction(); !strings.HasPrefix(trail, "ana "+verb+" ") || !strings.Contains(trail, "failed: ") {
			t.Errorf("%s: the trail has %s", verb, trail)
		}
	}
}

// An action whose filter matches nothing is not one without a filter, and seven that became seven others are others.
func TestWhatChoosesNothingOrNothingAnyMoreIsDoneToNothing(t *testing.T) {
	t.Parallel()
	s := newNight(t)
	for verb, plan := range map[string]func(*operator.Operator, context.Context, idem.Filter) (*operator.Plan, error){
		"replay": replay, "dry replay": dryReplay, "requeue": requeue, "discard": discard, "acknowledge": acknowledge, "unacknowledge": unacknowledge,
	} {
		ana := operator.New(s.Inbox, "ana")
		ana.RequeueWithoutWorkers = true
		for reason, f := range map[string]idem.Filter{"no such type": {Types: []string{"nothing"}}, "those of the plan have left": {IDs: []string{"late1", "bad3"}}} {
			s.Exec(`update idem_events set state = 'parked' where event ~ '/(late1|bad3)$'; update idem_payloads set acknowledged_at = null`)
			if verb == "unacknowledge" {
				s.Exec(`update idem_payloads set acknowledged_at = now()`)
			}
			p, err := plan(ana, t.Context(), f)
			if err != nil || p.Filter.Events == nil || p.Count != int64(len(f.IDs)) {
				t.Fatalf("%s of %s: the plan is of %d events: %v, %v", verb, reason, p.Count, p.Filter.Events, err)
			}
			s.Exec(`update idem_events set state = 'discarded' where event ~ '/(late1|bad3)$'`)
			changes := s.changes()
			if r, err := p.Do(t.Context(), "noise"); r.Acted != 0 || err != nil {
				t.Errorf("%s of %s: it acted on %d events, %v", verb, reason, r.Acted, err)
			}
			if all := changes(); all != nil {
				t.Errorf("%s of %s: it changed %q", verb, reason, all)
			}
			saysLeft := !strings.Contains(verb, "acknowledge") && f.IDs != nil
			if trail, _ := s.lastAction(); !strings.Contains(trail, "0 events: ") || strings.Contains(trail, "; 2 "+leftAlone) != saysLeft {
				t.Errorf("%s of %s: the trail has %s", verb, reason, trail)
			}
		}
	}
}

// A page and a command show what was chosen.
func TestAPlanNamesItsEventsInTheOrderOfArrival(t *testing.T) {
	t.Parallel()
	s := testkit.NewInboxShop(t)
	s.On(testkit.RefuseBad)
	s.Store(testkit.Letter("bad2", "2", 0), testkit.In("shop/1", testkit.Letter("bad1", "1", 0)))
	s.Drain(2)
	p, err := operator.New(s.Inbox, "").PlanDiscard(t.Context(), idem.Filter{Types: []string{"paid"}})
	if diff := cmp.Diff([]string{"notes//bad2", "notes/shop%2F1/bad1"}, p.Filter.Events); diff != "" || err != nil {
		t.Error(err, "the events (-want +got):\n"+diff)
	}
}
