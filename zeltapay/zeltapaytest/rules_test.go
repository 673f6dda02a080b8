package zeltapaytest_test

import (
	"testing"
	"time"

	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

const (
	accept = zeltapaytest.Accept
	retry  = zeltapaytest.Retry
	park   = zeltapaytest.Park
)

func TestStatusesMeanWhatIsDocumented(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why           string
		status        int
		judge, listed zeltapaytest.Verdict
	}{
		{"listed", 200, accept, accept},
		{"listed", 201, accept, accept},
		{"listed", 202, accept, accept},
		{"listed", 204, accept, accept},
		{"a 2xx that only the other pages take", 203, accept, retry},
		{"a 2xx that only the other pages take", 299, accept, retry},
		{"a time-out that the receiver names", 408, retry, retry},
		{"too many requests", 429, retry, retry},
		{"named", 500, retry, retry},
		{"named", 502, retry, retry},
		{"named", 503, retry, retry},
		{"named", 504, retry, retry},
		{"a 5xx that is not named", 501, retry, retry},
		{"the last 5xx", 599, retry, retry},
		{"no answer", 0, retry, retry},
		{"not documented, assumed", 302, retry, retry},
		{"a 4xx", 400, park, park},
		{"a wrong secret", 401, park, park},
		{"a 4xx beside 408", 407, park, park},
		{"a 4xx beside 408", 409, park, park},
		{"a 4xx", 422, park, park},
		{"a 4xx beside 429", 428, park, park},
		{"a 4xx beside 429", 430, park, park},
		{"the last 4xx", 499, park, park},
	} {
		if got := zeltapaytest.Judge(c.status); got != c.judge {
			t.Errorf("%s: Judge(%d) is %d, want %d", c.why, c.status, got, c.judge)
		}
		if got := zeltapaytest.JudgeListed(c.status); got != c.listed {
			t.Errorf("%s: JudgeListed(%d) is %d, want %d", c.why, c.status, got, c.listed)
		}
	}
}

func seconds(n ...float64) (out []time.Duration) {
	for _, s := range n {
		out = append(out, time.Duration(s*float64(time.Second)))
	}
	return out
}

func TestRetriesComeWhenTheirTableSays(t *testing.T) {
	t.Parallel()
	unit := day / 63
	for _, c := range []struct {
		why    string
		delays []time.Duration
		want   []time.Duration
	}{
		{"the table", zeltapaytest.TableDelays(), seconds(0, 5, 15, 35, 75, 155, 315)},
		{"six attempts in all", zeltapaytest.TableDelays()[:5], seconds(0, 5, 15, 35, 75, 155)},
		{"the sample", zeltapaytest.SampleDelays(), seconds(0, 10, 30, 70, 150, 310, 630)},
		{"the text", zeltapaytest.DayDelays(), []time.Duration{0, unit, 3 * unit, 7 * unit, 15 * unit, 31 * unit, 63 * unit}},
		{"no retry", []time.Duration{}, seconds(0)},
	} {
		fake := fakeFor(t, answering(503))
		fake.Delays = c.delays
		fake.Emit(named("evt_1"))
		fake.Advance(day)
		same(t, c.why, c.want, attempts(fake))
		last := start.Add(c.want[len(c.want)-1])
		if letters := fake.DeadLetters(); len(letters) != 1 || letters[0].Reason != zeltapaytest.ReasonGivenUp || !letters[0].Since.Equal(last) {
			t.Errorf("%s: the dead-letter queue has %+v", c.why, letters)
		}
	}
}

func TestJitterMultipliesEachDelay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why    string
		jitter []float64
		want   []time.Duration
	}{
		{"the least of the table", []float64{0.5}, seconds(0, 2.5, 7.5, 17.5, 37.5, 77.5, 157.5)},
		{"the most of the table", []float64{1.5}, seconds(0, 7.5, 22.5, 52.5, 112.5, 232.5, 472.5)},
		{"another each time", []float64{1, 2, 0.5, 1.5, 1, 0.5}, seconds(0, 5, 25, 35, 95, 175, 255)},
	} {
		fake := fakeFor(t, answering(503))
		next := 0
		fake.Jitter = func() float64 {
			next++
			return c.jitter[(next-1)%len(c.jitter)]
		}
		fake.Emit(named("evt_1"))
		fake.Advance(day)
		same(t, c.why, c.want, attempts(fake))
	}
}

func TestNothingIsRetried24HoursAfterTheFirstAttempt(t *testing.T) {
	t.Parallel()
	fake := fakeFor(t, answering(503))
	fake.Delays = zeltapaytest.DayDelays()
	fake.Jitter = func() float64 { return 1.5 }
	fake.Advance(time.Hour)
	fake.Emit(named("evt_1"))
	fake.Advance(day)
	delay := day / 63 * 3 / 2
	same(t, "the attempts", []time.Duration{0, delay, 3 * delay, 7 * delay, 15 * delay, 31 * delay},
		sinceFirst(attempts(fake)))
	letters := fake.DeadLetters()
	if len(letters) != 1 || letters[0].Reason != zeltapaytest.ReasonTooOld || letters[0].Since.Sub(start) != 25*time.Hour {
		t.Errorf("the dead-letter queue has %+v", letters)
	}
}

