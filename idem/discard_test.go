package idem_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

func (o *office) wantDiscarded(db idem.DB, f idem.Filter, reason string, want int64) {
	o.shop.Helper()
	if n, err := o.Discard(o.shop.Context(), db, f, reason); n != want || err != nil {
		o.shop.Errorf("Discard = %d, %v, want %d", n, err, want)
	}
}

func TestDiscardedEventFreesItsKeyAndNeverRuns(t *testing.T) {
	t.Parallel()
	s, m := newShop(t), &mending{}
	s.on(m.handle)
	o := newOffice(s, s.pool)
	o.queue(booking("bad1", "a"), booking("a2", "a"), booking("a3", "a"))
	o.work(1)
	o.wantDiscarded(s.pool, idem.Filter{IDs: []string{"bad1"}}, "paid by hand\x00, see ticket 7", 1)
	s.wantState("bad1", idem.StateDiscarded)
	s.wantPayload("bad1", "")
	if got := queryOne[string](s, `select last_error from idem_events where event like '%bad1'`); got != "discarded: paid by hand\uFFFD, see ticket 7" {
		t.Errorf("the stored reason is %q", got)
	}
	if blocked, err := o.Blocked(t.Context()); len(blocked) != 0 || err != nil {
		t.Errorf("Blocked = %+v, %v", blocked, err)
	}

	m.mended.Store(true)
	o.work(2)
	if diff := cmp.Diff([]string{"a2", "a3"}, m.done); diff != "" {
		t.Error("done (-want +got):\n" + diff)
	}

	// Nothing brings it back.
	e := booking("bad1", "a")
	for name, accept := range map[string]func() (idem.Outcome, error){
		"inbox":     func() (idem.Outcome, error) { return o.Accept(t.Context(), e) },
		"processor": func() (idem.Outcome, error) { return s.processor.Accept(t.Context(), e) },
	} {
		if outcome, err := accept(); outcome != idem.Duplicate || err != nil {
			t.Errorf("%s: a delivery after Discard is %s, %v, want duplicate", name, outcome, err)
		}
	}
	every := idem.Filter{States: []idem.State{idem.StateParked, idem.StatePending, idem.StateDiscarded}}
	o.wantRequeued(s.pool, every, 0)
	s.wantReplayed(every, idem.Replayed{})
	o.wantDiscarded(s.pool, every, "again", 0)
	s.wantState("bad1", idem.StateDiscarded)
	s.wantEffects(2)
}

// Unhandled, undecodable and unreadable events are deliveries that no handler
// runs for: they are looked up on another way.
func TestDiscardedEventWithoutAHandlerStaysDiscarded(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.on(pay)
	o := newOffice(s, s.pool)
	for _, body := range []string{newBody, "not JSON", `{"type":"paid","order":7}`} {
		s.wantAnswer(body, http.StatusOK)
	}
	o.wantDiscarded(s.pool, idem.Filter{States: []idem.State{idem.StateUnhandled, idem.StateParked}}, "noise", 3)
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
	s := newShop(t)
	o := newOffice(s, s.pool)
	s.wantAnswer(newBody, http.StatusOK)
	if n, err := o.Discard(t.Context(), s.pool, idem.Filter{}, "oops"); n != 0 || err == nil || !strings.Contains(err.Error(), "the filter names none") {
		t.Errorf("Discard = %d, %v, want an error", n, err)
	}
	// A list that came out empty chooses nothing, rather than everything.
	o.wantDiscarded(s.pool, idem.Filter{IDs: []string{}}, "oops", 0)
	o.wantDiscarded(s.pool, idem.Filter{Types: []string{}}, "oops", 0)
	o.wantDiscarded(s.pool, idem.Filter{Keys: []string{}}, "oops", 0)
	o.wantDiscarded(s.pool, idem.Filter{Scopes: []string{}}, "oops", 0)
	o.wantDiscarded(s.pool, idem.Filter{States: []idem.State{}}, "oops", 0)
	o.wantDiscarded(s.pool, idem.Filter{Types: []string{"paid"}}, "oops", 0)
	s.wantState("e1", idem.StateUnhandled)
	s.wantPayload("e1", newBody)
}

func TestDiscardIsPartOfTheCallersTransaction(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	o := newOffice(s, s.pool)
	s.wantAnswer(newBody, http.StatusOK)
	undo := errors.New("undo")
	for _, end := range []error{undo, nil} {
		err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `insert into effects values ('by hand')`); err != nil {
				return err
			}
			o.wantDiscarded(tx, idem.Filter{IDs: []string{"e1"}}, "by hand", 1)
			s.wantState("e1", idem.StateUnhandled) // for all others
			return end
		})
		if !errors.Is(err, end) {
			t.Fatal(err)
		}
		if end == undo {
			s.wantEffects(0)
			s.wantState("e1", idem.StateUnhandled)
			s.wantPayload("e1", newBody)
		}
	}
	s.wantEffects(1)
	s.wantState("e1", idem.StateDiscarded)
}

func TestPayloadOfDiscardedEventsIsKeptWhenAsked(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.on(refuseBad)
	o := newOffice(s, s.pool)
	o.KeepPayloads = true
	o.queue(booking("bad1", "a"), booking("a2", "a"))
	o.work(1)
	o.wantDiscarded(s.pool, idem.Filter{Keys: []string{"a"}}, "kept", 1)
	s.wantPayload("bad1", string(booking("bad1", "a").Payload))
	if stats, err := o.Stats(t.Context()); stats.Parked.Events != 0 || stats.Pending.Events != 1 || err != nil {
		t.Errorf("Stats = %+v, %v, want one pending event", stats, err)
	}
	o.work(1) // its key goes on
	s.wantEffects(1)
}

// What a worker has taken and not begun is not its own yet.
func TestPendingEventsCanBeDiscarded(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.on(pay)
	o := newOffice(s, s.pool)
	o.queue(booking("e1", "a"), booking("e2", "b"))
	s.exec(`insert into idem_claims select event, now() + interval '10 s' from idem_events where event like '%e1'`)
	o.wantDiscarded(s.pool, idem.Filter{States: []idem.State{idem.StatePending}, IDs: []string{"e1"}}, "a test", 1)
	s.exec(`update idem_claims set until = now() - interval '1 s'`)
	o.work(1)
	s.wantEffects(1)
	s.wantState("e1", idem.StateDiscarded)
	s.wantState("e2", idem.StateDone)
}
