package zeltapaytest_test

import (
	"testing"
	"time"

	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

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
	for _, c := range []struct {
		why           string
		format, other zeltapay.Format
	}{
		{"not chosen", zeltapay.FormatAny, zeltapay.FormatPlain},
		{"the page on signatures", zeltapay.FormatPrefixed, zeltapay.FormatPlain},
		{"the quick start", zeltapay.FormatPlain, zeltapay.FormatPrefixed},
	} {
		for _, bare := range []bool{false, true} {
			re := answering(200)
			fake := fakeFor(t, re)
			fake.Format, fake.BareSignature = c.format, bare
			fake.Emit(named("evt_1"))
			fake.Settle()
			verifier := zeltapay.Verifier{Secrets: []string{secret}, SignedFormat: c.format, Now: fake.Now, AllowBareSignature: bare}
			if err := verifier.Verify(re.got[0].header, []byte(re.got[0].body)); err != nil {
				t.Errorf("%s, bare %t: %v", c.why, bare, err)
			}
			verifier.SignedFormat = c.other
			if verifier.Verify(re.got[0].header, []byte(re.got[0].body)) == nil {
				t.Errorf("%s, bare %t: it verifies in another format", c.why, bare)
			}
			verifier.SignedFormat, verifier.AllowBareSignature = c.format, false
			if err := verifier.Verify(re.got[0].header, []byte(re.got[0].body)); (err != nil) != bare {
				t.Errorf("%s, bare %t: as t=…, v1=… it gives %v", c.why, bare, err)
			}
		}
	}
}

func TestFormatOfTheKnownVector(t *testing.T) {
	t.Parallel()
	re := answering(200)
	fake := zeltapaytest.New()
	defer fake.Close()
	fake.AddWebhook(zeltapaytest.Webhook{Secret: "test_secret_not_from_docs", Handler: re})
	fake.Start, fake.BareSignature = time.Unix(1640995200, 0), true
	fake.Emit([]byte(`{}`))
	fake.Advance(day)
	same(t, "the signature", "ef7619df883a7b13a0700ff184c0827cc2a21dddadba3fa68089f688d2cd026d", re.got[0].header.Get("Zeltapay-Signature"))
}

func TestAttemptsMayCountFromZero(t *testing.T) {
	t.Parallel()
	re := answering(503, 503, 200)
	fake := fakeFor(t, re)
	fake.FirstAttempt = 0
	fake.Emit(named("evt_1"))
	fake.Advance(day)
	same(t, "the headers", []string{"0", "1", "2"}, []string{re.got[0].attempt, re.got[1].attempt, re.got[2].attempt})
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

func TestSignedOnceALateRetryIsStale(t *testing.T) {
	t.Parallel()
	fake := onClock(t)
	fake.SignOnce = true
	losing(fake)
	fake.Emit(named("evt_1"))
	fake.Advance(day)
	letters := fake.DeadLetters()
	if len(letters) != 1 || letters[0].Reason != zeltapaytest.ReasonRejected || letters[0].Attempts != 7 {
		t.Errorf("the dead-letter queue has %+v", letters)
	}
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
		own := zeltapay.Verifier{Secrets: []string{secret}, Now: clock, Tolerance: time.Second}
		if err := own.Verify(got.header, []byte(got.body)); err != nil {
			t.Errorf("attempt %d: %v", i+1, err)
		}
	}
	same(t, "the ids", []string{"evt_1", "evt_1"}, re.ids())
}
