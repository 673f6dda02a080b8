package zeltapaytest_test

import (
	"testing"
	"time"

	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

func TestStatusesMeanWhatIsDocumented(t *testing.T) {
	t.Parallel()
	for want, statuses := range map[zeltapaytest.Kind][]int{
		zeltapaytest.Delivered:    {200, 201, 202, 203, 204, 299},
		zeltapaytest.Failed:       {302, 408, 429, 500, 501, 502, 503, 504, 599}, // and are retried
		zeltapaytest.DeadLettered: {400, 401, 407, 409, 422, 428, 430, 499},
	} {
		for _, status := range statuses {
			fake := fakeFor(t, answering(status))
			fake.Emit(named("evt_1"))
			fake.Settle()
			entries := fake.Timeline()
			if got := entries[len(entries)-1].Kind; got != want {
				t.Errorf("after %d it is %s, want %s", status, got, want)
			}
		}
	}
}

func seconds(n ...int) (out []time.Duration) {
	for _, s := range n {
		out = append(out, time.Duration(s)*time.Second)
	}
	return out
}

func TestRetriesComeAfterTheirDelays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why    string
		delays []time.Duration // nil for the default
		want   []time.Duration
	}{
		{"the table", nil, seconds(0, 5, 15, 35, 75, 155, 315)},
		{"another", seconds(60, 3600), seconds(0, 60, 3660)},
		{"no retry", []time.Duration{}, seconds(0)},
	} {
		fake := fakeFor(t, answering(503))
		if c.delays != nil {
			fake.Delays = c.delays
		}
		fake.Emit(named("evt_1"))
		fake.Advance(day)
		same(t, c.why, c.want, attempts(fake))
		last := start.Add(c.want[len(c.want)-1])
		if letters := fake.DeadLetters(); len(letters) != 1 || letters[0].Reason != zeltapaytest.ReasonGivenUp || !letters[0].Since.Equal(last) {
			t.Errorf("%s: the dead-letter queue has %+v", c.why, letters)
		}
	}
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
