package asaastest_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

// faultyRun delivers two events to a shop, the first attempt with a fault, and
// moves on by a minute.
func faultyRun(t *testing.T, receive func(http.Handler) asaastest.Webhook, fault asaastest.Fault) (*shop, []asaastest.Entry) {
	s, fake := newShop(http.StatusOK), newFake(t)
	fake.AddWebhook(receive(s))
	fake.Inject(fault)
	fake.Emit(paid("evt_1"), paid("evt_2"))
	fake.Advance(time.Minute)
	return s, of(fake, asaastest.Delivered, asaastest.Failed, asaastest.Copied)
}

func TestFaultsGoAsTheySay(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, receive func(http.Handler) asaastest.Webhook) {
		for _, test := range []struct {
			why      string
			fault    asaastest.Fault
			received []string
			timeline []string // without the event's type
		}{
			{"nothing is wrong", 0, []string{"evt_1", "evt_2"}, []string{
				"23:45:13 delivered evt_1, attempt 1: 200",
				"23:45:13 delivered evt_2, attempt 1: 200",
			}},
			{"a second copy after the first", asaastest.Duplicate, []string{"evt_1", "evt_1", "evt_2"}, []string{
				"23:45:13 delivered evt_1, attempt 1: 200",
				"23:45:13 copied evt_1, attempt 1: 200",
				"23:45:13 delivered evt_2, attempt 1: 200",
			}},
			{"two copies at once", asaastest.Concurrent, []string{"evt_1", "evt_1", "evt_2"}, []string{
				"23:45:13 delivered evt_1, attempt 1: 200",
				"23:45:13 copied evt_1, attempt 1: 200",
				"23:45:13 delivered evt_2, attempt 1: 200",
			}},
			{"the second event comes first", asaastest.Swap, []string{"evt_2", "evt_1"}, []string{
				"23:45:13 delivered evt_2, attempt 1: 200",
				"23:45:13 delivered evt_1, attempt 1: 200",
			}},
			{"Asaas does not hear of the success", asaastest.LostAnswer, []string{"evt_1", "evt_1", "evt_2"}, []string{
				"23:45:13 failed evt_1, attempt 1: 200, the answer was lost, next in 30s",
				"23:45:43 delivered evt_1, attempt 2: 200",
				"23:45:43 delivered evt_2, attempt 1: 200",
			}},
			{"slow is not wrong", asaastest.SlowBody, []string{"evt_1", "evt_2"}, []string{
				"23:45:13 delivered evt_1, attempt 1: 200",
				"23:45:13 delivered evt_2, attempt 1: 200",
			}},
			{"two copies, both answers lost", asaastest.Concurrent | asaastest.LostAnswer, []string{"evt_1", "evt_1", "evt_1", "evt_2"}, []string{
				"23:45:13 failed evt_1, attempt 1: 200, the answer was lost, next in 30s",
				"23:45:13 copied evt_1, attempt 1: 200",
				"23:45:43 delivered evt_1, attempt 2: 200",
				"23:45:43 delivered evt_2, attempt 1: 200",
			}},
		} {
			s, entries := faultyRun(t, receive, test.fault)
			if diff := cmp.Diff(test.received, s.ids()); diff != "" {
				t.Errorf("%s: received (-want +got):\n%s", test.why, diff)
			}
			said := strings.NewReplacer("2026-08-08 ", "", "PAYMENT_RECEIVED ", "").Replace(lines(entries))
			if diff := cmp.Diff(test.timeline, strings.Split(strings.TrimSpace(said), "\n")); diff != "" {
				t.Errorf("%s: timeline (-want +got):\n%s", test.why, diff)
			}
			if entries[0].Fault != test.fault {
				t.Errorf("%s: the fault on the timeline is %d", test.why, entries[0].Fault)
			}
		}
	})
}

func TestCutBodyEndsInTheMiddle(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, receive func(http.Handler) asaastest.Webhook) {
		for _, fault := range []asaastest.Fault{asaastest.CutBody, asaastest.CutBody | asaastest.SlowBody} {
			s, entries := faultyRun(t, receive, fault)
			got := s.requests()
			half, whole := got[0], got[1]
			if half.err != io.ErrUnexpectedEOF || !bytes.HasPrefix(whole.body, half.body) || len(half.body) != len(whole.body)/2 {
				t.Errorf("%d of %d bytes were received, with error %v", len(half.body), len(whole.body), half.err)
			}
			if entries[0].Status != http.StatusBadRequest || entries[0].Kind != asaastest.Failed {
				t.Errorf("it happened:\n%s", lines(entries))
			}
		}
	})
}

func TestSlowBodyComesByteByByte(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	most := 0
	fake.AddWebhook(asaastest.Webhook{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for buffer := make([]byte, 1000); ; {
			n, err := r.Body.Read(buffer)
			most = max(most, n)
			if err != nil {
				return
			}
		}
	})})
	fake.Inject(asaastest.SlowBody)
	fake.Emit(paid("evt_1"))
	fake.Settle()
	if most != 1 {
		t.Errorf("%d bytes came at once", most)
	}
}

func TestWrongTokenIsAnotherOne(t *testing.T) {
	t.Parallel()
	s, _ := faultyRun(t, func(h http.Handler) asaastest.Webhook { return asaastest.Webhook{Handler: h, Token: token} }, asaastest.WrongToken)
	for i, want := range []bool{false, true} {
		got := s.requests()[i]
		if err := asaas.Verify(got.header, got.body, token); (err == nil) != want {
			t.Errorf("request %d: %v", i, err)
		}
	}
}

func TestConcurrentCopiesAreInFlightTogether(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, receive func(http.Handler) asaastest.Webhook) {
		fake := newFake(t)
		var both sync.WaitGroup
		both.Add(2)
		fake.AddWebhook(receive(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			both.Done()
			both.Wait() // neither is answered before both are here
		})))
		fake.Inject(asaastest.Concurrent)
		fake.Emit(paid("evt_1"))
		fake.Settle()
		if len(of(fake, asaastest.Delivered)) != 1 || len(of(fake, asaastest.Copied)) != 1 {
			t.Errorf("it happened:\n%s", lines(fake.Timeline()))
		}
	})
}

func TestEventThatWasOvertakenGoesBackToItsPlaceOnResume(t *testing.T) {
	t.Parallel()
	s, fake := newShop(http.StatusInternalServerError), newFake(t)
	webhook := fake.AddWebhook(asaastest.Webhook{Handler: s})
	fake.Inject(asaastest.Swap)
	fake.Emit(paid("evt_1"), paid("evt_2"))
	fake.Advance(day)
	s.answers(http.StatusOK)
	fake.Resume(webhook)
	fake.Settle()
	if diff := cmp.Diff([]string{"evt_1", "evt_2"}, eventIDs(of(fake, asaastest.Delivered))); diff != "" {
		t.Errorf("delivered (-want +got):\n%s", diff)
	}
}

func TestFaultWaitsForItsAttempt(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	fake.AddWebhook(asaastest.Webhook{Handler: newShop(http.StatusOK)})
	fake.Inject(0, 0, asaastest.LostAnswer)
	fake.Emit(paid("evt_1"), paid("evt_2"), paid("evt_3"))
	fake.Advance(time.Minute)
	if diff := cmp.Diff([]string{"evt_3"}, eventIDs(of(fake, asaastest.Failed))); diff != "" {
		t.Errorf("failed (-want +got):\n%s", diff)
	}
}
