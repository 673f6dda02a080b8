package operator_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/testkit"
)

// Whoever asks about one charge wants all of it, also what is done.
func TestGetAndOfKeyReturnEventsInEveryState(t *testing.T) {
	t.Parallel()
	s := testkit.NewInboxShop(t)
	s.Inbox.KeepPayloads = true
	s.On(testkit.RefuseBad)
	s.Store(testkit.Letter("done", "o1", 1), testkit.Letter("bad1", "o1", 2), testkit.Letter("behind", "o1", 3), testkit.Letter("other", "o2", 1),
		testkit.In("shop/1", testkit.Letter("done", "o1", 1)))
	s.Drain()
	all, err := operator.New(s.Inbox, "").OfKey(t.Context(), []string{""}, "o1", 10)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"done", "bad1", "behind"}, testkit.IDs(all)); diff != "" {
		t.Error("OfKey (-want +got):\n" + diff)
	}
	if some, err := operator.New(s.Inbox, "").OfKey(t.Context(), []string{""}, "o1", 2); !slices.Equal(testkit.IDs(some), []string{"bad1", "behind"}) || err != nil {
		t.Errorf("OfKey of two = %v, %v, want the latest", testkit.IDs(some), err)
	}
	if none, err := operator.New(s.Inbox, "").OfKey(t.Context(), []string{"shop"}, "o1", 10); len(none) != 0 || err != nil {
		t.Errorf("OfKey of another account = %v, %v", testkit.IDs(none), err)
	}
	for _, want := range all {
		got, ok, err := operator.New(s.Inbox, "").Lookup(t.Context(), "", want.ID)
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		if diff := cmp.Diff(want, got.StoredEvent); diff != "" {
			t.Error("Lookup, not as OfKey (-OfKey +Lookup):\n" + diff)
		}
		if string(got.Payload) != string(testkit.Letter(got.ID, "o1", 0).Payload) {
			t.Errorf("the payload of %s is %q", got.ID, got.Payload)
		}
	}
	if got, ok, err := operator.New(s.Inbox, "").Lookup(t.Context(), "shop/1", "done"); !ok || got.State != idem.StateDone || got.Scope != "shop/1" || err != nil {
		t.Errorf("Lookup = %+v, %t, %v", got, ok, err)
	}
	if got, ok, err := operator.New(s.Inbox, "").Lookup(t.Context(), "", "nobody"); ok || err != nil {
		t.Errorf("Lookup = %+v, %t, %v, want nothing", got, ok, err)
	}
}

