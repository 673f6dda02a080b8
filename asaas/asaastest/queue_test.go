package asaastest_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

const day = 24 * time.Hour

func TestSequentialEventsWaitForTheFirst(t *testing.T) {
	t.Parallel()
	s, fake := newShop(http.StatusOK), newFake(t)
	s.statuses["evt_1"] = http.StatusInternalServerError
	fake.AddWebhook(asaastest.Webhook{Handler: s})
	fake.Emit(paid("evt_1"), paid("evt_2"))
	fake.Advance(20 * time.Second)
	fake.Emit(paid("evt_3"))
	fake.Advance(20 * time.Second)
	if diff := cmp.Diff([]string{"evt_1", "evt_1"}, s.ids()); diff != "" {
		t.Fatalf("while the first fails (-want +got):\n%s", diff)
	}
	delete(s.statuses, "evt_1")
	fake.Advance(time.Minute)
	if diff := cmp.Diff([]string{"evt_1", "evt_1", "evt_1", "evt_2", "evt_3"}, s.ids()); diff != "" {
		t.Errorf("in the end (-want +got):\n%s", diff)
	}
}

func TestPausedQueueKeepsEventsAndResumesInTheirOrder(t *testing.T) {
	t.Parallel()
	for _, sendType := range []asaastest.SendType{asaastest.Sequentially, asaastest.NonSequentially} {
		s, fake := newShop(http.StatusInternalServerError), newFake(t)
		webhook := fake.AddWebhook(asaastest.Webhook{Handler: s, SendType: sendType})
		fake.Emit(paid("evt_1"), paid("evt_2"))
		fake.Advance(day)
		fake.Emit(paid("evt_3"))
		fake.Advance(day)
		s.answers(http.StatusOK)
		before := len(s.ids())
		fake.Advance(day)
		if n := len(s.ids()) - before; n != 0 {
			t.Errorf("%s: %d were sent while the queue was paused", sendType, n)
		}
		fake.Resume(webhook)
		fake.Settle()
		if diff := cmp.Diff([]string{"evt_1", "evt_2", "evt_3"}, eventIDs(of(fake, asaastest.Delivered))); diff != "" {
			t.Errorf("%s: after Resume (-want +got):\n%s", sendType, diff)
		}
		if w := fake.Webhook(webhook); w.Interrupted || w.Penalized != 0 || w.Pending != 0 {
			t.Errorf("%s: in the end it is %+v", sendType, w)
		}
	}
}

func TestResumedQueueHas15AttemptsAgain(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	webhook := fake.AddWebhook(asaastest.Webhook{Handler: newShop(http.StatusInternalServerError)})
	fake.Emit(paid("evt_1"))
	fake.Advance(day)
	fake.Resume(webhook)
	fake.Advance(day)
	failed := of(fake, asaastest.Failed)
	if len(failed) != 30 || failed[29].Attempt != 30 || len(of(fake, asaastest.Paused)) != 2 || len(of(fake, asaastest.Emailed)) != 6 {
		t.Errorf("what happened:\n%s", lines(fake.Timeline()))
	}
}

