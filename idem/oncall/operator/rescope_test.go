package operator_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/testkit"
)

// An account gets a scope. What was in flight until then comes again under it, and is
// done once.
func TestEventThatComesAgainUnderANewScopeIsDoneOnce(t *testing.T) {
	t.Parallel()
	inShop := testkit.Letter("e1", "o1", 1)
	inShop.Scope = "shop"
	again := func(s *flaky, r idem.Receiver) idem.Outcome {
		o, err := r.Accept(s.Context(), inShop)
		if err != nil {
			s.Error(err)
		}
		return o
	}
	for _, story := range []struct {
		name   string
		before func(*flaky)
		comes  func(*flaky) idem.Outcome
		want   idem.Outcome
	}{
		{
			"it was answered 200, and the answer was lost",
			func(s *flaky) { acceptAs(s.Shop, s.First, idem.Done) },
			func(s *flaky) idem.Outcome { return again(s, s.First) }, idem.Duplicate,
		},
		{
			"an inbox has done it",
			func(s *flaky) { s.Store(testkit.Letter("e1", "o1", 1)); s.Drain(1) },
			func(s *flaky) idem.Outcome { return again(s, s.Inbox) }, idem.Duplicate,
		},
		{
			"it has failed, and is tried again",
			func(s *flaky) { s.failing(2) },
			func(s *flaky) idem.Outcome {
				s.Exec(`update idem_payloads set due_at = now()`)
				defer s.Drain(1)
				return again(s, s.Inbox)
			}, idem.Duplicate,
		},
		{
			"it waits for the workers",
			func(s *flaky) { s.Store(testkit.Letter("e1", "o1", 1)) },
			func(s *flaky) idem.Outcome { defer s.Drain(1); return again(s, s.Inbox) }, idem.Duplicate,
		},
		{
			"it is parked, and replayed",
			func(s *flaky) { s.failing(1) },
			func(s *flaky) idem.Outcome {
				s.WantReplayed(idem.Filter{Scopes: []string{"shop"}}, idem.Replayed{Done: 1})
				return again(s, s.First)
			}, idem.Duplicate,
		},
		{
			"it is parked, and its body is kept when it is done",
			func(s *flaky) {
				s.First.KeepPayloads = true
				s.failing(1)
				s.WantReplayed(idem.Filter{}, idem.Replayed{Done: 1})
			},
			func(s *flaky) idem.Outcome {
				if e, ok, err := operator.New(s.First, "").Lookup(s.Context(), "shop", "e1"); string(e.Payload) != string(inShop.Payload) || !ok || err != nil {
					s.Errorf("its body is %q, %v, %v", e.Payload, ok, err)
				}
				return again(s, s.First)
			}, idem.Duplicate,
		},
	} {
		t.Run(story.name, func(t *testing.T) {
			t.Parallel()
			s := &flaky{Shop: testkit.NewShop(t).OpenInbox()}
			s.On(func(ctx context.Context, tx pgx.Tx, n *testkit.Note) error {
				if s.fails.Load() {
					return errors.New("the shop is closed")
				}
				return testkit.Pay(ctx, tx, n)
			})
			story.before(s)
			wantMoved(s.Shop, 1)
			if got := story.comes(s); got != story.want {
				t.Errorf("it came again: %s, want %s", got, story.want)
			}
			s.WantEffects(1)
			if diff := cmp.Diff([]string{"notes/shop/e1 done"}, states(s.Shop)); diff != "" {
				t.Error("events (-want +got):\n" + diff)
			}
			if n := testkit.QueryOne[int](s, s.Pool, `select count(*) from idem_payloads`); n != 0 {
				t.Errorf("%d bodies are left", n)
			}
		})
	}
}

func TestRescopeKeepsTheOrderWithinAnEntity(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t).OpenInbox()
	var order []string
	s.On(func(ctx context.Context, tx pgx.Tx, n *testkit.Note) error {
		order = append(order, n.ID)
		return testkit.Pay(ctx, tx, n)
	})
	s.Store(testkit.Letter("e3", "o1", 3), testkit.Letter("e2", "o1", 2))
	s.Exec(`update idem_payloads set due_at = null where event = 'notes//e3'`) // held back, as a claim does it
	wantMoved(s, 2)
	first := testkit.Letter("e1", "o1", 1) // comes late, under the new name
	first.Scope = "shop"
	s.Store(first)
	s.Drain()
	if diff := cmp.Diff([]string{"e1", "e2", "e3"}, order); diff != "" {
		t.Error("handled (-want +got):\n" + diff)
	}
}

