package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
)

func (s *app) lookUp(id string) operator.Lookup {
	s.Helper()
	l, ok, err := operator.New(s.processor, "").Lookup(s.Context(), "", id)
	if !ok || err != nil {
		s.Fatalf("Lookup(%s) = %t, %v", id, ok, err)
	}
	return l
}

var sinceASign = regexp.MustCompile(`life (for )?\d+[ms0-9]*`)

// wantWhy checks why an event is not done, and the words for it. Times are T.
func (s *app) wantWhy(id string, why operator.Why, says string) {
	s.Helper()
	l := s.lookUp(id)
	got := sinceASign.ReplaceAllString(l.Says("en", func(time.Time) string { return "T" }), "life ${1}1s")
	if diff := cmp.Diff(says, got); diff != "" || l.Why() != why {
		s.Errorf("%s is not done because of %q, want %q; it says (-want +got):\n%s", id, l.Why(), why, diff)
	}
}

// failBad fails, and is tried again.
func failBad(ctx context.Context, tx pgx.Tx, n *note) error {
	if strings.HasPrefix(n.ID, "bad") {
		return errors.New("no such order")
	}
	return pay(ctx, tx, n)
}

func TestLookupSaysWhyAnEventOfAnInboxIsNotDone(t *testing.T) {
	t.Parallel()
	const noWorkers = "no workers are alive: start the program that runs the inbox, unless Inbox.Drain runs from time to time."
	s := newInboxApp(t)
	s.on(failBad)
	s.inbox.MaxAttempts = 2
	s.store(letter("e1", "o1", 1), letter("bad2", "o2", 1), letter("e3", "o2", 2), letter("e4", "o2", 3))
	s.wantWhy("e1", operator.WhyNoWorkers, "It has been due since T, and "+noWorkers)
	s.wantWhy("e3", operator.WhyWaits, "It waits for bad2, an earlier paid of its entity, which has been due since T, and "+noWorkers+" 1 event of its entity waits for it.")
	s.workersElsewhere("notes")
	s.wantWhy("e1", operator.WhyDue, "Nothing is wrong: it has been due since T, and workers are alive.")
	s.wantWhy("e3", operator.WhyWaits, "It waits for bad2, an earlier paid of its entity, which has been due since T, and workers are alive. 1 event of its entity waits for it.")

	s.inbox.Backoff = func(int) time.Duration { return time.Hour }
	s.drain(2)
	s.wantWhy("e1", operator.WhyDone, "It was done at T.")
	s.wantWhy("bad2", operator.WhyLater, "It has failed once, last with: no such order; the next attempt is at T. 2 events of its entity wait for it.")
	s.wantWhy("e4", operator.WhyWaits, "It waits for bad2, an earlier paid of its entity, which has failed once, last with: no such order; the next attempt is at T.")
	s.exec(`update idem_payloads set due_at = now() where event = 'notes//bad2'`)
	s.wantWhy("bad2", operator.WhyDue, "It has failed once, last with: no such order; it has been due since T, and workers are alive. 2 events of its entity wait for it.")

	s.drain(1)
	s.wantWhy("bad2", operator.WhyParked, "It is parked: it has failed 2 times, last with: no such order; nothing happens to it until it is replayed, requeued or discarded. 2 events of its entity wait for it.")
	s.wantWhy("e4", operator.WhyWaits, "It waits for bad2, an earlier paid of its entity, which is parked: it has failed 2 times, last with: no such order; nothing happens to it until it is replayed, requeued or discarded.")
	s.store(letter("late0", "o2", 0), letter("late1", "o2", 1))
	s.exec(`update idem_payloads set occurred_at = '2020-01-01' where event = 'notes//late1'`)
	s.wantWhy("bad2", operator.WhyParked, "It is parked: it has failed 2 times, last with: no such order; nothing happens to it until it is replayed, requeued or discarded. "+
		"Before it, late1 is to be done, which has been due since T, and workers are alive. 3 events of its entity wait for it.")
	s.exec(`delete from idem_workers`)
	s.wantWhy("e4", operator.WhyWaits, "It waits for late1, an earlier paid of its entity, which has been due since T, and "+noWorkers+" 1 event of its entity waits for it.")

	s.wantDiscarded(idem.Filter{IDs: []string{"bad2"}}, "a test order", 1)
	s.wantWhy("bad2", operator.WhyDiscarded, "It was discarded: a test order.")
	s.exec(`delete from idem_events where event = 'notes//late1'`)
	s.wantWhy("e4", operator.WhyWaits, "It waits for late1, an earlier event of its entity, which is not in idem_events any more: somebody deleted its row; idem prune has the others go on. "+
		"1 event of its entity waits for it. No workers are alive: "+strings.TrimPrefix(noWorkers, "no workers are alive: "))
	s.exec(`delete from idem_payloads where event = 'notes//e3'`)
	s.wantWhy("e3", operator.WhyNoBody, "It has no body any more: somebody deleted its row of idem_payloads; delete that of idem_events, too, and have the provider deliver it again. "+
		"No workers are alive: "+strings.TrimPrefix(noWorkers, "no workers are alive: "))
	if l, ok, err := operator.New(s.inbox, "").Lookup(t.Context(), "shop/1", "e1"); ok || err != nil {
		t.Errorf("Lookup of another account = %+v, %t, %v", l, ok, err)
	}
}