func TestARetryMayComeAtTheLastMoment(t *testing.T) {
	t.Parallel()
	fake := fakeFor(t, answering(503, 200))
	fake.Delays = []time.Duration{24 * time.Hour}
	fake.Emit(named("evt_1"))
	fake.Advance(day)
	same(t, "the attempts", []time.Duration{0, 24 * time.Hour}, attempts(fake))
}

func sinceFirst(at []time.Duration) (out []time.Duration) {
	for _, d := range at {
		out = append(out, d-at[0])
	}
	return out
}

const day = 24 * time.Hour

func TestDeadLettersAreListedAsTheyWere(t *testing.T) {
	t.Parallel()
	fake := fakeFor(t, answering(503, 400))
	body := named("evt_1")
	fake.Emit(body)
	fake.Advance(day)
	same(t, "the dead-letter queue", []zeltapaytest.DeadLetter{{
		URL: "http://receiver.example/webhooks/zeltapay", EventID: "evt_1", EventType: "payment.success", Body: body,
		Reason: zeltapaytest.ReasonRejected, Attempts: 2,
		Since: start.Add(5 * time.Second), Until: start.Add(5*time.Second + 30*day),
	}}, fake.DeadLetters())
}

func TestDeadLettersAreKept30Days(t *testing.T) {
	t.Parallel()
	fake := fakeFor(t, answering(400))
	fake.Emit(named("evt_1"))
	fake.Advance(30*day - 1)
	if len(fake.DeadLetters()) != 1 {
		t.Fatalf("it is gone too early: %v", lines(fake))
	}
	fake.Advance(1)
	same(t, "the timeline", []string{
		"01 00:00:00 failed evt_1, attempt 1: 400",
		"01 00:00:00 dead-lettered evt_1, attempt 1: the answer is not retried",
		"31 00:00:00 deleted evt_1, attempt 1",
	}, lines(fake))
	if len(fake.DeadLetters()) != 0 || fake.Replay("evt_1") {
		t.Error("it is still there after 30 days")
	}
}

func TestReplayDeliversUnderTheSameID(t *testing.T) {
	t.Parallel()
	re := answering(400, 200)
	fake := fakeFor(t, re)
	body := zeltapaytest.Nested.Event("payment.success", zeltapaytest.Delete("eventId")) // the header alone has an id
	fake.Emit(body)
	fake.Advance(3 * day)
	id := fake.DeadLetters()[0].EventID
	if !fake.Replay(id) || fake.Replay("evt_of_nobody") || fake.Replay(id) {
		t.Error("Replay reports wrongly what was in the queue")
	}
	fake.Settle()
	same(t, "the ids", []string{id, id}, re.ids())
	same(t, "the bodies", []string{string(body), string(body)}, []string{re.got[0].body, re.got[1].body})
	same(t, "the attempts", []string{"1", "2"}, []string{re.got[0].attempt, re.got[1].attempt})
	same(t, "the signed days", int64(3*day/time.Second), re.got[1].signed-re.got[0].signed)
	same(t, "the timeline", []string{
		"01 00:00:00 failed " + id + ", attempt 1: 400",
		"01 00:00:00 dead-lettered " + id + ", attempt 1: the answer is not retried",
		"04 00:00:00 replayed " + id + ", attempt 1",
		"04 00:00:00 delivered " + id + ", attempt 2: 200",
	}, lines(fake))
	if letters := fake.DeadLetters(); len(letters) != 0 {
		t.Errorf("the dead-letter queue has %+v", letters)
	}
}

func TestFailedReplayGoesBackForTheRestOfIts30Days(t *testing.T) {
	t.Parallel()
	fake := fakeFor(t, answering(400, 503))
	fake.Emit(named("evt_1"))
	fake.Advance(29 * day)
	fake.Replay("evt_1")
	fake.Settle()
	letter := fake.DeadLetters()[0]
	if letter.Reason != zeltapaytest.ReasonReplay || letter.Attempts != 2 || !letter.Since.Equal(start) || !letter.Until.Equal(start.Add(30*day)) {
		t.Errorf("the dead letter is %+v", letter)
	}
	fake.Advance(day)
	same(t, "the timeline", []string{
		"01 00:00:00 failed evt_1, attempt 1: 400",
		"01 00:00:00 dead-lettered evt_1, attempt 1: the answer is not retried",
		"30 00:00:00 replayed evt_1, attempt 1",
		"30 00:00:00 failed evt_1, attempt 2: 503",
		"30 00:00:00 dead-lettered evt_1, attempt 2: the replay failed",
		"31 00:00:00 deleted evt_1, attempt 2",
	}, lines(fake))
}

func TestReplayAllDeliversTheWholeQueueInItsOrder(t *testing.T) {
	t.Parallel()
	re := answering(401, 401, 401, 200)
	fake := fakeFor(t, re)
	for _, id := range []string{"evt_1", "evt_2", "evt_3"} {
		fake.Emit(named(id))
	}
	fake.Settle()
	if n := fake.ReplayAll(); n != 3 {
		t.Errorf("%d events of 3", n)
	}
	fake.Advance(day)
	same(t, "the ids", []string{"evt_1", "evt_2", "evt_3", "evt_1", "evt_2", "evt_3"}, re.ids())
	if n := fake.ReplayAll(); n != 0 {
		t.Errorf("%d events are left", n)
	}
}
