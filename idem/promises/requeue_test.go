package promises_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

func TestRequeueTakesOneSomeOrAll(t *testing.T) {
	t.Parallel()
	s, m := newApp(t), &fixable{}
	s.On(m.Handle)
	s.openInbox()
	for i := range 6 {
		s.Store(in(fmt.Sprint("shop/", i%2), letter(fmt.Sprint("bad", i), fmt.Sprint(i), 0)))
	}
	s.Drain(6)
	m.Fixed.Store(true)
	s.wantRequeued(idem.Filter{IDs: []string{}}, 0)
	s.wantRequeued(idem.Filter{IDs: []string{"bad0"}}, 1)
	s.wantRequeued(idem.Filter{IDs: []string{"bad0"}}, 0) // it is pending now
	s.wantRequeued(idem.Filter{Scopes: []string{"shop/1"}}, 3)
	s.wantRequeued(idem.Filter{}, 2)
	s.Drain(6)
	s.WantEffects(6)
}

// Workers look for events from time to time in any case: that they need not wait
// for it shows in what Postgres sends to those who listen.
func TestRequeueWakesWorkersInOtherProcesses(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	s := openApp(t, openPool(t, url, func(*pgxpool.Config) {})).openInbox()
	m := &fixable{}
	s.On(m.Handle)
	s.Store(letter("bad1", "a", 0))
	s.Drain(1)
	m.Fixed.Store(true)
	heard := make(listens, 10)
	other := s.NewInbox(openPool(t, url, func(c *pgxpool.Config) { c.ConnConfig.Tracer = heard })) // another process
	other.Poll = time.Hour
	s.Start(other)
	<-heard
	s.wantRequeued(idem.Filter{IDs: []string{"bad1"}}, 1)
	s.WantWorked(idem.Parked, idem.Done)
	s.WantEffects(1)
}

func TestOperationsSayWhatFailed(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.openInbox()
	s.Exec(`drop table idem_payloads cascade`)
	for name, operate := range map[string]func() error{
		"idem: requeueing events": func() error { _, err := s.Inbox.Requeue(t.Context(), idem.Filter{}); return err },
		"idem: discarding events": func() error {
			_, err := s.Inbox.Discard(t.Context(), idem.Filter{IDs: []string{"e1"}}, "test")
			return err
		},
		"idem: listing events": func() (err error) {
			for _, err = range s.Inbox.List(t.Context(), idem.Filter{}) {
			}
			return err
		},
		"operator: listing blocked entities": func() error { _, _, err := operator.New(s.Inbox, "").Blocked(t.Context(), 100); return err },
		"idem: counting events":              func() error { _, err := s.Inbox.Stats(t.Context()); return err },
	} {
		want := name + ": the tables are missing: call idem.Migrate at start, with the same search_path (with goose: -table idem_goose_version): "
		if err := operate(); err == nil || len(err.Error()) < len(want) || err.Error()[:len(want)] != want {
			t.Errorf("the error is %v\nwant %s…", err, want)
		}
	}
}

func TestDiscardedEventFreesItsKeyAndNeverRuns(t *testing.T) {
	t.Parallel()
	s, m := newApp(t), &fixable{}
	s.On(m.Handle)
	s.openInbox()
	s.Store(letter("bad1", "a", 0), letter("a2", "a", 0), letter("a3", "a", 0))
	s.Drain(1)
	s.WantDiscarded(idem.Filter{IDs: []string{"bad1"}}, "paid by hand\x00, see ticket 7", 1)
	s.WantState("bad1", idem.StateDiscarded)
	s.WantPayload("bad1", "")
	if got := queryOne[string](s, `select last_error from idem_events where event like '%bad1'`); got != "discarded: paid by hand\uFFFD, see ticket 7" {
		t.Errorf("the stored reason is %q", got)
	}
	if blocked, _, err := operator.New(s.Inbox, "").Blocked(t.Context(), 100); len(blocked) != 0 || err != nil {
		t.Errorf("Blocked = %+v, %v", blocked, err)
	}

	m.Fixed.Store(true)
	s.Drain(2)
	m.WantDone(t, "a2", "a3")

	// Nothing brings it back.
	e := letter("bad1", "a", 0)
	for name, accept := range map[string]func() (idem.Outcome, error){
		"inbox":       func() (idem.Outcome, error) { return s.Inbox.Accept(t.Context(), e) },
		"works first": func() (idem.Outcome, error) { return s.First.Accept(t.Context(), e) },
	} {
		if outcome, err := accept(); outcome != idem.Duplicate || err != nil {
			t.Errorf("%s: a delivery after Discard is %s, %v, want duplicate", name, outcome, err)
		}
	}
	every := idem.Filter{States: []idem.State{idem.StateParked, idem.StatePending, idem.StateDiscarded}}
	s.wantRequeued(every, 0)
	s.WantReplayed(every, idem.Replayed{})
	s.WantDiscarded(every, "again", 0)
	s.WantState("bad1", idem.StateDiscarded)
	s.WantEffects(2)
}

