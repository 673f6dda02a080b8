package provider_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/provider"
	"github.com/paghooks/paghooks/zeltapay"
)

const (
	vectorSecret = "test_secret_not_from_docs"
	vectorPing   = `{"eventId":"evt_1","type":"webhook.ping","ok":true,"sentAt":"2022-01-01T00:00:00.000Z"}`
)

var vectorTime = time.Unix(1640995200, 0)

// stamped is a receiver of signatures with a time: Zelta Pay's have one.
type stamped struct {
	scheme provider.Scheme // zeltapay.SchemeHMAC by default
	secret string
	strict bool
	now    time.Time // time.Now by default
}

func (s stamped) verify(h http.Header, body []byte) error {
	d := zeltapay.NewDispatcher(s.secret)
	if s.scheme != nil {
		d.Scheme = s.scheme
	}
	if !s.now.IsZero() {
		d.Now = func() time.Time { return s.now }
	}
	d.StrictHeaders = s.strict
	return d.Verify(h, body)
}

// header is a delivery's headers with the signature as given.
func header(signature, timestamp string) http.Header {
	h := make(http.Header)
	h.Set("Zeltapay-Signature", signature)
	if timestamp != "" {
		h.Set("Zeltapay-Timestamp", timestamp)
	}
	return h
}

// reasonOf returns the reason of a refusal, "" without one.
func reasonOf(t *testing.T, err error) idem.Reason {
	t.Helper()
	if err == nil {
		return ""
	}
	refusal, ok := errors.AsType[*idem.Refusal](err)
	if !ok || refusal.Hint == "" {
		t.Fatalf("got %v, want a refusal with a hint", err)
	}
	return refusal.Reason
}

func TestSignatureHeaderIsReadTolerantly(t *testing.T) {
	t.Parallel()
	const right, wrong = "ef7619df883a7b13a0700ff184c0827cc2a21dddadba3fa68089f688d2cd026d",
		"0000000000000000000000000000000000000000000000000000000000000000"
	many := strings.Repeat(",v1="+wrong, 7)
	for _, c := range []struct {
		why, signature string
		want           idem.Reason
	}{
		{"as documented", "t=1640995200, v1=" + right, ""},
		{"without the space", "t=1640995200,v1=" + right, ""},
		{"in the other order", "v1=" + right + ",t=1640995200", ""},
		{"with tabs", "t=1640995200,\tv1=" + right + "\t", ""},
		{"unknown keys are for newer readers", "t=1640995200,v0=x,v1=" + right + ",alg", ""},
		{"two v1, the second right: a rotation", "t=1640995200,v1=" + wrong + ",v1=" + right, ""},
		{"eight v1", "t=1640995200" + many + ",v1=" + right, ""},
		{"nine v1 are too many", "t=1640995200" + many + ",v1=" + wrong + ",v1=" + right, provider.ReasonMalformedSignature},
		{"only wrong ones", "t=1640995200" + many, provider.ReasonWrongSignature},
		{"the time changed", "t=1640995201,v1=" + right, provider.ReasonWrongSignature},
		{"a leading zero is another text", "t=01640995200,v1=" + right, provider.ReasonWrongSignature},
		{"two times", "t=1640995200,t=1640995200,v1=" + right, provider.ReasonMalformedSignature},
		{"no time", "v1=" + right, provider.ReasonMalformedSignature},
		{"no v1", "t=1640995200", provider.ReasonMalformedSignature},
		{"upper case keys are other keys", "T=1640995200,V1=" + right, provider.ReasonMalformedSignature},
		{"a short v1", "t=1640995200,v1=" + right[:62], provider.ReasonMalformedSignature},
		{"a v1 that is not hexadecimal", "t=1640995200,v1=" + right[:63] + "g", provider.ReasonMalformedSignature},
		{"one good v1 does not excuse a bad one", "t=1640995200,v1=abc,v1=" + right, provider.ReasonMalformedSignature},
		{"bare digits are not the default", right, provider.ReasonMalformedSignature},
		{"huge", "t=1640995200,v1=" + right + strings.Repeat(",", 1000), provider.ReasonMalformedSignature},
		{"not ASCII", "t=1640995200,v1=" + right[:60] + "éé", provider.ReasonMalformedSignature},
		{"NUL", "t=1640995200\x00,v1=" + right, provider.ReasonMalformedTimestamp},
		{"empty", "", provider.ReasonMissingSignature},
	} {
		receiver := stamped{secret: vectorSecret, now: vectorTime}
		if got := reasonOf(t, receiver.verify(header(c.signature, ""), []byte(`{}`))); got != c.want {
			t.Errorf("%s: got %q, want %q", c.why, got, c.want)
		}
	}
}

