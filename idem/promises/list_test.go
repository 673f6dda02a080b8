package promises_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

func TestListTakesWhatItsFilterSays(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(refuseBad)
	s.WantAnswer(paid("done"), http.StatusOK)
	s.openInbox().Store(letter("bad1", "o1", 0), letter("bad2", "o3", 0))
	s.Drain(2)
	s.WantAnswer(`{"id":"with/slash","type":"new","order":"o2"}`, http.StatusOK)
	for _, account := range []string{"a/b", "100%"} {
		if outcome, err := s.First.Accept(t.Context(), in(account, identify([]byte(newBody)))); outcome != idem.Unhandled {
			t.Fatal(outcome, err)
		}
	}
	s.Store(letter("pending", "o1", 0))
	if n, err := s.First.Discard(t.Context(), idem.Filter{IDs: []string{"bad2"}}, "test"); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	s.Exec(`insert into idem_events (event, type, key, state) values ('notes2//other', 'new', '', 'parked')`)
	s.Exec(`insert into idem_payloads (event, source, received_at, body) values ('notes2//other', 'notes2', now(), '')`)
	// The order is that of arrival, whatever the names are.
	for _, table := range []string{"idem_events", "idem_payloads"} {
		s.Exec(`update ` + table + ` set received_at = '2026-11-20 00:00+00' where event = 'notes//with/slash'`)
	}

	every := []idem.State{
		idem.StateUnhandled, idem.StateParked, idem.StatePending, idem.StateDone, idem.StateDiscarded,
	}
	day := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		filter idem.Filter
		want   []string
	}{
		"received from then on":  {idem.Filter{ReceivedFrom: day.Add(time.Microsecond)}, []string{"bad1", "a/b e1", "100% e1"}},
		"received before":        {idem.Filter{ReceivedUntil: day.Add(time.Microsecond)}, []string{"with/slash"}},
		"the end is not in it":   {idem.Filter{ReceivedFrom: day, ReceivedUntil: day}, nil},
		"the start is in it":     {idem.Filter{ReceivedFrom: day, ReceivedUntil: day.Add(1000)}, []string{"with/slash"}},
		"what needs somebody":    {idem.Filter{}, []string{"with/slash", "bad1", "a/b e1", "100% e1"}},
		"every state, none done": {idem.Filter{States: every}, []string{"with/slash", "bad1", "a/b e1", "100% e1", "pending"}},
		"what has failed":        {idem.Filter{States: every, Failed: true}, []string{"bad1"}},
		"one state":              {idem.Filter{States: []idem.State{idem.StatePending}}, []string{"pending"}},
		"no state":               {idem.Filter{States: []idem.State{}}, nil},
		"what is done":           {idem.Filter{States: []idem.State{idem.StateDone}}, nil},
		"what is discarded":      {idem.Filter{States: []idem.State{idem.StateDiscarded}}, nil},
		"one account":            {idem.Filter{Scopes: []string{"a/b"}}, []string{"a/b e1"}},
		"two accounts":           {idem.Filter{Scopes: []string{"a/b", "100%"}}, []string{"a/b e1", "100% e1"}},
		"the nameless account":   {idem.Filter{Scopes: []string{""}}, []string{"with/slash", "bad1"}},
		"no account":             {idem.Filter{Scopes: []string{}}, nil},
		"a type":                 {idem.Filter{Types: []string{"paid"}}, []string{"bad1"}},
		"an entity":              {idem.Filter{Keys: []string{"o2"}}, []string{"with/slash"}},
		"ids":                    {idem.Filter{IDs: []string{"bad1", "with/slash", "nobody"}}, []string{"with/slash", "bad1"}},
		"half an id":             {idem.Filter{IDs: []string{"slash"}}, nil},
		"no id":                  {idem.Filter{IDs: []string{}}, nil},
		"two narrow more":        {idem.Filter{Types: []string{"new"}, Keys: []string{"o1"}, Scopes: []string{"a/b", ""}}, []string{"a/b e1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, ids(s.Listed(c.filter))); diff != "" {
				t.Error("List (-want +got):\n" + diff)
			}
			if n, err := operator.New(s.First, "").Count(t.Context(), c.filter); n != int64(len(c.want)) || err != nil {
				t.Errorf("Count = %d, %v, want %d", n, err, len(c.want))
			}
			slices.Reverse(c.want)
			if diff := cmp.Diff(c.want, ids(s.paged(c.filter, 2))); diff != "" {
				t.Error("Page (-want +got):\n" + diff)
			}
		})
	}
}