func TestLookupSaysWhyAnEventOfAnInboxIsNotDone(t *testing.T) {
	t.Parallel()
	const noWorkers = "no workers are alive: start the program that runs the inbox, unless Inbox.Drain runs from time to time."
	s := testkit.NewInboxShop(t)
	s.On(failBad)
	s.Inbox.MaxAttempts = 2
	s.Store(testkit.Letter("e1", "o1", 1), testkit.Letter("bad2", "o2", 1), testkit.Letter("e3", "o2", 2), testkit.Letter("e4", "o2", 3))
	wantWhy(s, "e1", operator.WhyNoWorkers, "It has been due since T, and "+noWorkers)
	wantWhy(s, "e3", operator.WhyWaits, "It waits for bad2, an earlier paid of its entity, which has been due since T, and "+noWorkers+" 1 event of its entity waits for it.")
	s.WorkersElsewhere("notes")
	wantWhy(s, "e1", operator.WhyDue, "Nothing is wrong: it has been due since T, and workers are alive.")
	wantWhy(s, "e3", operator.WhyWaits, "It waits for bad2, an earlier paid of its entity, which has been due since T, and workers are alive. 1 event of its entity waits for it.")

	s.Inbox.Backoff = func(int) time.Duration { return time.Hour }
	s.Drain(2)
	wantWhy(s, "e1", operator.WhyDone, "It was done at T.")
	wantWhy(s, "bad2", operator.WhyLater, "It has failed once, last with: no such order; the next attempt is at T. 2 events of its entity wait for it.")
	wantWhy(s, "e4", operator.WhyWaits, "It waits for bad2, an earlier paid of its entity, which has failed once, last with: no such order; the next attempt is at T.")
	s.Exec(`update idem_payloads set due_at = now() where event = 'notes//bad2'`)
	wantWhy(s, "bad2", operator.WhyDue, "It has failed once, last with: no such order; it has been due since T, and workers are alive. 2 events of its entity wait for it.")

	s.Drain(1)
	wantWhy(s, "bad2", operator.WhyParked, "It is parked: it has failed 2 times, last with: no such order; nothing happens to it until it is replayed, requeued or discarded. 2 events of its entity wait for it.")
	wantWhy(s, "e4", operator.WhyWaits, "It waits for bad2, an earlier paid of its entity, which is parked: it has failed 2 times, last with: no such order; nothing happens to it until it is replayed, requeued or discarded.")
	s.Store(testkit.Letter("late0", "o2", 0), testkit.Letter("late1", "o2", 1))
	s.Exec(`update idem_payloads set occurred_at = '2020-01-01' where event = 'notes//late1'`)
	wantWhy(s, "bad2", operator.WhyParked, "It is parked: it has failed 2 times, last with: no such order; nothing happens to it until it is replayed, requeued or discarded. "+
		"Before it, late1 is to be done, which has been due since T, and workers are alive. 3 events of its entity wait for it.")
	s.Exec(`delete from idem_workers`)
	wantWhy(s, "e4", operator.WhyWaits, "It waits for late1, an earlier paid of its entity, which has been due since T, and "+noWorkers+" 1 event of its entity waits for it.")

	s.WantDiscarded(idem.Filter{IDs: []string{"bad2"}}, "a test order", 1)
	wantWhy(s, "bad2", operator.WhyDiscarded, "It was discarded: a test order.")
	s.Exec(`delete from idem_events where event = 'notes//late1'`)
	wantWhy(s, "e4", operator.WhyWaits, "It waits for late1, an earlier event of its entity, which is not in idem_events any more: somebody deleted its row; idem prune has the others go on. "+
		"1 event of its entity waits for it. No workers are alive: "+strings.TrimPrefix(noWorkers, "no workers are alive: "))
	s.Exec(`delete from idem_payloads where event = 'notes//e3'`)
	wantWhy(s, "e3", operator.WhyNoBody, "It has no body any more: somebody deleted its row of idem_payloads; delete that of idem_events, too, and have the provider deliver it again. "+
		"No workers are alive: "+strings.TrimPrefix(noWorkers, "no workers are alive: "))
	if l, ok, err := operator.New(s.Inbox, "").Lookup(t.Context(), "shop/1", "e1"); ok || err != nil {
		t.Errorf("Lookup of another account = %+v, %t, %v", l, ok, err)
	}
}

func TestLookupSaysWhichProcessWorksOnAnEvent(t *testing.T) {
	t.Parallel()
	s := testkit.NewInboxShop(t)
	entered, release := make(chan struct{}), make(chan struct{})
	s.On(func(ctx context.Context, tx pgx.Tx, n *testkit.Note) error {
		if n.ID == "slow" {
			entered <- struct{}{}
			<-release
		}
		return testkit.Pay(ctx, tx, n)
	})
	s.Store(testkit.Letter("slow", "o1", 1), testkit.Letter("e2", "o1", 2))
	stop := s.Start(s.Inbox)
	<-entered
	host, _ := os.Hostname()
	process := fmt.Sprintf("process %d on %s", os.Getpid(), host)
	working := "is being processed since T, by " + process + ", which gave a sign of life 1s ago."
	wantWhy(s, "slow", operator.WhyWorking, "Nothing is wrong: it "+working+" 1 event of its entity waits for it.")
	wantWhy(s, "e2", operator.WhyWaits, "It waits for slow, an earlier paid of its entity, which "+working)
	l := lookUp(s, "slow")
	want := operator.Claim{Host: host, PID: os.Getpid(), Alive: true}
	if diff := cmp.Diff(want, l.Claim, cmpopts.IgnoreTypes(time.Time{})); diff != "" || l.Claim.Since.IsZero() || l.Claim.SeenAt.IsZero() || l.Workers != 1 {
		t.Errorf("of %d workers the claim is (-want +got):\n%s%v", l.Workers, diff, l.Claim)
	}
	release <- struct{}{}
	s.WantWorked(idem.Done, idem.Done)
	stop()

	s.WorkersElsewhere("notes")
	s.Store(testkit.Letter("e3", "o3", 1))
	s.Exec(`insert into idem_workers values (8, 'notes', 'shop-2', 9, now(), now() - interval '1 minute')`)
	s.Exec(`update idem_events set claimed_by = 8, claimed_at = now(), crashes = 1 where event = 'notes//e3'`)
	wantWhy(s, "e3", operator.WhyDied, "It was being processed from T on, by process 9 on shop-2, which has given no sign of life for 1s: other workers go on with it. "+
		"1 process died while they processed it, or were cut off from Postgres.")
	s.Exec(`delete from idem_workers where id = 8`)
	wantWhy(s, "e3", operator.WhyDied, "It was being processed from T on, by a process that is dead: other workers go on with it. "+
		"1 process died while they processed it, or were cut off from Postgres.")
}