func TestLookupSaysWhichProcessWorksOnAnEvent(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	entered, release := make(chan struct{}), make(chan struct{})
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "slow" {
			entered <- struct{}{}
			<-release
		}
		return pay(ctx, tx, n)
	})
	s.store(letter("slow", "o1", 1), letter("e2", "o1", 2))
	stop := s.start(s.inbox)
	<-entered
	host, _ := os.Hostname()
	process := fmt.Sprintf("process %d on %s", os.Getpid(), host)
	working := "is being processed since T, by " + process + ", which gave a sign of life 1s ago."
	s.wantWhy("slow", operator.WhyWorking, "Nothing is wrong: it "+working+" 1 event of its entity waits for it.")
	s.wantWhy("e2", operator.WhyWaits, "It waits for slow, an earlier paid of its entity, which "+working)
	l := s.lookUp("slow")
	want := operator.Claim{Host: host, PID: os.Getpid(), Alive: true}
	if diff := cmp.Diff(want, l.Claim, cmpopts.IgnoreTypes(time.Time{})); diff != "" || l.Claim.Since.IsZero() || l.Claim.SeenAt.IsZero() || l.Workers != 1 {
		t.Errorf("of %d workers the claim is (-want +got):\n%s%v", l.Workers, diff, l.Claim)
	}
	release <- struct{}{}
	s.wantWorked(idem.Done, idem.Done)
	stop()

	s.workersElsewhere("notes")
	s.store(letter("e3", "o3", 1))
	s.exec(`insert into idem_workers values (8, 'notes', 'shop-2', 9, now(), now() - interval '1 minute')`)
	s.exec(`update idem_events set claimed_by = 8, claimed_at = now(), crashes = 1 where event = 'notes//e3'`)
	s.wantWhy("e3", operator.WhyDied, "It was being processed from T on, by process 9 on shop-2, which has given no sign of life for 1s: other workers go on with it. "+
		"1 process died while they processed it, or were cut off from Postgres.")
	s.exec(`delete from idem_workers where id = 8`)
	s.wantWhy("e3", operator.WhyDied, "It was being processed from T on, by a process that is dead: other workers go on with it. "+
		"1 process died while they processed it, or were cut off from Postgres.")
}