func TestRescopeMovesAllOfOneAccountAndNothingElse(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t)
	s.EveryState()
	const others = `insert into idem_events (event, type, key, state) values
		('notes/shop-2/done', '', '', 'done'), ('notes/sho/done', '', '', 'done'), ('notes2//done', '', '', 'done'), ('note//done', '', '', 'done');
		insert into idem_payloads (event, source, lane, received_at, body) values ('notes/shop-2/x', 'notes', 'notes/shop-2/o', now(), '{}')`
	s.Exec(others)
	s.Exec(`insert into idem_audit (id, actor, action, source, filter, reason, events) values
		(1, 'ana', 'replay', 'notes', '', '', array['notes//b', 'notes/shop-2/a', 'notes//a']), (2, 'ana', 'replay', 'notes2', '', '', array['notes2//a'])`)
	s.Exec(`insert into idem_audit_events (action, event, result) select min(id), unnest(array['notes//a', 'notes/shop-2/a']), 'done' from idem_audit`)
	want := s.Contents()
	for n, line := range want {
		if strings.HasPrefix(line, "effect") {
			continue
		}
		want[n] = strings.ReplaceAll(strings.ReplaceAll(line, "(notes//", "(notes/shop/"), ",notes//", ",notes/shop/")
	}
	slices.Sort(want)
	wantMoved(s, testkit.QueryOne[int64](s, s.Pool, `select count(*) from idem_events where event like 'notes//%'`))
	got := s.Contents()
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("the tables (-want +got):\n" + diff)
	}
	trail := testkit.QueryOne[[]string](s, s.Pool, `select array_agg(actor || ' ' || action || ' ' || filter || ' ' || events::text || ' ' || coalesce(result, '') order by id) from idem_audit`)
	if diff := cmp.Diff([]string{
		"ana replay  {notes/shop/b,notes/shop-2/a,notes/shop/a} ",
		"ana replay  {notes2//a} ",
		`ana rescope notes without a scope to notes "shop" {} ` + trail[2][strings.LastIndex(trail[2], "} ")+2:],
	}, trail); diff != "" || !strings.HasSuffix(trail[2], " moved") {
		t.Error("the audit trail (-want +got):\n" + diff)
	}
	outcomes := testkit.QueryOne[[]string](s, s.Pool, `select array_agg(event order by event) from idem_audit_events`)
	if diff := cmp.Diff([]string{"notes/shop-2/a", "notes/shop/a"}, outcomes); diff != "" {
		t.Error("events with an outcome (-want +got):\n" + diff)
	}
}

func TestRenamedSourceKeepsItsEventsAndItsTrail(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t)
	s.Exec(`insert into idem_events (event, type, key, state) values ('old//e1', 'paid', '', 'done'), ('old/shop/e1', 'paid', 'o1', 'pending');
		insert into idem_payloads (event, source, lane, due_at, received_at, body) values ('old/shop/e1', 'old', 'old/shop/o1', now(), now(), '{}');
		insert into idem_audit (id, actor, action, source, filter, reason, events) values (1, 'ana', 'replay', 'old', '', '', array['old//e1', 'old/shop/e1'])`)
	o := operator.New(testkit.NewFirst(s.Pool, testkit.NewSource("old")), "ana")
	trail := func(source, events string) {
		t.Helper()
		got := testkit.QueryOne[string](s, s.Pool, `select source || ' ' || events::text from idem_audit order by id limit 1`)
		if got != source+" "+events {
			t.Errorf("the audit trail has %s, want %s %s", got, source, events)
		}
	}
	for _, scope := range []string{"", "shop"} {
		if n, err := testkit.Acted(t.Context(), "")(o.PlanRescope(t.Context(), scope, operator.Account{Source: "notes", Scope: scope})); n != 1 || err != nil {
			t.Fatalf("Rescope = %d, %v", n, err)
		}
		if scope == "" {
			trail("old", "{notes//e1,old/shop/e1}")
		}
	}
	trail("notes", "{notes//e1,notes/shop/e1}")
	if diff := cmp.Diff([]string{"notes//e1 done", "notes/shop/e1 pending"}, states(s)); diff != "" {
		t.Error("events (-want +got):\n" + diff)
	}
	if got := testkit.QueryOne[string](s, s.Pool, `select source || ' ' || lane from idem_payloads`); got != "notes notes/shop/o1" {
		t.Errorf("the body is of %s", got)
	}
}