func TestLookupSaysWhyAnEventThatReachedNoHandlerIsNotDone(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t)
	s.On(testkit.Pay)
	s.WantAnswer(`{"id":"new","type":"new"}`, http.StatusOK)
	wantWhy(s, "new", operator.WhyUnhandled, "It had no handler when it came: deploy one, then replay it, or requeue it where workers run.")
	odd := testkit.Letter("odd", "o7", 0)
	odd.Payload = []byte(`{"id":"odd","type":"paid","order":7}`)
	if outcome, _ := s.First.Accept(t.Context(), odd); outcome != idem.Parked {
		t.Errorf("Accept = %s", outcome)
	}
	if l := lookUp(s, "odd"); l.Why() != operator.WhyParked || len(l.Failures) != 1 || !strings.Contains(l.Failures[0].Error, "decode") {
		t.Errorf("an event that does not decode: %s, %+v", l.Why(), l.Failures)
	}
}

// When it was done is known of what comes, and of what was stored before.
func TestDoneAtIsWhenTheLastAttemptBegan(t *testing.T) {
	t.Parallel()
	s, m := testkit.NewInboxShop(t), new(testkit.Fixable)
	s.On(m.Handle)
	s.Inbox.MaxAttempts = 1
	s.Store(testkit.Letter("e1", "o1", 1), testkit.Letter("bad2", "o2", 1))
	s.Drain(2)
	server := httptest.NewServer(s.First)
	t.Cleanup(server.Close)
	s.URL = server.URL
	s.WantAnswer(testkit.Paid("e3"), http.StatusOK)
	if l := lookUp(s, "bad2"); !l.DoneAt.IsZero() {
		t.Errorf("an event that is parked was done at %s", l.DoneAt)
	}
	m.Fixed.Store(true)
	before := testkit.QueryOne[time.Time](s, s.Pool, `select clock_timestamp()`)
	s.WantReplayed(idem.Filter{}, idem.Replayed{Done: 1})
	if at := lookUp(s, "bad2").DoneAt; at.Before(before) || at.After(before.Add(time.Minute)) {
		t.Errorf("it was done at %s, want it at %s or soon after", at, before)
	}
	if l := lookUp(s, "e3"); !l.DoneAt.Equal(l.ReceivedAt) {
		t.Errorf("an event that was done as it came was received at %s and done at %s", l.ReceivedAt, l.DoneAt)
	}
	if n := testkit.QueryOne[int](s, s.Pool, `select count(done_at) from idem_events`); n != 2 {
		t.Errorf("the rows of %d events have it, want 2: one that is done as it comes writes nothing more", n)
	}
	if n := testkit.QueryOne[int](s, s.Pool, `select count(*) from idem_event_log where done_at >= received_at`); n != 3 {
		t.Errorf("the view says of %d events when they were done, want 3", n)
	}
}

func TestTheLastFiveFailuresAreKeptUntilAnEventIsDone(t *testing.T) {
	t.Parallel()
	for mode, fail := range map[string]func(s *testkit.Shop){
		"a worker": func(s *testkit.Shop) { s.Store(testkit.Letter("e1", "o1", 0)); s.Drain(7) },
		"a worker, then replays": func(s *testkit.Shop) {
			s.Inbox.MaxAttempts = 1
			s.Store(testkit.Letter("e1", "o1", 0))
			s.Drain(1)
			for range 6 {
				s.WantReplayed(idem.Filter{}, idem.Replayed{Failed: 1})
			}
		},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := testkit.NewInboxShop(t)
			s.Inbox.MaxAttempts = 7
			attempt, longest := 0, strings.Repeat("é", 300)
			s.On(func(context.Context, pgx.Tx, *testkit.Note) error {
				if attempt++; attempt > 7 {
					return nil
				}
				return fmt.Errorf("attempt %d: %s", attempt, longest)
			})
			start := testkit.QueryOne[time.Time](s, s.Pool, `select clock_timestamp()`)
			fail(s)
			l := lookUp(s, "e1")
			var want []string
			for n := 3; n <= 7; n++ {
				want = append(want, fmt.Sprintf("attempt %d: %s", n, longest)[:len("attempt 1: ")+2*(300-len("attempt 1: "))])
			}
			var got []string
			for _, f := range l.Failures {
				got = append(got, f.Error)
				if f.At.Before(start) || f.At.After(l.At) {
					t.Errorf("an attempt failed at %s, want it between %s and %s", f.At, start, l.At)
				}
				start = f.At
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error("failures (-want +got):\n" + diff)
			}
			if n := testkit.QueryOne[int](s, s.Pool, `select jsonb_array_length(failures) from idem_event_log`); n != 5 {
				t.Errorf("the view has %d failures, want 5", n)
			}
			s.WantReplayed(idem.Filter{}, idem.Replayed{Done: 1})
			if l := lookUp(s, "e1"); l.State != idem.StateDone || l.Failures != nil {
				t.Errorf("it is %s, and has %d failures left", l.State, len(l.Failures))
			}
		})
	}
}