// Whoever asks about one charge wants all of it, also what is done.
func TestGetAndOfKeyReturnEventsInEveryState(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.Inbox.KeepPayloads = true
	s.On(refuseBad)
	s.Store(letter("done", "o1", 1), letter("bad1", "o1", 2), letter("behind", "o1", 3), letter("other", "o2", 1),
		in("shop/1", letter("done", "o1", 1)))
	s.Drain()
	all, err := operator.New(s.Inbox, "").OfKey(t.Context(), []string{""}, "o1", 10)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"done", "bad1", "behind"}, ids(all)); diff != "" {
		t.Error("OfKey (-want +got):\n" + diff)
	}
	if some, err := operator.New(s.Inbox, "").OfKey(t.Context(), []string{""}, "o1", 2); !slices.Equal(ids(some), []string{"bad1", "behind"}) || err != nil {
		t.Errorf("OfKey of two = %v, %v, want the latest", ids(some), err)
	}
	if none, err := operator.New(s.Inbox, "").OfKey(t.Context(), []string{"shop"}, "o1", 10); len(none) != 0 || err != nil {
		t.Errorf("OfKey of another account = %v, %v", ids(none), err)
	}
	for _, want := range all {
		got, ok, err := operator.New(s.Inbox, "").Lookup(t.Context(), "", want.ID)
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		if diff := cmp.Diff(want, got.StoredEvent); diff != "" {
			t.Error("Lookup, not as OfKey (-OfKey +Lookup):\n" + diff)
		}
		if string(got.Payload) != string(letter(got.ID, "o1", 0).Payload) {
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

func TestListTellsWhatIsStored(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(func(context.Context, pgx.Tx, *note) error { return errors.New("no such order") })
	s.openInbox()
	e := in("shop/1", letter("e1", "o1", 0))
	e.OccurredAt = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	s.Store(e)
	s.Drain(1)
	s.Exec(`update idem_events set crashes = 2, received_at = '2026-11-20 11:00Z'`)
	s.Exec(`update idem_payloads set due_at = '2026-11-20 12:00Z'`)
	want := []idem.StoredEvent{{
		Event: e, State: idem.StatePending, Attempts: 1, Crashes: 2, LastError: "no such order",
		ReceivedAt: time.Date(2026, 11, 20, 11, 0, 0, 0, time.UTC), DueAt: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC),
	}}
	got := s.Listed(idem.Filter{States: []idem.State{idem.StatePending}})
	if diff := cmp.Diff(want, got, cmpopts.EquateApproxTime(0)); diff != "" {
		t.Error("List (-want +got):\n" + diff)
	}
	s.Exec(`update idem_events set last_error = null`)
	s.Exec(`update idem_payloads set occurred_at = null, due_at = null`)
	got = s.Listed(idem.Filter{States: []idem.State{idem.StatePending}})
	if s := got[0]; !s.OccurredAt.IsZero() || !s.DueAt.IsZero() || s.LastError != "" {
		t.Errorf("what is not stored is listed as %+v", s)
	}
}

func TestListGoesThroughMoreThanOnePage(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.Exec(`insert into idem_events (event, type, key, state, received_at)
		select 'notes//' || n, 'paid', '', 'unhandled', now() - n * interval '1 second' from generate_series(1, 250) n`)
	s.Exec(`insert into idem_payloads (event, source, received_at, body) select event, 'notes', received_at, convert_to(format('{"id":%s}', to_json(split_part(event, '/', 3))), 'UTF8') from idem_events`)
	s.On(pay)
	done := []string{"30", "120", "220"} // meanwhile
	var got, want []string
	for n := 250; n > 0; n-- {
		if n != 120 && n != 30 {
			want = append(want, fmt.Sprint(n))
		}
	}
	for stored, err := range s.First.List(t.Context(), idem.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if len(got) == 0 { // 220 is read already, with the first page
			s.WantReplayed(idem.Filter{IDs: done}, idem.Replayed{Done: len(done)})
			s.WantAnswer(`{"id":"late","type":"new"}`, http.StatusOK) // it was not there at the start
		}
		if want := fmt.Sprintf(`{"id":%q}`, stored.ID); string(stored.Payload) != want {
			t.Errorf("event %s is listed with the payload %s", stored.ID, stored.Payload)
		}
		got = append(got, stored.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("List (-want +got):\n" + diff)
	}
}

func TestListThatIsLeftEarlyHoldsNothing(t *testing.T) {
	t.Parallel()
	s := openApp(t, poolOf(t, 1))
	for i := range 3 {
		s.accept(fmt.Sprintf(`{"id":"%d","type":"new"}`, i), idem.Unhandled)
	}
	seen := 0
	for stored, err := range s.First.List(t.Context(), idem.Filter{}) {
		if seen++; err != nil || stored.ID != "0" {
			t.Fatal(stored.ID, err)
		}
		if n := s.Pool.Stat().AcquiredConns(); n != 0 {
			t.Errorf("%d connections are held while an event is looked at", n)
		}
		break
	}
	if seen != 1 {
		t.Errorf("%d events were listed", seen)
	}
	s.WantEffects(0) // the connection is there
}

func TestListEndsAfterItsFirstError(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.accept(newBody, idem.Unhandled)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var errs []error
	for _, err := range s.First.List(ctx, idem.Filter{}) {
		errs = append(errs, err)
	}
	if len(errs) != 1 || !errors.Is(errs[0], context.Canceled) {
		t.Errorf("List yields %v, want context canceled once", errs)
	}
}

func TestLookupSaysWhyAnEventOfAnInboxIsNotDone(t *testing.T) {
	t.Parallel()
	const noWorkers = "no workers are alive: start the program that runs the inbox, unless Inbox.Drain runs from time to time."
	s := newInboxApp(t)
	s.On(failBad)
	s.Inbox.MaxAttempts = 2
	s.Store(letter("e1", "o1", 1), letter("bad2", "o2", 1), letter("e3", "o2", 2), letter("e4", "o2", 3))
	s.wantWhy("e1", operator.WhyNoWorkers, "It has been due since T, and "+noWorkers)
	s.wantWhy("e3", operator.WhyWaits, "It waits for bad2, an earlier paid of its entity, which has been due since T, and "+noWorkers+" 1 event of its entity waits for it.")
	s.WorkersElsewhere("notes")
	s.wantWhy("e1", operator.WhyDue, "Nothing is wrong: it has been due since T, and workers are alive.")
	s.wantWhy("e3", operator.WhyWaits, "It waits for bad2, an earlier paid of its entity, which has been due since T, and workers are alive. 1 event of its entity waits for it.")

	s.Inbox.Backoff = func(int) time.Duration { return time.Hour }
	s.Drain(2)
	s.wantWhy("e1", operator.WhyDone, "It was done at T.")
	s.wantWhy("bad2", operator.WhyLater, "It has failed once, last with: no such order; the next attempt is at T. 2 events of its entity wait for it.")
	s.wantWhy("e4", operator.WhyWaits, "It waits for bad2, an earlier paid of its entity, which has failed once, last with: no such order; the next attempt is at T.")
	s.Exec(`update idem_payloads set due_at = now() where event = 'notes//bad2'`)
	s.wantWhy("bad2", operator.WhyDue, "It has failed once, last with: no such order; it has been due since T, and workers are alive. 2 events of its entity wait for it.")

	s.Drain(1)
	s.wantWhy("bad2", operator.WhyParked, "It is parked: it has failed 2 times, last with: no such order; nothing happens to it until it is replayed, requeued or discarded. 2 events of its entity wait for it.")
	s.wantWhy("e4", operator.WhyWaits, "It waits for bad2, an earlier paid of its entity, which is parked: it has failed 2 times, last with: no such order; nothing happens to it until it is replayed, requeued or discarded.")
	s.Store(letter("late0", "o2", 0), letter("late1", "o2", 1))
	s.Exec(`update idem_payloads set occurred_at = '2020-01-01' where event = 'notes//late1'`)
	s.wantWhy("bad2", operator.WhyParked, "It is parked: it has failed 2 times, last with: no such order; nothing happens to it until it is replayed, requeued or discarded. "+
		"Before it, late1 is to be done, which has been due since T, and workers are alive. 3 events of its entity wait for it.")
	s.Exec(`delete from idem_workers`)
	s.wantWhy("e4", operator.WhyWaits, "It waits for late1, an earlier paid of its entity, which has been due since T, and "+noWorkers+" 1 event of its entity waits for it.")

	s.WantDiscarded(idem.Filter{IDs: []string{"bad2"}}, "a test order", 1)
	s.wantWhy("bad2", operator.WhyDiscarded, "It was discarded: a test order.")
	s.Exec(`delete from idem_events where event = 'notes//late1'`)
	s.wantWhy("e4", operator.WhyWaits, "It waits for late1, an earlier event of its entity, which is not in idem_events any more: somebody deleted its row; idem prune has the others go on. "+
		"1 event of its entity waits for it. No workers are alive: "+strings.TrimPrefix(noWorkers, "no workers are alive: "))
	s.Exec(`delete from idem_payloads where event = 'notes//e3'`)
	s.wantWhy("e3", operator.WhyNoBody, "It has no body any more: somebody deleted its row of idem_payloads; delete that of idem_events, too, and have the provider deliver it again. "+
		"No workers are alive: "+strings.TrimPrefix(noWorkers, "no workers are alive: "))
	if l, ok, err := operator.New(s.Inbox, "").Lookup(t.Context(), "shop/1", "e1"); ok || err != nil {
		t.Errorf("Lookup of another account = %+v, %t, %v", l, ok, err)
	}
}

func TestLookupSaysWhichProcessWorksOnAnEvent(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	entered, release := make(chan struct{}), make(chan struct{})
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "slow" {
			entered <- struct{}{}
			<-release
		}
		return pay(ctx, tx, n)
	})
	s.Store(letter("slow", "o1", 1), letter("e2", "o1", 2))
	stop := s.Start(s.Inbox)
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
	s.WantWorked(idem.Done, idem.Done)
	stop()

	s.WorkersElsewhere("notes")
	s.Store(letter("e3", "o3", 1))
	s.Exec(`insert into idem_workers values (8, 'notes', 'shop-2', 9, now(), now() - interval '1 minute')`)
	s.Exec(`update idem_events set claimed_by = 8, claimed_at = now(), crashes = 1 where event = 'notes//e3'`)
	s.wantWhy("e3", operator.WhyDied, "It was being processed from T on, by process 9 on shop-2, which has given no sign of life for 1s: other workers go on with it. "+
		"1 process died while they processed it, or were cut off from Postgres.")
	s.Exec(`delete from idem_workers where id = 8`)
	s.wantWhy("e3", operator.WhyDied, "It was being processed from T on, by a process that is dead: other workers go on with it. "+
		"1 process died while they processed it, or were cut off from Postgres.")
}