func TestLookupSaysWhyAnEventIsNotDoneInline(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	s.on(failBad)
	s.processor.ParkAfter = 2
	s.wantAnswer(`{"id":"new","type":"new"}`, http.StatusOK)
	s.wantWhy("new", operator.WhyUnhandled, "It had no handler when it came: deploy one, then replay it, or requeue it where workers run.")
	s.wantAnswer(paid("bad1"), http.StatusServiceUnavailable)
	s.wantWhy("bad1", operator.WhyRedelivery, "It has failed once, last with: no such order; the provider is to deliver it again.")
	s.wantAnswer(paid("bad1"), http.StatusOK)
	s.wantAnswer(paid("e2"), http.StatusOK)
	s.wantWhy("e2", operator.WhyWaits, "It waits for bad1, an earlier paid of its entity, which is parked: it has failed 2 times, last with: no such order; "+
		"nothing happens to it until it is replayed, requeued or discarded.")
	odd := letter("odd", "o7", 0)
	odd.Payload = []byte(`{"id":"odd","type":"paid","order":7}`)
	if outcome, _ := s.processor.Accept(t.Context(), odd); outcome != idem.Parked {
		t.Errorf("Accept = %s", outcome)
	}
	if l := s.lookUp("odd"); l.Why() != operator.WhyParked || len(l.Failures) != 1 || !strings.Contains(l.Failures[0].Error, "decode") {
		t.Errorf("an event that does not decode: %s, %+v", l.Why(), l.Failures)
	}
	s.wantDiscarded(idem.Filter{IDs: []string{"bad1"}}, "a test", 1)
	s.wantWhy("e2", operator.WhyDue, "Nothing is wrong: it has been due since T: what it waited for is done, and idem.Serve, Processor.Run or a replay goes on with it.")
}

// When it was done is known of what comes, and of what was stored before.
func TestDoneAtIsWhenTheLastAttemptBegan(t *testing.T) {
	t.Parallel()
	s, m := newInboxApp(t), &fixable{}
	s.on(m.handle)
	s.inbox.MaxAttempts = 1
	s.store(letter("e1", "o1", 1), letter("bad2", "o2", 1))
	s.drain(2)
	s.endpoint(s.processor, idem.StateDone)
	s.wantAnswer(paid("e3"), http.StatusOK)
	if l := s.lookUp("bad2"); !l.DoneAt.IsZero() {
		t.Errorf("an event that is parked was done at %s", l.DoneAt)
	}
	m.fixed.Store(true)
	before := queryOne[time.Time](s, `select clock_timestamp()`)
	s.wantReplayed(idem.Filter{}, idem.Replayed{Done: 1})
	if at := s.lookUp("bad2").DoneAt; at.Before(before) || at.After(before.Add(time.Minute)) {
		t.Errorf("it was done at %s, want it at %s or soon after", at, before)
	}
	if l := s.lookUp("e3"); !l.DoneAt.Equal(l.ReceivedAt) {
		t.Errorf("an event that was done as it came was received at %s and done at %s", l.ReceivedAt, l.DoneAt)
	}
	if n := queryOne[int](s, `select count(done_at) from idem_events`); n != 2 {
		t.Errorf("the rows of %d events have it, want 2: one that is done as it comes writes nothing more", n)
	}
	if n := queryOne[int](s, `select count(*) from idem_event_log where done_at >= received_at`); n != 3 {
		t.Errorf("the view says of %d events when they were done, want 3", n)
	}
}

func TestTheLastFiveFailuresAreKeptUntilAnEventIsDone(t *testing.T) {
	t.Parallel()
	for mode, fail := range map[string]func(s *app){
		"a worker": func(s *app) { s.store(letter("e1", "o1", 0)); s.drain(7) },
		"deliveries": func(s *app) {
			for range 7 {
				_, _ = s.processor.Accept(s.Context(), letter("e1", "o1", 0))
			}
		},
		"deliveries, then replays": func(s *app) {
			_, _ = s.processor.Accept(s.Context(), letter("e1", "o1", 0))
			for range 6 {
				s.wantReplayed(idem.Filter{States: []idem.State{idem.StateRetrying, idem.StateParked}}, idem.Replayed{Failed: 1})
			}
		},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := newInboxApp(t)
			s.inbox.MaxAttempts = 7
			attempt, longest := 0, strings.Repeat("é", 300)
			s.on(func(context.Context, pgx.Tx, *note) error {
				if attempt++; attempt > 7 {
					return nil
				}
				return fmt.Errorf("attempt %d: %s", attempt, longest)
			})
			start := queryOne[time.Time](s, `select clock_timestamp()`)
			fail(s)
			l := s.lookUp("e1")
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
			if n := queryOne[int](s, `select jsonb_array_length(failures) from idem_event_log`); n != 5 {
				t.Errorf("the view has %d failures, want 5", n)
			}
			s.wantReplayed(idem.Filter{States: []idem.State{idem.StateRetrying, idem.StateParked}}, idem.Replayed{Done: 1})
			if l := s.lookUp("e1"); l.State != idem.StateDone || l.Failures != nil {
				t.Errorf("it is %s, and has %d failures left", l.State, len(l.Failures))
			}
		})
	}
}

