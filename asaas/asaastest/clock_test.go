package asaastest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

func TestTimeAndSettleDoNothingByThemselves(t *testing.T) {
	t.Parallel()
	s, fake := newShop(http.StatusOK), newFake(t)
	fake.AddWebhook(asaastest.Webhook{Handler: s})
	began := fake.Now()
	fake.Emit(paid("evt_1"))
	if len(s.ids()) != 0 {
		t.Error("it was delivered before Settle")
	}
	fake.Settle()
	if len(s.ids()) != 1 || !fake.Now().Equal(began) {
		t.Errorf("after Settle: %d deliveries at %s", len(s.ids()), fake.Now().Sub(began))
	}
	fake.Advance(time.Hour)
	if got := fake.Now().Sub(began); got != time.Hour {
		t.Errorf("the clock moved by %s", got)
	}
}

func TestRunsAreTheSame(t *testing.T) {
	t.Parallel()
	run := func() []asaastest.Entry {
		s, fake := newShop(http.StatusOK), newFake(t)
		s.statuses["evt_2"] = http.StatusInternalServerError
		s.statuses["evt_3"] = http.StatusTeapot
		fake.AddWebhook(asaastest.Webhook{Handler: s})
		fake.AddWebhook(asaastest.Webhook{Handler: s, SendType: asaastest.NonSequentially})
		fake.Inject(asaastest.Concurrent, 0, asaastest.LostAnswer, asaastest.Swap|asaastest.SlowBody, asaastest.CutBody|asaastest.Duplicate)
		for i := range 30 {
			fake.Emit(paid(fmt.Sprintf("evt_%d", i)))
			fake.Advance(17 * time.Minute)
		}
		return fake.Timeline()
	}
	first := run()
	for range 3 {
		if diff := cmp.Diff(first, run()); diff != "" {
			t.Fatalf("two runs differ:\n%s", diff)
		}
	}
}

func TestObserveIsToldTheTimeline(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	var told []asaastest.Entry
	fake.Observe = func(e asaastest.Entry) { told = append(told, e) }
	webhook := fake.AddWebhook(asaastest.Webhook{Handler: newShop(http.StatusInternalServerError)})
	fake.Emit(paid("evt_1"))
	fake.Advance(day)
	fake.RemoveBackoff(webhook)
	fake.Resume(webhook)
	fake.Advance(20 * day)
	if diff := cmp.Diff(fake.Timeline(), told); diff != "" {
		t.Errorf("(-timeline +told):\n%s", diff)
	}
	for _, kind := range []asaastest.Kind{"queued", "failed", "emailed", "paused", "backoff removed", "resumed", "deleted"} {
		if len(of(fake, kind)) == 0 {
			t.Errorf("nothing is %s", kind)
		}
	}
}

func TestMistakesInTheUseSayWhatToDo(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	for range 10 {
		fake.AddWebhook(asaastest.Webhook{Handler: newShop(http.StatusOK), Events: []asaas.EventType{}})
	}
	fake.Emit(paid("evt_1"))
	for _, test := range []struct {
		why  string
		do   func()
		says string
	}{
		{"the id of another event", func() { fake.Emit(paid("evt_1")) }, "evt_1 was emitted before: leave its id to asaastest.Event"},
		{"no JSON", func() { fake.Emit([]byte("{")) }, "the body is no event"},
		{"no id", func() { fake.Emit([]byte(`{"event":"PAYMENT_RECEIVED"}`)) }, "has no id or no event"},
		{"an event that was not emitted", func() { fake.Resend("evt_2") }, "Emit it first"},
		{"no receiver", func() { fake.AddWebhook(asaastest.Webhook{}) }, "needs a URL or a Handler"},
		{"the eleventh webhook", func() { fake.AddWebhook(asaastest.Webhook{URL: "http://a.example"}) }, "at most 10 webhooks"},
		{"an unknown webhook", func() { fake.Resume("1") }, `there is no webhook "1"`},
		{"back in time", func() { fake.Advance(-1) }, "the clock does not go back"},
	} {
		if got := panicOf(test.do); !strings.HasPrefix(got, "asaastest: ") || !strings.Contains(got, test.says) {
			t.Errorf("%s: panics with %q, want %q", test.why, got, test.says)
		}
	}
	fake.Settle() // it is not locked
}

func TestReceiverMayUseTheFakeButNotItsClock(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	var said string
	var webhook string
	webhook = fake.AddWebhook(asaastest.Webhook{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		said = panicOf(fake.Settle)
		if fake.Webhook(webhook).Pending == 1 && len(fake.Timeline()) == 1 {
			fake.Emit(paid("evt_2"))
		}
	})})
	fake.Emit(paid("evt_1"))
	fake.Settle()
	if diff := cmp.Diff([]string{"evt_1", "evt_2"}, eventIDs(of(fake, asaastest.Delivered))); diff != "" {
		t.Errorf("delivered (-want +got):\n%s", diff)
	}
	if !strings.Contains(said, "not from a receiver") {
		t.Errorf("Settle in a receiver panics with %q", said)
	}
}