func TestLookupSaysWhyAnEventThatReachedNoHandlerIsNotDone(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(pay)
	s.WantAnswer(`{"id":"new","type":"new"}`, http.StatusOK)
	s.wantWhy("new", operator.WhyUnhandled, "It had no handler when it came: deploy one, then replay it, or requeue it where workers run.")
	odd := letter("odd", "o7", 0)
	odd.Payload = []byte(`{"id":"odd","type":"paid","order":7}`)
	if outcome, _ := s.First.Accept(t.Context(), odd); outcome != idem.Parked {
		t.Errorf("Accept = %s", outcome)
	}
	if l := s.lookUp("odd"); l.Why() != operator.WhyParked || len(l.Failures) != 1 || !strings.Contains(l.Failures[0].Error, "decode") {
		t.Errorf("an event that does not decode: %s, %+v", l.Why(), l.Failures)
	}
}

// When it was done is known of what comes, and of what was stored before.
func TestDoneAtIsWhenTheLastAttemptBegan(t *testing.T) {
	t.Parallel()
	s, m := newInboxApp(t), &fixable{}
	s.On(m.Handle)
	s.Inbox.MaxAttempts = 1
	s.Store(letter("e1", "o1", 1), letter("bad2", "o2", 1))
	s.Drain(2)
	s.endpoint(s.First, idem.StateDone)
	s.WantAnswer(paid("e3"), http.StatusOK)
	if l := s.lookUp("bad2"); !l.DoneAt.IsZero() {
		t.Errorf("an event that is parked was done at %s", l.DoneAt)
	}
	m.Fixed.Store(true)
	before := queryOne[time.Time](s, `select clock_timestamp()`)
	s.WantReplayed(idem.Filter{}, idem.Replayed{Done: 1})
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
		"a worker": func(s *app) { s.Store(letter("e1", "o1", 0)); s.Drain(7) },
		"a worker, then replays": func(s *app) {
			s.Inbox.MaxAttempts = 1
			s.Store(letter("e1", "o1", 0))
			s.Drain(1)
			for range 6 {
				s.WantReplayed(idem.Filter{}, idem.Replayed{Failed: 1})
			}
		},
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := newInboxApp(t)
			s.Inbox.MaxAttempts = 7
			attempt, longest := 0, strings.Repeat("é", 300)
			s.On(func(context.Context, pgx.Tx, *note) error {
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
			s.WantReplayed(idem.Filter{}, idem.Replayed{Done: 1})
			if l := s.lookUp("e1"); l.State != idem.StateDone || l.Failures != nil {
				t.Errorf("it is %s, and has %d failures left", l.State, len(l.Failures))
			}
		})
	}
}

