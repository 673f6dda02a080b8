package idem_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
)

func (s *app) wantDiscarded(f idem.Filter, reason string, want int64) {
	s.Helper()
	if n, err := s.inbox.Discard(s.Context(), f, reason); n != want || err != nil {
		s.Errorf("Discard = %d, %v, want %d", n, err, want)
	}
}

func TestDiscardedEventFreesItsKeyAndNeverRuns(t *testing.T) {
	t.Parallel()
	s, m := newApp(t), &fixable{}
	s.on(m.handle)
	s.openInbox()
	s.store(letter("bad1", "a", 0), letter("a2", "a", 0), letter("a3", "a", 0))
	s.drain(1)
	s.wantDiscarded(idem.Filter{IDs: []string{"bad1"}}, "paid by hand\x00, see ticket 7", 1)
	s.wantState("bad1", idem.StateDiscarded)
	s.wantPayload("bad1", "")
	if got := queryOne[string](s, `select last_error from idem_events where event like '%bad1'`); got != "discarded: paid by hand\uFFFD, see ticket 7" {
		t.Errorf("the stored reason is %q", got)
	}
	if blocked, _, err := operator.New(s.inbox, "").Blocked(t.Context(), 100); len(blocked) != 0 || err != nil {
		t.Errorf("Blocked = %+v, %v", blocked, err)
	}

	m.fixed.Store(true)
	s.drain(2)
	m.wantDone(t, "a2", "a3")

	// Nothing brings it back.
	e := letter("bad1", "a", 0)
	for name, accept := range map[string]func() (idem.Outcome, error){
		"inbox":     func() (idem.Outcome, error) { return s.inbox.Accept(t.Context(), e) },
		"processor": func() (idem.Outcome, error) { return s.processor.Accept(t.Context(), e) },
	} {
		if outcome, err := accept(); outcome != idem.Duplicate || err != nil {
			t.Errorf("%s: a delivery after Discard is %s, %v, want duplicate", name, outcome, err)
		}
	}
	every := idem.Filter{States: []idem.State{idem.StateParked, idem.StatePending, idem.StateDiscarded}}
	s.wantRequeued(every, 0)
	s.wantReplayed(every, idem.Replayed{})
	s.wantDiscarded(every, "again", 0)
	s.wantState("bad1", idem.StateDiscarded)
	s.wantEffects(2)
}

// Unhandled, undecodable and unreadable events are deliveries that no handler
// runs for: they are looked up on another way.
func TestDiscardedEventWithoutAHandlerStaysDiscarded(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(pay)
	s.openInbox()
	for _, body := range []string{newBody, "not JSON", `{"type":"paid","order":7}`} {
		s.wantAnswer(body, http.StatusOK)
	}
	s.wantDiscarded(idem.Filter{States: []idem.State{idem.StateUnhandled, idem.StateParked}}, "noise", 3)
	for _, body := range []string{newBody, "not JSON", `{"type":"paid","order":7}`} {
		if status, answer := s.deliver(body); status != http.StatusOK || answer != `{"received":true,"duplicate":true}` {
			t.Errorf("%s is answered %d %s", body, status, answer)
		}
	}
	if n := queryOne[int](s, `select count(*) from idem_events where state = 'discarded'`); n != 3 {
		t.Errorf("%d events are discarded, want 3", n)
	}
}

func TestDiscardRefusesToDiscardEverything(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.openInbox()
	s.wantAnswer(newBody, http.StatusOK)
	if n, err := s.inbox.Discard(t.Context(), idem.Filter{}, "oops"); n != 0 || err == nil || !strings.Contains(err.Error(), "the filter names none") {
		t.Errorf("Discard = %d, %v, want an error", n, err)
	}
	// A list that came out empty chooses nothing, rather than everything.
	s.wantDiscarded(idem.Filter{IDs: []string{}}, "oops", 0)
	s.wantDiscarded(idem.Filter{Types: []string{}}, "oops", 0)
	s.wantDiscarded(idem.Filter{Keys: []string{}}, "oops", 0)
	s.wantDiscarded(idem.Filter{Scopes: []string{}}, "oops", 0)
	s.wantDiscarded(idem.Filter{States: []idem.State{}}, "oops", 0)
	s.wantDiscarded(idem.Filter{Types: []string{"paid"}}, "oops", 0)
	s.wantState("e1", idem.StateUnhandled)
	s.wantPayload("e1", newBody)
}

func TestPayloadOfDiscardedEventsIsKeptWhenAsked(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(refuseBad)
	s.openInbox()
	s.inbox.KeepPayloads = true
	s.store(letter("bad1", "a", 0), letter("a2", "a", 0))
	s.drain(1)
	s.wantDiscarded(idem.Filter{Keys: []string{"a"}}, "kept", 1)
	s.wantPayload("bad1", string(letter("bad1", "a", 0).Payload))
	if stats, err := s.inbox.Stats(t.Context()); stats.Parked.Events != 0 || stats.Pending.Events != 1 || err != nil {
		t.Errorf("Stats = %+v, %v, want one pending event", stats, err)
	}
	s.drain(1) // its key goes on
	s.wantEffects(1)
}

// What a worker has claimed and not begun is not its own yet.
func TestPendingEventsCanBeDiscarded(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.on(pay)
	s.openInbox()
	s.store(letter("e1", "a", 0), letter("e2", "b", 0))
	s.claimElsewhere("e1")
	s.wantDiscarded(idem.Filter{States: []idem.State{idem.StatePending}, IDs: []string{"e1"}}, "a test", 1)
	s.drain(1)
	s.wantEffects(1)
	s.wantState("e1", idem.StateDiscarded)
	s.wantState("e2", idem.StateDone)
}
