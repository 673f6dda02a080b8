package zeltapaytest_test

import (
	"net/http"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

func TestASlowReceiverTakesNoTimeOfTheFake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		works := 9 * time.Second
		fake := fakeFor(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(works):
			case <-r.Context().Done():
			}
		}))
		fake.Emit(named("evt_1"))
		fake.Settle()
		works = 11 * time.Second
		fake.Emit(named("evt_2"))
		fake.Advance(10 * time.Second)
		same(t, "the timeline", []string{
			"01 00:00:00 delivered evt_1, attempt 1: 200",
			"01 00:00:00 failed evt_2, attempt 1: no answer within 10s, next in 5s",
			"01 00:00:05 failed evt_2, attempt 2: no answer within 10s, next in 10s",
		}, lines(fake))
		same(t, "the bubble's time", 29*time.Second, time.Since(began))
	})
}

func TestAHandlerThatDiesGivesNoAnswer(t *testing.T) {
	t.Parallel()
	for want, die := range map[string]func(){
		"the handler panicked: boom":          func() { panic("boom") },
		"the handler ended without an answer": runtime.Goexit,
	} {
		fake := fakeFor(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { die() }))
		fake.Emit(named("evt_1"))
		fake.Settle()
		same(t, "the timeline", []string{"01 00:00:00 failed evt_1, attempt 1: " + want + ", next in 5s"}, lines(fake))
	}
}

// The bubble itself fails when a goroutine is left.
func TestCloseWaitsForHandlers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ended := false
		fake := zeltapaytest.New()
		fake.AddWebhook(zeltapaytest.Webhook{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			<-time.After(time.Second)
			ended = true
		})})
		fake.Emit(named("evt_1"))
		fake.Settle()
		for range 2 {
			fake.Close()
			if !ended {
				t.Error("the handler still runs")
			}
		}
		fake.Advance(day)
		if entries := fake.Timeline(); len(entries) != 2 {
			t.Errorf("after Close there are %d entries", len(entries))
		}
	})
}

func TestCloseWaitsNoLongerThanTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		fake := zeltapaytest.New()
		fake.AddWebhook(zeltapaytest.Webhook{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end })})
		fake.Emit(named("evt_1"))
		fake.Settle()
		before := time.Now()
		fake.Close()
		same(t, "the time that it took", 10*time.Second, time.Since(before))
		close(end)
	})
}

func TestCloseEndsADeliveryInFlight(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	fake := fakeFor(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-r.Context().Done()
	}))
	fake.Emit(named("evt_1"))
	settled := make(chan struct{})
	go func() {
		defer close(settled)
		fake.Advance(day)
	}()
	<-arrived
	fake.Close()
	<-settled
	same(t, "the timeline", []string{"01 00:00:00 failed evt_1, attempt 1: the fake was closed, next in 5s"}, lines(fake))
}