func TestTimestampsAreUnixSecondsInDigits(t *testing.T) {
	t.Parallel()
	for _, timestamp := range []string{
		"-1640995200", "+1640995200", "1_640_995_200", "1640995200.0", "0x61cf9980", "16409952e2",
		" 1640995200", "١٦٤٠٩٩٥٢٠٠", "1640995200000000", "99999999999999999999",
	} {
		h := header("t="+timestamp+", v1="+strings.Repeat("0", 64), "")
		if got := reasonOf(t, zeltapay.Verify(h, nil, "secret")); got != provider.ReasonMalformedTimestamp {
			t.Errorf("t=%s: got %q", timestamp, got)
		}
	}
}

func TestToleranceHoldsBothWays(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for _, c := range []struct {
		why       string
		tolerance time.Duration
		age       time.Duration
		want      idem.Reason
	}{
		{"just now", 0, 0, ""},
		{"the last moment", 0, 300 * time.Second, ""},
		{"too late", 0, 300*time.Second + ms, provider.ReasonStale},
		{"a clock that is behind", 0, -300 * time.Second, ""},
		{"a clock that is too far behind", 0, -300*time.Second - ms, provider.ReasonFuture},
		{"a tighter tolerance", time.Second, 2 * time.Second, provider.ReasonStale},
		{"a wider tolerance", time.Hour, time.Hour, ""},
		{"a negative tolerance accepts nothing", -time.Second, 0, provider.ReasonStale},
	} {
		h := make(http.Header)
		zeltapay.Sign(h, []byte(`{}`), "secret", vectorTime)
		scheme := zeltapay.SchemeHMAC
		scheme.Tolerance = c.tolerance
		receiver := stamped{scheme: scheme, secret: "secret", now: vectorTime.Add(c.age)}
		if got := reasonOf(t, receiver.verify(h, []byte(`{}`))); got != c.want {
			t.Errorf("%s: got %q, want %q", c.why, got, c.want)
		}
	}
}

func TestHeadersThatTheBodyDoesNotHaveAreNotRefused(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{}`, `[]`, `not JSON`, `{"eventId":5,"type":null}`, ``} {
		h := make(http.Header)
		zeltapay.Sign(h, []byte(body), "secret", time.Now())
		h.Set("Zeltapay-Event-Id", "evt_1")
		h.Set("Zeltapay-Event-Type", "payment.success")
		strict := stamped{secret: "secret", strict: true}
		if err := strict.verify(h, []byte(body)); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestRepeatedHeadersAreRefusedWhereTheyCount(t *testing.T) {
	t.Parallel()
	for name, counts := range map[string]bool{
		"Zeltapay-Signature": true, "Zeltapay-Timestamp": false, "Zeltapay-Event-Id": false, "Zeltapay-Event-Type": false,
	} {
		h := make(http.Header)
		zeltapay.Sign(h, []byte(vectorPing), "secret", time.Now())
		h.Add(name, h.Get(name))
		for _, strict := range []bool{false, true} {
			want := idem.Reason("")
			if counts || strict {
				want = provider.ReasonDuplicateHeader
			}
			receiver := stamped{secret: "secret", strict: strict}
			if got := reasonOf(t, receiver.verify(h, []byte(vectorPing))); got != want {
				t.Errorf("%s twice, strict %t: got %q, want %q", name, strict, got, want)
			}
		}
	}
}

func TestBareSignatureNeedsOptInAndATimestamp(t *testing.T) {
	t.Parallel()
	const plain = "4bd34483934445fa319b2550e2fd7cb2fa81aee367ce6f2705b6482abcecfd85"
	for _, c := range []struct {
		why, signature, timestamp string
		allow                     bool
		want                      idem.Reason
	}{
		{"allowed", plain, "1640995200", true, ""},
		{"allowed, upper case", strings.ToUpper(plain), "1640995200", true, ""},
		{"not allowed", plain, "1640995200", false, provider.ReasonMalformedSignature},
		{"without time", plain, "", true, provider.ReasonMissingTimestamp},
		{"with another time", plain, "1640995201", true, provider.ReasonWrongSignature},
		{"with a time in words", plain, "now", true, provider.ReasonMalformedTimestamp},
		{"old, and signed at another time: the time is judged once the code is right", plain, "1640994000", true, provider.ReasonWrongSignature},
		{"neither of the two", plain[:63], "1640995200", true, provider.ReasonMalformedSignature},
	} {
		scheme := zeltapay.SchemeHMAC
		if c.allow {
			scheme = zeltapay.SchemeHMAC2
		}
		receiver := stamped{scheme: scheme, secret: vectorSecret, now: vectorTime}
		if got := reasonOf(t, receiver.verify(header(c.signature, c.timestamp), []byte(`{}`))); got != c.want {
			t.Errorf("%s: got %q, want %q", c.why, got, c.want)
		}
	}
}
