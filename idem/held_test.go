package idem_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
)

// A payment is parked and then refunded at the provider. Were the refund booked
// first, the replay would pay a refunded order.
func TestRefundIsBookedAfterThePaymentThatWasParked(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.fails("received")
	s.wantAnswer(about("received", "paid", "o1"), http.StatusOK)
	s.wantHealth("nothing waits for it", s.newHealth(s.processor), "parked", "1 events are parked, and nobody has acknowledged them since they failed: first received, paid")
	for range 2 { // and again, as providers do
		s.wantAnswer(about("refund", "refunded", "o1"), http.StatusOK)
	}
	s.wantAnswer(about("other", "paid", "o2"), http.StatusOK)
	s.wantLedger("other paid")
	s.wantRow("refund", "(state, attempts, last_error)", `(parked,0,"waits for received")`)
	s.wantPayload("refund", about("refund", "refunded", "o1"))
	s.wantHealth("one waits", s.newHealth(s.processor), "held and parked", "1 events of 1 entities wait for a parked one: first 1 of o1, refunded, for received")
	blocked, _, err := operator.New(s.processor, "").Blocked(t.Context(), 100)
	if err != nil || len(blocked) != 1 || blocked[0].ID != "received" || blocked[0].Key != "o1" || blocked[0].Waiting != 1 {
		t.Errorf("Blocked = %+v, %v, want o1 with one behind received", blocked, err)
	}
	if o, err := s.processor.DryRun(t.Context(), identify([]byte(about("new", "refunded", "o1")))); o != idem.Done || err != nil {
		t.Errorf("DryRun = %s, %v, want done", o, err)
	}
	s.replays(idem.Filter{IDs: []string{"refund"}}, idem.Replayed{Failed: 1})

	s.fails()
	s.replays(idem.Filter{IDs: []string{"received"}}, idem.Replayed{Done: 2})
	s.wantLedger("other paid", "received paid", "refund refunded")
	s.wantState("refund", idem.StateDone)
	s.wantPayload("refund", "")
	s.wantHealth("it went on", s.newHealth(s.processor), "", "")
	s.wantAnswer(about("refund", "refunded", "o1"), http.StatusOK)
	s.wantAnswer(about("more", "paid", "o1"), http.StatusOK)
	s.wantLedger("other paid", "received paid", "refund refunded", "more paid")
}

// An event that cannot be read may be the payment.
func TestWhatFollowsAnEventThatDoesNotDecodeWaits(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	unreadable := identify([]byte(`{"id":"x","type":"paid","order":"o1"}`))
	unreadable.Payload = []byte(`{"id":"x","type":"paid","order":7}`)
	s.accepts(s.processor, unreadable, idem.Parked)
	s.accepts(s.processor, at(0, "refund", "refunded", "o1"), idem.Done) // by the provider's clock it is older
	s.accepts(s.processor, identify([]byte(about("next", "refunded", "o1"))), idem.Parked)
	s.wantRow("next", "last_error", "waits for x")
}

// Whoever has seen the line of the first may wait for the next.
func TestEachFurtherEventThatWaitsIsLogged(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.fails("received")
	for n, id := range []string{"received", "a", "b"} {
		s.wantAnswer(about(id, "paid", "o1"), http.StatusOK)
		want, says := "parked", "1 events are parked"
		if n > 0 {
			want, says = "held and parked", fmt.Sprintf("%d events of", n)
		}
		s.wantHealth(id, s.newHealth(s.processor), want, says)
	}
	h := s.newHealth(s.processor)
	h.Report()
	s.wantAnswer(about("c", "paid", "o1"), http.StatusOK)
	for h.Report().Checks[3].Says == "" || !strings.Contains(s.logged(), "says=\"3 events of 1 entities") {
		if !h.Report().Healthy {
			pause()
		}
	}
}

// The provider, or a person there, sends the parked event again.
func TestRedeliveryThatSucceedsGoesOnWithWhatWaits(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.fails("received")
	for _, id := range []string{"received", "refund", "again"} {
		s.wantAnswer(about(id, "paid", "o1"), http.StatusOK)
	}
	s.fails()
	s.wantAnswer(about("received", "paid", "o1"), http.StatusOK)
	s.untilLedger(3)
	s.wantLedger("received paid", "refund paid", "again paid")
}

// By the provider's clock an event that comes late is before the parked one.
func TestOlderEventThatComesLateIsTheFirst(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.fails("received", "created")
	s.accepts(s.processor, at(3, "received", "paid", "o1"), idem.Parked)
	s.accepts(s.processor, at(4, "refund", "refunded", "o1"), idem.Parked)
	s.accepts(s.processor, at(1, "early", "paid", "o1"), idem.Done)
	s.accepts(s.processor, at(2, "created", "paid", "o1"), idem.Parked)
	s.wantRow("created", "last_error", "no such order")
	s.fails()
	s.replays(idem.Filter{IDs: []string{"received"}}, idem.Replayed{Failed: 1}) // created is before it
	s.wantLedger("early paid")
	s.replays(idem.Filter{IDs: []string{"created"}}, idem.Replayed{Done: 1})
	s.wantLedger("early paid", "created paid")
	s.accepts(s.processor, at(3, "received", "paid", "o1"), idem.Done)
	s.untilLedger(4)
	s.wantLedger("early paid", "created paid", "received paid", "refund refunded")
}

func TestReplayGoesThroughEntitiesInTheProvidersOrder(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.fails("a3", "a2", "b1")
	s.accepts(s.processor, at(3, "a3", "paid", "a"), idem.Parked)
	s.accepts(s.processor, at(2, "a2", "paid", "a"), idem.Parked)
	s.accepts(s.processor, at(4, "a4", "paid", "a"), idem.Parked)
	s.accepts(s.processor, at(1, "b1", "paid", "b"), idem.Parked)
	s.fails()
	s.replays(idem.Filter{}, idem.Replayed{Done: 4})
	s.wantLedger("b1 paid", "a2 paid", "a3 paid", "a4 paid")
}

// What fails in its turn holds the rest, as the first did.
func TestEventThatFailsInItsTurnHoldsTheRest(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.fails("a", "b")
	for _, id := range []string{"a", "b", "c"} {
		s.wantAnswer(about(id, "paid", "o1"), http.StatusOK)
	}
	s.fails("b")
	s.replays(idem.Filter{IDs: []string{"a"}}, idem.Replayed{Done: 1, Failed: 1})
	s.wantLedger("a paid")
	s.wantRow("b", "(state, attempts, last_error)", `(parked,1,"no such order")`)
	s.wantHealth("c waits", s.newHealth(s.processor), "held and parked", "1 of o1, paid, for b")
	s.replays(idem.Filter{IDs: []string{"c"}}, idem.Replayed{Failed: 1})
	s.fails()
	s.replays(idem.Filter{IDs: []string{"b"}}, idem.Replayed{Done: 2})
	s.wantLedger("a paid", "b paid", "c paid")
}
