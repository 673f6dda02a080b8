package zeltapaytest_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

func TestFaultsHitTheNextAttempts(t *testing.T) {
	t.Parallel()
	fake := fakeFor(t, answering(200))
	fake.Inject(0, zeltapaytest.LostAnswer)
	fake.Inject(zeltapaytest.LostAnswer | zeltapaytest.Duplicate)
	fake.Emit(named("evt_1"), named("evt_2"))
	fake.Advance(day)
	same(t, "the timeline", []string{
		"01 00:00:00 delivered evt_1, attempt 1: 200",
		"01 00:00:00 failed evt_2, attempt 1: 200, the answer was lost, next in 5s",
		"01 00:00:05 failed evt_2, attempt 2: 200, the answer was lost, next in 10s",
		"01 00:00:05 copied evt_2, attempt 2: 200, the answer was lost",
		"01 00:00:15 delivered evt_2, attempt 3: 200",
	}, lines(fake))
	var faults []zeltapaytest.Fault
	for _, e := range fake.Timeline() {
		faults = append(faults, e.Fault)
	}
	same(t, "their faults", []zeltapaytest.Fault{
		0, 0, // queued
		0, zeltapaytest.LostAnswer,
		zeltapaytest.LostAnswer | zeltapaytest.Duplicate, zeltapaytest.LostAnswer | zeltapaytest.Duplicate,
		0,
	}, faults)
}

func TestConcurrentCopiesAreInTheReceiverAtTheSameMoment(t *testing.T) {
	t.Parallel()
	var arrived atomic.Int32
	both := make(chan struct{})
	fake := fakeFor(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if arrived.Add(1) == 2 {
			close(both)
		}
		select {
		case <-both:
		case <-r.Context().Done():
		}
	}))
	fake.Inject(zeltapaytest.Concurrent)
	fake.Emit(named("evt_1"))
	fake.Settle()
	same(t, "the timeline", []string{
		"01 00:00:00 delivered evt_1, attempt 1: 200",
		"01 00:00:00 copied evt_1, attempt 1: 200",
	}, lines(fake))
}

func TestOfACopyTheFirstAnswerCounts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why      string
		fault    zeltapaytest.Fault
		statuses []int
		want     []string
	}{
		{"the copy would park it", zeltapaytest.Duplicate, []int{200, 400}, []string{
			"01 00:00:00 delivered evt_1, attempt 1: 200",
			"01 00:00:00 copied evt_1, attempt 1: 400",
		}},
		{"the copy is taken", zeltapaytest.Duplicate, []int{400, 200}, []string{
			"01 00:00:00 failed evt_1, attempt 1: 400",
			"01 00:00:00 copied evt_1, attempt 1: 200",
			"01 00:00:00 dead-lettered evt_1, attempt 1: the answer is not retried",
		}},
		{"two copies", zeltapaytest.Concurrent | zeltapaytest.Duplicate, []int{503, 503, 200}, []string{
			"01 00:00:00 failed evt_1, attempt 1: 503, next in 5s",
			"01 00:00:00 copied evt_1, attempt 1: 503",
			"01 00:00:00 copied evt_1, attempt 1: 200",
		}},
	} {
		re := answering(c.statuses...)
		fake := fakeFor(t, re)
		fake.Inject(c.fault)
		fake.Emit(named("evt_1"))
		fake.Settle()
		same(t, c.why, c.want, lines(fake))
		for _, got := range re.got {
			if got.id != "evt_1" || got.attempt != "1" || got.signed != re.got[0].signed || got.body != re.got[0].body {
				t.Errorf("%s: a copy differs: %+v", c.why, got)
			}
		}
	}
}

func TestSwappedEventsAreOvertaken(t *testing.T) {
	t.Parallel()
	re := answering(200)
	fake := fakeFor(t, re)
	fake.Inject(zeltapaytest.Swap, 0, zeltapaytest.Swap)
	fake.Emit(named("evt_1"), named("evt_2"), named("evt_3"))
	fake.Settle()
	same(t, "the ids", []string{"evt_2", "evt_1", "evt_3"}, re.ids())
}

// An event that is due later, or is a dead letter, does not overtake.
func TestOnlyWhatIsDueOvertakes(t *testing.T) {
	t.Parallel()
	re := answering(400, 503, 200)
	fake := fakeFor(t, re)
	fake.Emit(named("evt_1"), named("evt_2"))
	fake.Settle()
	fake.Inject(zeltapaytest.Swap)
	fake.Emit(named("evt_3"))
	fake.Settle()
	same(t, "the ids", []string{"evt_1", "evt_2", "evt_3"}, re.ids())
}

// evt_2 is due at the same moment, to be given up.
func TestWhatIsGivenUpDoesNotOvertake(t *testing.T) {
	t.Parallel()
	fake := fakeFor(t, answering(503, 503, 200))
	fake.Lifetime, fake.Delays = time.Minute, []time.Duration{time.Minute}
	factor := 0.
	fake.Jitter = func() float64 { factor++; return factor }
	fake.Inject(0, 0, zeltapaytest.Swap)
	fake.Emit(named("evt_1"), named("evt_2"))
	fake.Advance(time.Hour)
	same(t, "the timeline", []string{
		"01 00:00:00 failed evt_1, attempt 1: 503, next in 1m0s",
		"01 00:00:00 failed evt_2, attempt 1: 503",
		"01 00:01:00 delivered evt_1, attempt 2: 200",
		"01 00:01:00 dead-lettered evt_2, attempt 1: no time is left to retry",
	}, lines(fake))
}

func TestACutBodyArrivesByHalf(t *testing.T) {
	t.Parallel()
	for _, fault := range []zeltapaytest.Fault{zeltapaytest.CutBody, zeltapaytest.CutBody | zeltapaytest.SlowBody} {
		re := answering(200)
		fake := fakeFor(t, re)
		fake.Inject(fault)
		body := named("evt_1")
		fake.Emit(body)
		fake.Advance(day)
		same(t, "the first body", string(body[:len(body)/2]), re.got[0].body)
		if re.got[0].err != io.ErrUnexpectedEOF {
			t.Errorf("reading the cut body gives %v", re.got[0].err)
		}
		same(t, "the second body", string(body), re.got[1].body)
		same(t, "the timeline", []string{
			"01 00:00:00 failed evt_1, attempt 1: the connection broke in the body, next in 5s",
			"01 00:00:05 delivered evt_1, attempt 2: 200",
		}, lines(fake))
	}
}

func TestASlowBodyComesByteByByte(t *testing.T) {
	t.Parallel()
	var reads []int
	fake := fakeFor(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		for buffer := make([]byte, 100); ; {
			n, err := r.Body.Read(buffer)
			if err != nil {
				return
			}
			reads = append(reads, n)
		}
	}))
	fake.Inject(zeltapaytest.SlowBody)
	fake.Emit([]byte(`{}`))
	fake.Settle()
	same(t, "the reads", []int{1, 1}, reads)
}

func TestFaultySignaturesAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault  zeltapaytest.Fault
		status int
		answer string // a part of it
	}{
		{0, 200, ""},
		{zeltapaytest.WrongSecret, 401, "wrong_signature"},
		{zeltapaytest.Stale, 401, "stale"},
	} {
		fake := onClock(t)
		fake.Inject(c.fault)
		fake.Emit(named("evt_1"))
		fake.Settle()
		if e := fake.Timeline()[1]; e.Status != c.status || !strings.Contains(e.Answer, c.answer) {
			t.Errorf("fault %d: answered %d %s", c.fault, e.Status, e.Answer)
		}
	}
}
