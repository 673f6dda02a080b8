package zeltapaytest_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

func TestNothingHappensUntilTheClockMoves(t *testing.T) {
	t.Parallel()
	re := answering(503, 200)
	fake := fakeFor(t, re)
	fake.Emit(named("evt_1"))
	if len(re.ids()) != 0 {
		t.Fatal("Emit delivers")
	}
	for _, c := range []struct {
		d    time.Duration
		want int
	}{{0, 1}, {0, 1}, {5*time.Second - 1, 1}, {1, 2}} {
		fake.Advance(c.d)
		if got := len(re.ids()); got != c.want {
			t.Errorf("after %s there were %d requests, want %d", fake.Now().Sub(start), got, c.want)
		}
	}
}

func TestTheClockShowsTheTimeOfEachAttempt(t *testing.T) {
	t.Parallel()
	var during []time.Duration
	var fake *zeltapaytest.Fake
	fake = fakeFor(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		during = append(during, fake.Now().Sub(start))
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	fake.Advance(time.Hour)
	fake.Emit(named("evt_1"))
	fake.Advance(12 * time.Second)
	same(t, "the time in the receiver", []time.Duration{time.Hour, time.Hour + 5*time.Second}, during)
	same(t, "the time", time.Hour+12*time.Second, fake.Now().Sub(start))
}

func TestTheClockBeginsNow(t *testing.T) {
	t.Parallel()
	before := time.Now()
	fake := zeltapaytest.New()
	defer fake.Close()
	if now := fake.Now(); now.Before(before) || now.After(time.Now()) {
		t.Errorf("it is %s", now)
	}
}

func TestEventsAreTriedInTheOrderOfTheirTimes(t *testing.T) {
	t.Parallel()
	fake := fakeFor(t, answering(503, 503, 200))
	fake.Emit(named("evt_1"), named("evt_2"))
	fake.Advance(2 * time.Second)
	fake.Emit(named("evt_3"))
	fake.Advance(day)
	same(t, "the timeline", []string{
		"01 00:00:00 failed evt_1, attempt 1: 503, next in 5s",
		"01 00:00:00 failed evt_2, attempt 1: 503, next in 5s",
		"01 00:00:02 delivered evt_3, attempt 1: 200",
		"01 00:00:05 delivered evt_1, attempt 2: 200",
		"01 00:00:05 delivered evt_2, attempt 2: 200",
	}, lines(fake))
}

func TestAnEventEmittedByTheReceiverIsDeliveredToo(t *testing.T) {
	t.Parallel()
	re := answering(200)
	var fake *zeltapaytest.Fake
	fake = fakeFor(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Zeltapay-Event-Id") == "evt_1" {
			fake.Emit(named("evt_2"))
		}
		re.ServeHTTP(w, r)
	}))
	fake.Emit(named("evt_1"))
	fake.Settle()
	same(t, "the ids", []string{"evt_1", "evt_2"}, re.ids())
}

// Every event ends once, as delivered or as a dead letter, after seven attempts at most, for any answers of the receiver;
// and the same calls have the same timeline.
func TestEveryRunIsTheSame(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		first := chaos(t, seed)
		same(t, fmt.Sprintf("seed %d", seed), lines(first), lines(chaos(t, seed)))
		ends, tries := make(map[string]int), make(map[string]int)
		for _, e := range first.Timeline() {
			if e.Kind == zeltapaytest.Delivered || e.Kind == zeltapaytest.DeadLettered {
				ends[e.EventID]++
			}
			tries[e.EventID] = e.Attempt
		}
		for i := range 20 {
			id := fmt.Sprintf("evt_%d", i)
			if ends[id] != 1 || tries[id] < 1 || tries[id] > 7 {
				t.Errorf("seed %d: %s ended %d times, after %d attempts", seed, id, ends[id], tries[id])
			}
		}
	}
}

// chaos is 20 events over some time, with random statuses and faults.
func chaos(t *testing.T, seed uint64) *zeltapaytest.Fake {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	fake := fakeFor(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader([]int{200, 503, 503, 503, 429, 400}[random.IntN(6)])
	}))
	fake.Jitter = func() float64 { return 0.5 + random.Float64() }
	faults := []zeltapaytest.Fault{0, zeltapaytest.Duplicate, zeltapaytest.Swap, zeltapaytest.LostAnswer, zeltapaytest.CutBody}
	for range 100 {
		first, second := faults[random.IntN(5)], faults[random.IntN(5)]
		fake.Inject(first | second)
	}
	for i := range 20 {
		fake.Emit(named(fmt.Sprintf("evt_%d", i)))
		fake.Advance(time.Duration(random.IntN(10)) * time.Second)
	}
	fake.Advance(day)
	return fake
}

func TestObserveIsToldTheTimelineAsItHappens(t *testing.T) {
	t.Parallel()
	fake := fakeFor(t, answering(503, 400, 200))
	var seen []zeltapaytest.Entry
	fake.Observe = func(e zeltapaytest.Entry) {
		seen = append(seen, e)
		if !fake.Now().Equal(e.At) {
			t.Errorf("told at %s: %s", fake.Now(), e)
		}
	}
	fake.Emit(named("evt_1"))
	fake.Advance(5 * time.Second)
	fake.ReplayAll()
	fake.Settle()
	same(t, "the timeline", fake.Timeline(), seen)
	same(t, "its kinds", []zeltapaytest.Kind{
		zeltapaytest.Queued, zeltapaytest.Failed, zeltapaytest.Failed, zeltapaytest.DeadLettered,
		zeltapaytest.Replayed, zeltapaytest.Delivered,
	}, kinds(seen))
}

func kinds(entries []zeltapaytest.Entry) (out []zeltapaytest.Kind) {
	for _, e := range entries {
		out = append(out, e.Kind)
	}
	return out
}

func TestMistakesWithTheFakePanic(t *testing.T) {
	t.Parallel()
	fake := fakeFor(t, answering(200))
	fake.Observe = func(e zeltapaytest.Entry) {
		if e.Kind == zeltapaytest.Delivered {
			fake.Settle()
		}
	}
	fake.Emit(named("evt_1"))
	for want, mistake := range map[string]func(){
		"zeltapaytest: the clock does not go back": func() { fake.Advance(-1) },
		"zeltapaytest: the clock moves already: call Advance and Settle from one goroutine, and not from a receiver": fake.Settle,
		"zeltapaytest: evt_1 was emitted before: leave its id to zeltapaytest.Event, or Inject an attempt with Duplicate": func() {
			fake.Emit(named("evt_1"))
		},
		"zeltapaytest: a webhook needs a URL or a Handler": func() { fake.AddWebhook(zeltapaytest.Webhook{}) },
		`zeltapaytest: "/webhooks" is not the URL of a receiver: it needs http:// and a host`: func() {
			fake.AddWebhook(zeltapaytest.Webhook{URL: "/webhooks"})
		},
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); got != want {
					t.Errorf("panics with %q, want %q", got, want)
				}
			}()
			mistake()
		}()
	}
}
