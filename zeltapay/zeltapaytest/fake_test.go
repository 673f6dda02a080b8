package zeltapaytest_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

const secret = "a secret"

// receiver answers with its statuses, one after the other, the last one again and again, and records each delivery.
type receiver struct {
	mu       sync.Mutex
	statuses []int
	got      []received
}

type received struct {
	id, attempt string
	signed      int64 // Unix seconds
	header      http.Header
	body        string
	err         error // of reading the body
}

func (re *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	re.mu.Lock()
	defer re.mu.Unlock()
	signed, _ := strconv.ParseInt(r.Header.Get("Zeltapay-Timestamp"), 10, 64)
	re.got = append(re.got, received{
		id: r.Header.Get("Zeltapay-Event-Id"), attempt: r.Header.Get("Zeltapay-Delivery-Attempt"),
		signed: signed, header: r.Header, body: string(body), err: err,
	})
	w.WriteHeader(re.statuses[0])
	if len(re.statuses) > 1 {
		re.statuses = re.statuses[1:]
	}
}

// ids are the ids of the deliveries, in their order.
func (re *receiver) ids() (ids []string) {
	re.mu.Lock()
	defer re.mu.Unlock()
	for _, got := range re.got {
		ids = append(ids, got.id)
	}
	return ids
}

func answering(statuses ...int) *receiver { return &receiver{statuses: statuses} }

// start makes timelines easy to read.
var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// fakeFor delivers to a handler in this process.
func fakeFor(t *testing.T, h http.Handler) *zeltapaytest.Fake {
	t.Helper()
	fake := zeltapaytest.New()
	fake.Start = start
	fake.AddWebhook(zeltapaytest.Webhook{Secret: secret, Handler: h})
	t.Cleanup(fake.Close)
	return fake
}

// named is an event with the id.
func named(id string) []byte {
	return zeltapaytest.Event("payment.success", zeltapaytest.Set("eventId", id))
}

// attempts are when they were made.
func attempts(fake *zeltapaytest.Fake) (at []time.Duration) {
	for _, e := range fake.Timeline() {
		if e.Kind == zeltapaytest.Delivered || e.Kind == zeltapaytest.Failed {
			at = append(at, e.At.Sub(start))
		}
	}
	return at
}

// lines are the timeline after it was queued, without date and type.
func lines(fake *zeltapaytest.Fake) (lines []string) {
	for _, e := range fake.Timeline() {
		if e.Kind != zeltapaytest.Queued {
			lines = append(lines, strings.ReplaceAll(strings.TrimPrefix(e.String(), "2026-01-"), " payment.success", ""))
		}
	}
	return lines
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// on is a dispatcher with a clock.
func on(now func() time.Time, secret string) *zeltapay.Dispatcher {
	events := zeltapay.NewDispatcher(secret)
	events.Now = now
	return events
}

// verifying is a receiver that checks signatures as package zeltapay does, on this clock.
func verifying(now func() time.Time) http.Handler {
	events := on(now, secret)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		if err := events.Verify(r.Header, body); err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
		}
	})
}

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
		fake.Close()
		fake.Advance(day)
		same(t, "after Close, entries", 5, len(fake.Timeline()))
	})
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
	if diff := cmp.Diff(fake.Timeline(), seen); diff != "" || len(seen) != 6 {
		t.Errorf("%d entries (-timeline +seen):\n%s", len(seen), diff)
	}
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
		"zeltapaytest: a webhook needs a URL or a Handler":                                                           func() { fake.AddWebhook(zeltapaytest.Webhook{}) },
		`zeltapaytest: "/webhooks" is not the URL of a receiver: it needs http:// and a host`: func() {
			fake.AddWebhook(zeltapaytest.Webhook{URL: "/webhooks"})
		},
	} {
		panics(t, want, mistake)
	}
}

func panics(t *testing.T, want string, mistake func()) {
	t.Helper()
	defer func() {
		if got := fmt.Sprint(recover()); got != want {
			t.Errorf("panics with %q, want %q", got, want)
		}
	}()
	mistake()
}
