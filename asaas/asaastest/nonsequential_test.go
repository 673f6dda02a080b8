package asaastest_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas/asaastest"
)

func TestNonSequentialEventsDoNotWait(t *testing.T) {
	t.Parallel()
	s, fake := newShop(http.StatusOK), newFake(t)
	s.statuses["evt_1"] = http.StatusInternalServerError
	fake.AddWebhook(asaastest.Webhook{Handler: s, SendType: asaastest.NonSequentially})
	fake.Emit(paid("evt_1"), paid("evt_2"))
	fake.Settle()
	if diff := cmp.Diff([]string{"evt_2"}, eventIDs(of(fake, asaastest.Delivered))); diff != "" {
		t.Errorf("delivered (-want +got):\n%s", diff)
	}
}

func TestNonSequentialEventsAreInFlightTogether(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, receive func(http.Handler) asaastest.Webhook) {
		fake := newFake(t)
		fake.Parallelism = 3
		arrived, leave := make(chan string, 7), make(chan bool)
		webhook := receive(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			arrived <- r.URL.Path
			<-leave
		}))
		webhook.SendType = asaastest.NonSequentially
		fake.AddWebhook(webhook)
		for i := range 7 {
			fake.Emit(paid(fmt.Sprintf("evt_%d", i)))
		}
		settled := make(chan bool)
		go func() {
			fake.Settle()
			close(settled)
		}()
		for _, together := range []int{3, 3, 1} {
			for range together {
				<-arrived
			}
			if len(arrived) > 0 {
				t.Errorf("more than %d are in flight", together)
			}
			for range together {
				leave <- true
			}
		}
		<-settled
		var want []string
		for i := range 7 {
			want = append(want, fmt.Sprintf("evt_%d", i))
		}
		if diff := cmp.Diff(want, eventIDs(of(fake, asaastest.Delivered))); diff != "" {
			t.Errorf("the timeline is not in the order of the queue (-want +got):\n%s", diff)
		}
	})
}

func TestNonSequentialFailuresAreCountedAsToldTo(t *testing.T) {
	t.Parallel()
	run := func(counting asaastest.Counting, poison string) (*asaastest.Fake, asaastest.Webhook) {
		s, fake := newShop(http.StatusOK), newFake(t)
		fake.Counting = counting
		s.statuses[poison] = http.StatusInternalServerError
		if poison == "" {
			s.answers(http.StatusInternalServerError)
		}
		webhook := fake.AddWebhook(asaastest.Webhook{Handler: s, SendType: asaastest.NonSequentially})
		for i := range 20 {
			fake.Emit(paid(fmt.Sprintf("evt_%d", i)))
			fake.Advance(time.Hour)
		}
		return fake, fake.Webhook(webhook)
	}
	for _, test := range []struct {
		why      string
		counting asaastest.Counting
		poison   string // "" is every event
		paused   []string
	}{
		{"one event fails 15 times", asaastest.PerEvent, "evt_0", []string{"12h50m0s"}},
		{"others come between its failures", asaastest.PerWebhook, "evt_0", nil},
		{"the first event fails 15 times first", asaastest.PerEvent, "", []string{"12h50m0s"}},
		{"7 attempts at the first event, 1 more and 7 at the second", asaastest.PerWebhook, "", []string{"1h50m0s"}},
	} {
		fake, webhook := run(test.counting, test.poison)
		if diff := cmp.Diff(test.paused, times(fake.Now().Add(-20*time.Hour), of(fake, asaastest.Paused))); diff != "" {
			t.Errorf("%s: paused (-want +got):\n%s", test.why, diff)
		}
		if webhook.Interrupted != (test.paused != nil) {
			t.Errorf("%s: it is %+v", test.why, webhook)
		}
	}
}