func TestDiscardRefusesToDiscardEverything(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.openInbox()
	s.WantAnswer(newBody, http.StatusOK)
	if n, err := s.Inbox.Discard(t.Context(), idem.Filter{}, "oops"); n != 0 || err == nil || !strings.Contains(err.Error(), "the filter names none") {
		t.Errorf("Discard = %d, %v, want an error", n, err)
	}
	// A list that came out empty chooses nothing, rather than everything.
	s.WantDiscarded(idem.Filter{IDs: []string{}}, "oops", 0)
	s.WantDiscarded(idem.Filter{Types: []string{}}, "oops", 0)
	s.WantDiscarded(idem.Filter{Keys: []string{}}, "oops", 0)
	s.WantDiscarded(idem.Filter{Scopes: []string{}}, "oops", 0)
	s.WantDiscarded(idem.Filter{States: []idem.State{}}, "oops", 0)
	s.WantDiscarded(idem.Filter{Types: []string{"paid"}}, "oops", 0)
	s.WantState("e1", idem.StateUnhandled)
	s.WantPayload("e1", newBody)
}

func TestPayloadOfDiscardedEventsIsKeptWhenAsked(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(refuseBad)
	s.openInbox()
	s.Inbox.KeepPayloads = true
	s.Store(letter("bad1", "a", 0), letter("a2", "a", 0))
	s.Drain(1)
	s.WantDiscarded(idem.Filter{Keys: []string{"a"}}, "kept", 1)
	s.WantPayload("bad1", string(letter("bad1", "a", 0).Payload))
	if stats, err := s.Inbox.Stats(t.Context()); stats.Parked.Events != 0 || stats.Pending.Events != 1 || err != nil {
		t.Errorf("Stats = %+v, %v, want one pending event", stats, err)
	}
	s.Drain(1) // its key goes on
	s.WantEffects(1)
}

// What a worker has claimed and not begun is not its own yet.
func TestPendingEventsCanBeDiscarded(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.On(pay)
	s.openInbox()
	s.Store(letter("e1", "a", 0), letter("e2", "b", 0))
	s.ClaimElsewhere("e1")
	s.WantDiscarded(idem.Filter{States: []idem.State{idem.StatePending}, IDs: []string{"e1"}}, "a test", 1)
	s.Drain(1)
	s.WantEffects(1)
	s.WantState("e1", idem.StateDiscarded)
	s.WantState("e2", idem.StateDone)
}

// Who stops an action while Postgres commits it would be told that it failed.
func TestAnActionIsNotCanceledDuringItsCommit(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	s.Exec(`create function wait() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(1); return null; end $$;
		create constraint trigger waits after update on idem_events deferrable initially deferred for each row
			when (new.state = 'discarded') execute function wait()`)
	s.Store(letter("e1", "o1", 1))
	front, err := s.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := front.Exec(t.Context(), `select pg_advisory_xact_lock(1)`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	discarded := make(chan error, 1)
	go func() {
		n, err := s.Inbox.Discard(ctx, idem.Filter{IDs: []string{"e1"}, States: []idem.State{idem.StatePending}}, "a test")
		if err == nil && n != 1 {
			err = errors.New("nothing is discarded")
		}
		discarded <- err
	}()
	s.Until(blocked)
	cancel()
	if err := front.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-discarded; err != nil {
		t.Error(err)
	}
	s.WantState("e1", idem.StateDiscarded)
}

func (s *app) wantRequeued(f idem.Filter, want int64) {
	s.Helper()
	if n, err := s.Inbox.Requeue(s.Context(), f); n != want || err != nil {
		s.Errorf("Requeue = %d, %v, want %d", n, err, want)
	}
}