// A delivery that fails again leaves the event where it is: due when it was, behind what it waits for.
func TestFailureOfADeliveryLeavesThePlaceOfAPendingEvent(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.on(func(context.Context, pgx.Tx, *note) error { return errors.New("no such order") })
	s.store(letter("e1", "o1", 0))
	s.wantReplayed(idem.Filter{States: []idem.State{idem.StatePending}}, idem.Replayed{Failed: 1})
	s.exec(`update idem_payloads set due_at = '2030-01-01', lane = 'notes//another'`)
	s.exec(`update idem_events set state = 'retrying'; update idem_events set state = 'pending'`)
	s.wantReplayed(idem.Filter{States: []idem.State{idem.StatePending}}, idem.Replayed{Failed: 1})
	if got := queryOne[string](s, `select (due_at = '2030-01-01', lane, jsonb_array_length(failures))::text from idem_payloads`); got != "(t,notes//another,2)" {
		t.Errorf("it was moved: %s", got)
	}
}

func TestAccountsAreFoundByTheIDAlone(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.on(pay)
	for _, scope := range []string{"", "a", "a-b", "a.c", "a/b", "a0", "z%", "ação"} {
		s.store(in(scope, letter("e1", "o1", 0)), in(scope, letter("e1/x", "o1", 0)))
	}
	s.exec(`insert into idem_events (event, type, key, state) values ('note//e1', '', '', 'done'), ('notes2//e1', '', '', 'done'), ('notes0/a/e1', '', '', 'done')`)
	s.drain(16)
	for _, id := range []string{"e1", "e1/x"} {
		all, err := operator.New(s.inbox, "").WithID(t.Context(), id)
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
	if none, err := operator.New(s.inbox, "").WithID(t.Context(), "e"); len(none) != 0 || err != nil {
		t.Errorf("WithID of a part = %v, %v", none, err)
	}
}

// It says so before: people wait then.
func TestEventsOfAnEntityAreReadByAnIndexWhereThereIsOne(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.on(pay)
	s.exec(`insert into idem_events (event, type, key, state) select 'notes//' || n, 'paid', 'o' || n, 'done' from generate_series(1, 5000) n; analyze idem_events`)
	scan := func() int64 {
		n, err := operator.New(s.inbox, "").ScanOfKey(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := scan(); n != 5000 {
		t.Errorf("OfKey reads %d events, want 5000", n)
	}
	s.exec(`create index partial on idem_events (key) where state = 'done'; create index other on idem_events (state, key)`)
	if n := scan(); n != 5000 {
		t.Errorf("with other indexes OfKey reads %d events, want 5000", n)
	}
	s.exec(`create index idem_events_key on idem_events (key)`)
	if n := scan(); n != 0 {
		t.Errorf("with an index OfKey reads %d events", n)
	}
	s.store(in("shop", letter("new", "o7", 0)))
	for want, scopes := range map[string][]string{"7 shop new": nil, "7": {""}, "shop new": {"shop"}} {
		all, err := operator.New(s.inbox, "").OfKey(t.Context(), scopes, "o7", 10)
		if got := strings.Join(ids(all), " "); got != want || err != nil {
			t.Errorf("OfKey of %q = %s, %v, want %s", scopes, got, err, want)
		}
	}
}
