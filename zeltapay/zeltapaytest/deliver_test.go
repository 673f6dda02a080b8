package zeltapaytest_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

func TestEventsEndAsAnswersAndFaultsHaveIt(t *testing.T) {
	t.Parallel()
	const lost, duplicate, concurrent = zeltapaytest.LostAnswer, zeltapaytest.Duplicate, zeltapaytest.Concurrent
	for _, c := range []struct {
		why    string
		status []int
		faults []zeltapaytest.Fault
		more   []byte // an event behind evt_1
		want   []string
	}{
		{why: "retries stop at the first 2xx", status: []int{500, 408, 429, 204, 500}, want: []string{
			"01 00:00:00 failed evt_1, attempt 1: 500, next in 5s",
			"01 00:00:05 failed evt_1, attempt 2: 408, next in 10s",
			"01 00:00:15 failed evt_1, attempt 3: 429, next in 20s",
			"01 00:00:35 delivered evt_1, attempt 4: 204",
		}},
		{why: "a status that is not retried parks at once", status: []int{503, 422}, want: []string{
			"01 00:00:00 failed evt_1, attempt 1: 503, next in 5s",
			"01 00:00:05 failed evt_1, attempt 2: 422",
			"01 00:00:05 dead-lettered evt_1, attempt 2: the answer is not retried",
		}},
		{why: "faults hit the next attempts", status: []int{200}, faults: []zeltapaytest.Fault{0, lost, lost | duplicate}, more: named("evt_2"), want: []string{
			"01 00:00:00 delivered evt_1, attempt 1: 200",
			"01 00:00:00 failed evt_2, attempt 1: 200, the answer was lost, next in 5s",
			"01 00:00:05 failed evt_2, attempt 2: 200, the answer was lost, next in 10s",
			"01 00:00:05 copied evt_2, attempt 2: 200, the answer was lost",
			"01 00:00:15 delivered evt_2, attempt 3: 200",
		}},
		{why: "the copy would park it", status: []int{200, 400}, faults: []zeltapaytest.Fault{duplicate}, want: []string{
			"01 00:00:00 delivered evt_1, attempt 1: 200",
			"01 00:00:00 copied evt_1, attempt 1: 400",
		}},
		{why: "the copy is taken", status: []int{400, 200}, faults: []zeltapaytest.Fault{duplicate}, want: []string{
			"01 00:00:00 failed evt_1, attempt 1: 400",
			"01 00:00:00 copied evt_1, attempt 1: 200",
			"01 00:00:00 dead-lettered evt_1, attempt 1: the answer is not retried",
		}},
		{why: "two copies and one more", status: []int{503, 503, 200}, faults: []zeltapaytest.Fault{concurrent | duplicate}, want: []string{
			"01 00:00:00 failed evt_1, attempt 1: 503, next in 5s",
			"01 00:00:00 copied evt_1, attempt 1: 503",
			"01 00:00:00 copied evt_1, attempt 1: 200",
			"01 00:00:05 delivered evt_1, attempt 2: 200",
		}},
		{why: "no answer to half of a body gets back", status: []int{200}, faults: []zeltapaytest.Fault{zeltapaytest.CutBody}, want: []string{
			"01 00:00:00 failed evt_1, attempt 1: the connection broke in the body, next in 5s",
			"01 00:00:05 delivered evt_1, attempt 2: 200",
		}},
	} {
		re := answering(c.status...)
		fake := fakeFor(t, re)
		fake.Inject(c.faults...)
		fake.Emit(named("evt_1"))
		if c.more != nil {
			fake.Emit(c.more)
		}
		fake.Advance(29 * day)
		same(t, c.why, c.want, lines(fake))
		for i, got := range re.got { // copies are the same
			if first := re.got[0]; i > 0 && got.id == first.id && got.attempt == first.attempt && (got.signed != first.signed || got.body != first.body) {
				t.Errorf("%s: a copy differs: %+v", c.why, got)
			}
		}
		if faults := fake.Timeline(); len(c.faults) > 0 && c.more == nil && faults[1].Fault != c.faults[0] {
			t.Errorf("%s: the fault of the first attempt is %d", c.why, faults[1].Fault)
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

func TestDeliveriesHaveAllHeaders(t *testing.T) {
	t.Parallel()
	re := answering(503, 200)
	fake := fakeFor(t, re)
	fake.Start = time.Unix(1640995200, 0)
	fake.Emit([]byte(`{"eventId":"evt_1","type":"payment.success"}`))
	fake.Advance(day)
	for i, want := range []map[string]string{
		{"Zeltapay-Timestamp": "1640995200", "Zeltapay-Delivery-Attempt": "1"},
		{"Zeltapay-Timestamp": "1640995205", "Zeltapay-Delivery-Attempt": "2"},
	} {
		want["Content-Type"] = "application/json"
		want["Zeltapay-Event-Id"] = "evt_1"
		want["Zeltapay-Event-Type"] = "payment.success"
		for name, value := range want {
			if got := re.got[i].header.Get(name); got != value {
				t.Errorf("attempt %d: %s is %q, want %q", i+1, name, got, value)
			}
		}
	}
}

func TestSignatureIsInTheChosenFormat(t *testing.T) {
	t.Parallel()
	for _, format := range []zeltapay.Format{"", zeltapay.FormatPrefixed, zeltapay.FormatPlain} {
		re := answering(200)
		fake := fakeFor(t, re)
		fake.Format = format
		fake.Emit(named("evt_1"))
		fake.Settle()
		want := make(http.Header)
		format.Sign(want, []byte(re.got[0].body), secret, start)
		same(t, "the signature in "+string(format), want.Get("Zeltapay-Signature"), re.got[0].header.Get("Zeltapay-Signature"))
	}
}

// losing loses the answers to the first six attempts: the seventh comes 315 s after the first.
func losing(fake *zeltapaytest.Fake) {
	for range 6 {
		fake.Inject(zeltapaytest.LostAnswer)
	}
}

// onClock makes a fake with a receiver that verifies on the fake's own clock.
func onClock(t *testing.T) *zeltapaytest.Fake {
	t.Helper()
	var fake *zeltapaytest.Fake
	fake = fakeFor(t, verifying(func() time.Time { return fake.Now() }))
	return fake
}

func TestEveryAttemptVerifiesOnTheFakesClock(t *testing.T) {
	t.Parallel()
	fake := onClock(t)
	losing(fake)
	fake.Emit(named("evt_1"))
	fake.Advance(day)
	same(t, "the attempts", seconds(0, 5, 15, 35, 75, 155, 315), attempts(fake))
	same(t, "the end", "01 00:05:15 delivered evt_1, attempt 7: 200", lines(fake)[6])
}

func TestSigningTimeServesAReceiverWithAClockOfItsOwn(t *testing.T) {
	t.Parallel()
	clock := func() time.Time { return time.Unix(1640995200, 0) }
	re := answering(401, 200)
	fake := fakeFor(t, re)
	fake.SigningTime = clock
	fake.Emit(named("evt_1"))
	fake.Advance(20 * day)
	fake.ReplayAll()
	fake.Settle()
	for i, got := range re.got {
		if err := on(clock, secret).Verify(got.header, []byte(got.body)); err != nil {
			t.Errorf("attempt %d: %v", i+1, err)
		}
	}
	same(t, "the ids", []string{"evt_1", "evt_1"}, re.ids())
}

func TestAWebhookGetsTheEventsItSubscribesTo(t *testing.T) {
	t.Parallel()
	all, pings, none := answering(200), answering(200), answering(200)
	fake := fakeFor(t, all)
	fake.AddWebhook(zeltapaytest.Webhook{Secret: secret, Handler: pings, Events: []zeltapay.EventType{"webhook.ping"}})
	fake.AddWebhook(zeltapaytest.Webhook{Secret: secret, Handler: none, Events: []zeltapay.EventType{}})
	fake.Emit(
		named("evt_1"),
		zeltapaytest.Event("webhook.ping", zeltapaytest.Set("eventId", "evt_2")),
		zeltapaytest.Event("webhook.ping", zeltapaytest.Set("eventId", "evt_3"), zeltapaytest.Set("type", "newer")),
	)
	fake.Settle()
	same(t, "of all", []string{"evt_1", "evt_2", "evt_3"}, all.ids())
	same(t, "of the pings", []string{"evt_2"}, pings.ids())
	same(t, "of none", []string(nil), none.ids())
}

func TestWebhooksHaveRetriesAndSecretsOfTheirOwn(t *testing.T) {
	t.Parallel()
	up, down := answering(200), answering(503, 503, 204)
	fake := fakeFor(t, up)
	fake.AddWebhook(zeltapaytest.Webhook{URL: "http://other.example/hooks", Secret: "other", Handler: down})
	fake.Emit(named("evt_1"))
	fake.Advance(day)
	same(t, "of the first", []string{"evt_1"}, up.ids())
	same(t, "of the second", []string{"evt_1", "evt_1", "evt_1"}, down.ids())
	other := on(func() time.Time { return start }, "other")
	if err := other.Verify(down.got[0].header, []byte(down.got[0].body)); err != nil {
		t.Error(err)
	}
	if other.Verify(up.got[0].header, []byte(up.got[0].body)) == nil {
		t.Error("the first webhook's event is signed with the second's secret")
	}
	var urls []string
	for _, e := range fake.Timeline() {
		if e.Kind == zeltapaytest.Delivered {
			urls = append(urls, e.URL)
		}
	}
	same(t, "the URLs", []string{"http://receiver.example/webhooks/zeltapay", "http://other.example/hooks"}, urls)
}

func TestABodyWithoutAnIDKeepsTheOneOfItsHeader(t *testing.T) {
	t.Parallel()
	re := answering(503, 200)
	fake := fakeFor(t, re)
	body := zeltapaytest.Nested.Event("payment.success", zeltapaytest.Delete("eventId"))
	fake.Emit(body, body)
	fake.Advance(day)
	ids := re.ids()
	if len(ids) != 3 || ids[0] == "" || ids[0] != ids[2] || ids[1] == ids[0] {
		t.Errorf("two events have the ids %q", ids)
	}
}