func TestAccountsAreFoundByTheIDAlone(t *testing.T) {
	t.Parallel()
	s := testkit.NewInboxShop(t)
	s.On(testkit.Pay)
	for _, scope := range []string{"", "a", "a-b", "a.c", "a/b", "a0", "z%", "ação"} {
		s.Store(testkit.In(scope, testkit.Letter("e1", "o1", 0)), testkit.In(scope, testkit.Letter("e1/x", "o1", 0)))
	}
	s.Exec(`insert into idem_events (event, type, key, state) values ('note//e1', '', '', 'done'), ('notes2//e1', '', '', 'done'), ('notes0/a/e1', '', '', 'done')`)
	s.Drain(16)
	for _, id := range []string{"e1", "e1/x"} {
		all, err := operator.New(s.Inbox, "").WithID(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range all {
			if got = append(got, e.Scope); e.ID != id || e.State != idem.StateDone || e.DoneAt.IsZero() {
				t.Errorf("%s of %q is found, %s", e.ID, e.Scope, e.State)
			}
		}
		if diff := cmp.Diff([]string{"", "a", "a-b", "a.c", "a/b", "a0", "ação", "z%"}, got, cmpopts.SortSlices(strings.Compare)); diff != "" {
			t.Error("accounts (-want +got):\n" + diff)
		}
	}
	if none, err := operator.New(s.Inbox, "").WithID(t.Context(), "e"); len(none) != 0 || err != nil {
		t.Errorf("WithID of a part = %v, %v", none, err)
	}
}

// It says so before: people wait then.
func TestEventsOfAnEntityAreReadByAnIndexWhereThereIsOne(t *testing.T) {
	t.Parallel()
	s := testkit.NewInboxShop(t)
	s.On(testkit.Pay)
	s.Exec(`insert into idem_events (event, type, key, state) select 'notes//' || n, 'paid', 'o' || n, 'done' from generate_series(1, 5000) n; analyze idem_events`)
	scan := func() int64 {
		n, err := operator.New(s.Inbox, "").ScanOfKey(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := scan(); n != 5000 {
		t.Errorf("OfKey reads %d events, want 5000", n)
	}
	s.Exec(`create index partial on idem_events (key) where state = 'done'; create index other on idem_events (state, key)`)
	if n := scan(); n != 5000 {
		t.Errorf("with other indexes OfKey reads %d events, want 5000", n)
	}
	s.Exec(`create index idem_events_key on idem_events (key)`)
	if n := scan(); n != 0 {
		t.Errorf("with an index OfKey reads %d events", n)
	}
	s.Store(testkit.In("shop", testkit.Letter("new", "o7", 0)))
	for want, scopes := range map[string][]string{"7 shop new": nil, "7": {""}, "shop new": {"shop"}} {
		all, err := operator.New(s.Inbox, "").OfKey(t.Context(), scopes, "o7", 10)
		if got := strings.Join(testkit.IDs(all), " "); got != want || err != nil {
			t.Errorf("OfKey of %q = %s, %v, want %s", scopes, got, err, want)
		}
	}
}

// failBad fails, and is tried again.
func failBad(ctx context.Context, tx pgx.Tx, n *testkit.Note) error {
	if strings.HasPrefix(n.ID, "bad") {
		return errors.New("no such order")
	}
	return testkit.Pay(ctx, tx, n)
}

// wantWhy checks why an event is not done, and the words for it. Times are T.
func wantWhy(s *testkit.Shop, id string, why operator.Why, says string) {
	s.Helper()
	l := lookUp(s, id)
	got := sinceASign.ReplaceAllString(l.Says("en", func(time.Time) string { return "T" }), "life ${1}1s")
	if diff := cmp.Diff(says, got); diff != "" || l.Why() != why {
		s.Errorf("%s is not done because of %q, want %q; it says (-want +got):\n%s", id, l.Why(), why, diff)
	}
}

func lookUp(s *testkit.Shop, id string) operator.Lookup {
	s.Helper()
	l, ok, err := operator.New(s.First, "").Lookup(s.Context(), "", id)
	if !ok || err != nil {
		s.Fatalf("Lookup(%s) = %t, %v", id, ok, err)
	}
	return l
}

var sinceASign = regexp.MustCompile(`life (for )?\d+[ms0-9]*`)