func TestAccountsAreFoundByTheIDAlone(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.On(pay)
	for _, scope := range []string{"", "a", "a-b", "a.c", "a/b", "a0", "z%", "ação"} {
		s.Store(in(scope, letter("e1", "o1", 0)), in(scope, letter("e1/x", "o1", 0)))
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
	s := newInboxApp(t)
	s.On(pay)
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
	s.Store(in("shop", letter("new", "o7", 0)))
	for want, scopes := range map[string][]string{"7 shop new": nil, "7": {""}, "shop new": {"shop"}} {
		all, err := operator.New(s.Inbox, "").OfKey(t.Context(), scopes, "o7", 10)
		if got := strings.Join(ids(all), " "); got != want || err != nil {
			t.Errorf("OfKey of %q = %s, %v, want %s", scopes, got, err, want)
		}
	}
}

func TestASilenceBeginsWithTheNewestEventOfTheSource(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	p := newFirst(pool, &notes{})
	name := p.SourceName()
	if at, err := p.SilentSince(t.Context(), 0); !at.IsZero() || err != nil {
		t.Errorf("without an arrival it is silent since %s, %v", at, err)
	}
	arrive(t, pool, name+"//done", "o1", "done", "3 hours")
	arrive(t, pool, name+"//parked", "o2", "parked", "2 hours")
	arrive(t, pool, name+"//discarded", "o1", "discarded", "1 hour")
	arrive(t, pool, name+"//old", "o1", "done", "5 hours")
	arrive(t, pool, name+"//other", "o3", "done", "2 hours")
	arrive(t, pool, name+"/shop/account", "o1", "done", "30 minutes")
	arrive(t, pool, "another//source", "o1", "done", "1 minute")
	if err := store.NoteCanary(t.Context(), pool, name); err != nil { // it came through a broker just now, and is no arrival
		t.Fatal(err)
	}

	last, err := p.SilentSince(t.Context(), 20*time.Minute)
	if ago := time.Since(last); err != nil || ago < 25*time.Minute || ago > 50*time.Minute {
		t.Errorf("it is silent for %s, %v", ago, err)
	}
	if at, err := p.SilentSince(t.Context(), time.Hour); !at.IsZero() || err != nil {
		t.Errorf("it is silent for an hour, since %s, %v, though an event has come", at, err)
	}
}

// It is asked while a queue is held up, of a table that may hold millions.
func TestALookForASilenceEndsAtTheFirstEventOfIt(t *testing.T) {
	t.Parallel()
	s := openApp(t, idemtest.Pool(t))
	s.Exec(`insert into idem_events (event, type, key, state) select 'notes//' || n, 'paid', n, 'done' from generate_series(1, 20000) n; analyze idem_events`)
	err := pgx.BeginFunc(t.Context(), s.Pool, func(tx pgx.Tx) error {
		if at, err := store.SilentSince(t.Context(), inTx{tx}, "notes", time.Hour); !at.IsZero() || err != nil {
			t.Errorf("it is silent since %s, %v", at, err)
		}
		var read int
		err := tx.QueryRow(t.Context(), `select seq_tup_read + coalesce(idx_tup_fetch, 0) from pg_stat_xact_user_tables where relid = 'idem_events'::regclass`).Scan(&read)
		if read == 0 || read > 1000 {
			t.Errorf("it reads %d events", read)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// paged reads n events at a time.
func (s *app) paged(f idem.Filter, n int) (all []idem.StoredEvent) {
	s.Helper()
	for before := (operator.Place{}); ; {
		p, err := operator.New(s.First, "").Page(s.Context(), f, before, n)
		if err != nil {
			s.Fatal(err)
		}
		all = append(all, p.Events...)
		if before = p.Next; before == (operator.Place{}) {
			return all
		}
	}
}

// failBad fails, and is tried again.
func failBad(ctx context.Context, tx pgx.Tx, n *note) error {
	if strings.HasPrefix(n.ID, "bad") {
		return errors.New("no such order")
	}
	return pay(ctx, tx, n)
}

// wantWhy checks why an event is not done, and the words for it. Times are T.
func (s *app) wantWhy(id string, why operator.Why, says string) {
	s.Helper()
	l := s.lookUp(id)
	got := sinceASign.ReplaceAllString(l.Says("en", func(time.Time) string { return "T" }), "life ${1}1s")
	if diff := cmp.Diff(says, got); diff != "" || l.Why() != why {
		s.Errorf("%s is not done because of %q, want %q; it says (-want +got):\n%s", id, l.Why(), why, diff)
	}
}

func (s *app) lookUp(id string) operator.Lookup {
	s.Helper()
	l, ok, err := operator.New(s.First, "").Lookup(s.Context(), "", id)
	if !ok || err != nil {
		s.Fatalf("Lookup(%s) = %t, %v", id, ok, err)
	}
	return l
}

var sinceASign = regexp.MustCompile(`life (for )?\d+[ms0-9]*`)

func arrive(t *testing.T, pool *pgxpool.Pool, row, key, state, ago string) {
	t.Helper()
	const insert = `insert into idem_events (event, type, key, state, received_at) values ($1, 'PAID', $2, $3, now() - $4::interval)`
	if _, err := pool.Exec(t.Context(), insert, row, key, state, ago); err != nil {
		t.Fatal(err)
	}
}