func TestRescopeRefusesWhatWouldLoseOrDoubleAnEvent(t *testing.T) {
	t.Parallel()
	shop := operator.Account{Source: "notes", Scope: "shop"}
	for _, c := range []struct {
		why  string
		make string
		to   operator.Account
		want string
	}{
		{
			"both were processed", `insert into idem_events (event, type, key, state) values ('notes/shop/e1', '', '', 'done')`, shop,
			"1 events are stored under both, so they may have been done twice: notes//e1: see what was done for each",
		},
		{
			"more than an error names", `insert into idem_events (event, type, key, state)
				select 'notes/' || scope || '/f' || n, '', '', 'done' from generate_series(1, 7) n, unnest(array['', 'shop']) scope`, shop,
			"7 events are stored under both, so they may have been done twice: notes//f1, notes//f2, notes//f3, notes//f4, notes//f5: ",
		},
		{
			"a body without an event is no less in the way", `insert into idem_archive (event, received_at, body)
				values ('notes//e1', now(), ''), ('notes/shop/e1', now(), '')`, shop,
			"1 events are stored under both",
		},
		{
			"a worker would end its attempt under the old name", `insert into idem_workers (id, source, host, pid, started_at, seen_at)
				values (1, 'notes', 'till', 42, now(), now()), (2, 'notes', 'gone', 43, now(), now() - interval '1 minute'), (3, 'others', 'till', 44, now(), now())`, shop,
			"1 workers of notes are alive, one on till in process 42: stop every process",
		},
		{"a slash would be in the row key", ``, operator.Account{Source: "a/b"}, `the source to move events to is "a/b"`},
		{"a source has a name", ``, operator.Account{Scope: "shop"}, `the source to move events to is ""`},
		{"it cannot be stored", ``, operator.Account{Source: "notes", Scope: "a\x00"}, `the scope to move events to`},
		{"they are there", ``, operator.Account{Source: "notes"}, `would be moved to where they are`},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			s := testkit.NewShop(t)
			s.Exec(`insert into idem_events (event, type, key, state) values ('notes//e1', '', '', 'done')`)
			s.Exec(c.make)
			want := s.Contents()
			n, err := testkit.Acted(t.Context(), "")(operator.New(s.First, "ana").PlanRescope(t.Context(), "", c.to))
			if n != 0 || err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Rescope = %d, %v, want %s", n, err, c.want)
			}
			s.WantContents(want)
		})
	}
}

func TestRescopeWaitsForWhatIsBeingProcessed(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t)
	entered := make(chan struct{})
	s.On(func(ctx context.Context, tx pgx.Tx, n *testkit.Note) error {
		close(entered)
		if err := s.Await(ctx, testkit.Blocked); err != nil { // until the move waits
			return err
		}
		return testkit.Pay(ctx, tx, n)
	})
	done := make(chan error, 1)
	go func() {
		_, err := s.First.Accept(context.Background(), testkit.Letter("e1", "o1", 1))
		done <- err
	}()
	<-entered
	wantMoved(s, 1)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"notes/shop/e1 done"}, states(s)); diff != "" {
		t.Error("events (-want +got):\n" + diff)
	}
}

// The id of an event without an entity is nobody's entity, also under its new name.
func TestMovedEventWithoutAnEntityHoldsNoEntity(t *testing.T) {
	t.Parallel()
	s := testkit.NewInboxShop(t)
	s.On(testkit.RefuseBad)
	s.Store(testkit.Letter("bad", "", 1))
	s.Drain()
	wantMoved(s, 1)
	s.Store(testkit.In("shop", testkit.Letter("e2", "/bad", 2)))
	s.Drain()
	s.WantEffects(1)
}

// flaky is an app whose handler may fail.
type flaky struct {
	*testkit.Shop
	fails atomic.Bool
}

// failing has workers fail to process e1, of most attempts.
func (s *flaky) failing(most int) {
	s.Helper()
	s.Inbox.MaxAttempts = most
	s.fails.Store(true)
	s.Store(testkit.Letter("e1", "o1", 1))
	s.Drain(1)
	s.fails.Store(false)
}

func acceptAs(s *testkit.Shop, r idem.Receiver, want idem.Outcome) {
	s.Helper()
	if o, _ := r.Accept(s.Context(), testkit.Letter("e1", "o1", 1)); o != want {
		s.Fatalf("Accept = %s, want %s", o, want)
	}
}

// wantMoved moves what is stored without a scope to the scope shop.
func wantMoved(s *testkit.Shop, want int64) {
	s.Helper()
	o := operator.New(s.First, "ana")
	if n, err := testkit.Acted(s.Context(), "a second account")(o.PlanRescope(s.Context(), "", operator.Account{Source: "notes", Scope: "shop"})); n != want || err != nil {
		s.Fatalf("Rescope = %d, %v, want %d", n, err, want)
	}
}

// states are the states of all events, by their row keys.
func states(s *testkit.Shop) []string {
	s.Helper()
	return testkit.QueryOne[[]string](s, s.Pool, `select coalesce(array_agg(event || ' ' || state order by event), '{}') from idem_events`)
}