func TestEventsAreDeletedAfter14Days(t *testing.T) {
	t.Parallel()
	s, fake := newShop(http.StatusInternalServerError), newFake(t)
	webhook := fake.AddWebhook(asaastest.Webhook{Handler: s})
	began := fake.Now()
	fake.Emit(paid("evt_1"))
	fake.Advance(day)
	fake.Emit(paid("evt_2"))
	fake.Advance(13*day - 1)
	if n := len(of(fake, asaastest.Deleted)); n != 0 {
		t.Errorf("%d are deleted before 14 days", n)
	}
	fake.Advance(1)
	deleted := of(fake, asaastest.Deleted)
	if diff := cmp.Diff([]string{"evt_1"}, eventIDs(deleted)); diff != "" {
		t.Errorf("after 14 days (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"336h0m0s"}, times(began, deleted)); diff != "" {
		t.Errorf("deleted at (-want +got):\n%s", diff)
	}
	s.answers(http.StatusOK)
	fake.Resume(webhook)
	fake.Settle()
	if diff := cmp.Diff([]string{"evt_2"}, eventIDs(of(fake, asaastest.Delivered))); diff != "" {
		t.Errorf("after Resume (-want +got):\n%s", diff)
	}
}

func TestRemoveBackoffEndsTheWait(t *testing.T) {
	t.Parallel()
	s, fake := newShop(http.StatusInternalServerError), newFake(t)
	webhook := fake.AddWebhook(asaastest.Webhook{Handler: s})
	fake.Emit(paid("evt_1"), paid("evt_2"))
	fake.Advance(3 * time.Hour)
	if got := fake.Webhook(webhook).Penalized; got != 9 {
		t.Fatalf("%d failures in a row, want 9", got)
	}
	s.answers(http.StatusOK)
	fake.RemoveBackoff(webhook)
	if got := fake.Webhook(webhook).Penalized; got != 0 {
		t.Errorf("%d failures in a row after RemoveBackoff", got)
	}
	now := fake.Now()
	fake.Settle()
	if diff := cmp.Diff([]string{"0s", "0s"}, times(now, of(fake, asaastest.Delivered))); diff != "" {
		t.Errorf("delivered (-want +got):\n%s", diff)
	}
}

func TestRemoveBackoffDoesNotResume(t *testing.T) {
	t.Parallel()
	s, fake := newShop(http.StatusInternalServerError), newFake(t)
	webhook := fake.AddWebhook(asaastest.Webhook{Handler: s})
	fake.Emit(paid("evt_1"))
	fake.Advance(day)
	fake.RemoveBackoff(webhook)
	fake.Advance(day)
	if w := fake.Webhook(webhook); !w.Interrupted || len(s.ids()) != 15 {
		t.Errorf("it is %+v, after %d attempts", w, len(s.ids()))
	}
}

func TestWebhookGetsOnlyTheEventsItSubscribesTo(t *testing.T) {
	t.Parallel()
	all, some, disabled, fake := newShop(http.StatusOK), newShop(http.StatusOK), newShop(http.StatusOK), newFake(t)
	fake.AddWebhook(asaastest.Webhook{Handler: all})
	two := []asaas.EventType{"PAYMENT_OVERDUE", "TRANSFER_DONE"}
	fake.AddWebhook(asaastest.Webhook{Handler: some, Events: two})
	two[1] = "PAYMENT_RECEIVED" // is the test's own
	fake.AddWebhook(asaastest.Webhook{Handler: disabled, Disabled: true})
	fake.Emit(
		paid("evt_1"),
		asaastest.Sparse("PAYMENT_OVERDUE", asaastest.Set("id", "evt_2")),
		asaastest.Event("PAYMENT_CREATED", asaastest.Set("id", "evt_3"), asaastest.Set("event", "PAYMENT_BY_PIGEON")))
	fake.Settle()
	for _, test := range []struct {
		why  string
		shop *shop
		want []string
	}{
		{"all event types, also new ones", all, []string{"evt_1", "evt_2", "evt_3"}},
		{"two event types", some, []string{"evt_2"}},
		{"disabled", disabled, nil},
	} {
		if diff := cmp.Diff(test.want, test.shop.ids()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.why, diff)
		}
	}
}

func TestWebhooksThatAreResumedAtOneMomentDeliverInTheirOrder(t *testing.T) {
	t.Parallel()
	fake := newFake(t)
	first := fake.AddWebhook(asaastest.Webhook{Handler: newShop(http.StatusOK), Interrupted: true, Events: []asaas.EventType{"PAYMENT_OVERDUE"}})
	second := fake.AddWebhook(asaastest.Webhook{Handler: newShop(http.StatusOK), Interrupted: true, Events: []asaas.EventType{"PAYMENT_RECEIVED"}})
	fake.Emit(paid("evt_1"))
	fake.Advance(time.Hour)
	fake.Emit(asaastest.Event("PAYMENT_OVERDUE", asaastest.Set("id", "evt_2")))
	fake.Advance(time.Hour)
	fake.Resume(second)
	fake.Resume(first)
	fake.Settle()
	if diff := cmp.Diff([]string{"evt_2", "evt_1"}, eventIDs(of(fake, asaastest.Delivered))); diff != "" {
		t.Errorf("delivered (-want +got):\n%s", diff)
	}
}

func TestEveryWebhookHasAQueueOfItsOwn(t *testing.T) {
	t.Parallel()
	broken, sound, fake := newShop(http.StatusInternalServerError), newShop(http.StatusOK), newFake(t)
	first := fake.AddWebhook(asaastest.Webhook{Handler: broken})
	second := fake.AddWebhook(asaastest.Webhook{Handler: sound})
	fake.Emit(paid("evt_1"), paid("evt_2"))
	fake.Advance(day)
	if diff := cmp.Diff([]string{"evt_1", "evt_2"}, sound.ids()); diff != "" {
		t.Errorf("the sound one received (-want +got):\n%s", diff)
	}
	if !fake.Webhook(first).Interrupted || fake.Webhook(second).Interrupted {
		t.Error("not exactly the broken one is paused")
	}
}

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
		arrived, leave := make(chan string, 23), make(chan bool)
		webhook := receive(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			arrived <- r.URL.Path
			<-leave
		}))
		webhook.SendType = asaastest.NonSequentially
		fake.AddWebhook(webhook)
		for i := range 23 {
			fake.Emit(paid(fmt.Sprintf("evt_%d", i)))
		}
		settled := make(chan bool)
		go func() {
			fake.Settle()
			close(settled)
		}()
		for _, together := range []int{10, 10, 3} {
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
		for i := range 23 {
			want = append(want, fmt.Sprintf("evt_%d", i))
		}
		if diff := cmp.Diff(want, eventIDs(of(fake, asaastest.Delivered))); diff != "" {
			t.Errorf("the timeline is not in the order of the queue (-want +got):\n%s", diff)
		}
	})
}

func TestANonSequentialQueueIsPausedByOneEvent(t *testing.T) {
	t.Parallel()
	s, fake := newShop(http.StatusOK), newFake(t)
	s.statuses["evt_0"] = http.StatusInternalServerError
	webhook := fake.AddWebhook(asaastest.Webhook{Handler: s, SendType: asaastest.NonSequentially})
	began := fake.Now()
	for i := range 20 { // others come between its failures
		fake.Emit(paid(fmt.Sprintf("evt_%d", i)))
		fake.Advance(time.Hour)
	}
	if diff := cmp.Diff([]string{"12h50m0s"}, times(began, of(fake, asaastest.Paused))); diff != "" || !fake.Webhook(webhook).Interrupted {
		t.Errorf("paused (-want +got):\n%s", diff)
	}
}

func TestWaitsAreAsDocumented(t *testing.T) {
	t.Parallel()
	at := []string{ // of the attempts, since the first
		"0s", "30s", "1m30s", "5m0s", "10m0s", "25m0s", "50m0s", "1h50m0s", "2h50m0s", "3h50m0s", "4h50m0s", "5h50m0s", "7h50m0s", "9h50m0s", "12h50m0s",
	}
	for _, sendType := range []asaastest.SendType{asaastest.Sequentially, asaastest.NonSequentially} {
		fake := newFake(t)
		webhook := fake.AddWebhook(asaastest.Webhook{Handler: newShop(http.StatusInternalServerError), SendType: sendType})
		began := fake.Now()
		fake.Emit(paid("evt_1"))
		fake.Advance(13 * 24 * time.Hour)

		failed := of(fake, asaastest.Failed)
		if diff := cmp.Diff(at, times(began, failed)); diff != "" {
			t.Errorf("%s: attempts (-want +got):\n%s", sendType, diff)
		}
		for i, e := range failed {
			var next time.Time
			if i+1 < len(failed) {
				next = failed[i+1].At
			}
			if e.Attempt != i+1 || !e.Next.Equal(next) || e.Status != http.StatusInternalServerError {
				t.Errorf("%s: failure %d is %s", sendType, i+1, e)
			}
		}
		emails := []string{at[4], at[9], at[14]}
		if diff := cmp.Diff(emails, times(began, of(fake, asaastest.Emailed))); diff != "" {
			t.Errorf("%s: e-mails (-want +got):\n%s", sendType, diff)
		}
		if diff := cmp.Diff(at[14:], times(began, of(fake, asaastest.Paused))); diff != "" {
			t.Errorf("%s: pauses (-want +got):\n%s", sendType, diff)
		}
		if w := fake.Webhook(webhook); !w.Interrupted || w.Penalized != 15 || w.Pending != 1 {
			t.Errorf("%s: in the end it is %+v", sendType, w)
		}
	}
}

func TestSuccessStartsTheCountAgain(t *testing.T) {
	t.Parallel()
	s, fake := newShop(http.StatusInternalServerError), newFake(t)
	webhook := fake.AddWebhook(asaastest.Webhook{Handler: s})
	fake.Emit(paid("evt_1"))
	fake.Advance(10 * time.Hour) // 14 failures
	s.answers(http.StatusOK)
	fake.Advance(3 * time.Hour)
	if got := fake.Webhook(webhook); got.Penalized != 0 || got.Pending != 0 {
		t.Fatalf("after a success it is %+v", got)
	}
	s.answers(http.StatusInternalServerError)
	fake.Emit(paid("evt_2"))
	fake.Advance(time.Minute)
	if got := fake.Webhook(webhook); got.Penalized != 2 || got.Interrupted {
		t.Errorf("after two failures it is %+v", got)
	}
}
