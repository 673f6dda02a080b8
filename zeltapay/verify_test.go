package zeltapay_test

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

func at(t time.Time) func() time.Time { return func() time.Time { return t } }

// header is a delivery's headers with the signature as given.
func header(signature, timestamp string) http.Header {
	h := make(http.Header)
	h.Set("Zeltapay-Signature", signature)
	if timestamp != "" {
		h.Set("Zeltapay-Timestamp", timestamp)
	}
	return h
}

// reason is why a delivery was refused, or "" for a genuine one.
func reason(t *testing.T, err error) idem.Reason {
	t.Helper()
	var refusal *idem.Refusal
	if err != nil && !errors.As(err, &refusal) {
		t.Fatalf("got %v, want a refusal", err)
	}
	if refusal == nil {
		return ""
	}
	if refusal.Source != "zeltapay" || refusal.Hint == "" {
		t.Errorf("the refusal %q has source %q and hint %q", refusal.Reason, refusal.Source, refusal.Hint)
	}
	return refusal.Reason
}

// Zelta Pay publishes no vectors. These were computed with OpenSSL.
func TestVectorsOfBothFormatsVerify(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		body   string
		format zeltapay.Format
		other  zeltapay.Format
		hex    string
	}{
		{`{}`, zeltapay.FormatPrefixed, zeltapay.FormatPlain, "ef7619df883a7b13a0700ff184c0827cc2a21dddadba3fa68089f688d2cd026d"},
		{`{}`, zeltapay.FormatPlain, zeltapay.FormatPrefixed, "4bd34483934445fa319b2550e2fd7cb2fa81aee367ce6f2705b6482abcecfd85"},
		{vectorPing, zeltapay.FormatPrefixed, zeltapay.FormatPlain, "11d40f3ba9c709d2ee254ebe09c660d09b35a0227db431bae56244b7f28120e6"},
		{vectorPing, zeltapay.FormatPlain, zeltapay.FormatPrefixed, "22b3f408d295482027442127461ba28e5f53f4b7d44b77624c44a3e81889aeef"},
	} {
		receiver := verifier{Secrets: []string{vectorSecret}, Now: at(vectorTime)}
		verify := func(digits string, format zeltapay.Format) idem.Reason {
			receiver.SignedFormat = format
			return reason(t, receiver.Verify(header("t=1640995200, v1="+digits, "1640995200"), []byte(v.body)))
		}
		if got := verify(v.hex, zeltapay.Format("")); got != "" {
			t.Errorf("%.20s format %q: refused as %s", v.body, v.format, got)
		}
		if got := verify(strings.ToUpper(v.hex), v.format); got != "" {
			t.Errorf("%.20s format %q pinned, upper case: refused as %s", v.body, v.format, got)
		}
		if got := verify(v.hex, v.other); got != provider.ReasonWrongSignature {
			t.Errorf("%.20s format %q pinned to the other: got %q", v.body, v.format, got)
		}
		if got := verify(v.hex, zeltapay.Format("none")); got != provider.ReasonWrongSignature {
			t.Errorf("%.20s with a format that does not exist: got %q", v.body, got)
		}
	}
}

func TestSignMakesTheDocumentedHeaders(t *testing.T) {
	t.Parallel()
	for format, want := range map[zeltapay.Format]string{
		zeltapay.Format(""):     "t=1640995200, v1=11d40f3ba9c709d2ee254ebe09c660d09b35a0227db431bae56244b7f28120e6",
		zeltapay.FormatPrefixed: "t=1640995200, v1=11d40f3ba9c709d2ee254ebe09c660d09b35a0227db431bae56244b7f28120e6",
		zeltapay.FormatPlain:    "t=1640995200, v1=22b3f408d295482027442127461ba28e5f53f4b7d44b77624c44a3e81889aeef",
	} {
		h := make(http.Header)
		format.Sign(h, []byte(vectorPing), vectorSecret, vectorTime)
		for name, want := range map[string]string{
			"Zeltapay-Signature":  want,
			"Zeltapay-Timestamp":  "1640995200",
			"Zeltapay-Event-Id":   "evt_1",
			"Zeltapay-Event-Type": "webhook.ping",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("format %q: %s is %q, want %q", format, name, got, want)
			}
		}
	}
}

func TestEmptySecretNeverVerifies(t *testing.T) {
	t.Parallel()
	body := []byte(`{}`)
	for _, blank := range []string{"", " ", "\n"} {
		for _, format := range []zeltapay.Format{zeltapay.FormatPrefixed, zeltapay.FormatPlain} {
			h := make(http.Header)
			format.Sign(h, body, blank, time.Now())
			if got := reason(t, zeltapay.Verify(h, body, blank)); got != idem.ReasonNotConfigured {
				t.Errorf("the secret %q alone: got %q", blank, got)
			}
			if got := reason(t, zeltapay.Verify(h, body, blank, "real")); got != provider.ReasonWrongSignature {
				t.Errorf("the secret %q beside a real one: got %q", blank, got)
			}
		}
	}
	if got := reason(t, zeltapay.Verify(http.Header{}, body)); got != idem.ReasonNotConfigured {
		t.Errorf("no secret at all: got %q", got)
	}
}

func TestEitherSecretVerifiesDuringARotation(t *testing.T) {
	t.Parallel()
	body := []byte(`{}`)
	for _, secret := range []string{"old", "new"} {
		h := make(http.Header)
		zeltapay.Sign(h, body, secret, time.Now())
		if err := zeltapay.Verify(h, body, "new", "", "old"); err != nil {
			t.Errorf("signed with the %s secret: %v", secret, err)
		}
	}
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
		receiver := verifier{Secrets: []string{vectorSecret}, Now: at(vectorTime)}
		if got := reason(t, receiver.Verify(header(c.signature, ""), []byte(`{}`))); got != c.want {
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
		if got := reason(t, zeltapay.Verify(h, nil, "secret")); got != provider.ReasonMalformedTimestamp {
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
		receiver := verifier{Secrets: []string{"secret"}, Tolerance: c.tolerance, Now: at(vectorTime.Add(c.age))}
		if got := reason(t, receiver.Verify(h, []byte(`{}`))); got != c.want {
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
		strict := verifier{Secrets: []string{"secret"}, StrictHeaders: true}
		if err := strict.Verify(h, []byte(body)); err != nil {
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
			receiver := verifier{Secrets: []string{"secret"}, StrictHeaders: strict}
			if got := reason(t, receiver.Verify(h, []byte(vectorPing))); got != want {
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
		receiver := verifier{Secrets: []string{vectorSecret}, Bare: c.allow, Now: at(vectorTime)}
		if got := reason(t, receiver.Verify(header(c.signature, c.timestamp), []byte(`{}`))); got != c.want {
			t.Errorf("%s: got %q, want %q", c.why, got, c.want)
		}
	}
}

func TestEveryChangedBitIsRefused(t *testing.T) {
	t.Parallel()
	const secret, body, digits = "whsec_0123456789", `{"amount":1500}`, "1640995200"
	h := make(http.Header)
	zeltapay.Sign(h, []byte(body), secret, vectorTime)
	sum := strings.TrimPrefix(h.Get("Zeltapay-Signature"), "t=1640995200, v1=")
	verify := func(secret, body, digits string) error {
		receiver := verifier{Secrets: []string{secret}, Now: at(vectorTime), Tolerance: 1 << 62}
		return receiver.Verify(header("t="+digits+",v1="+sum, ""), []byte(body))
	}
	if err := verify(secret, body, digits); err != nil {
		t.Fatal(err)
	}
	flip := func(what, s string, verify func(changed string) error) {
		for bit := range 8 * len(s) {
			changed := []byte(s)
			changed[bit/8] ^= 1 << (bit % 8)
			if verify(string(changed)) == nil {
				t.Errorf("the %s %q with bit %d changed verifies", what, s, bit)
			}
		}
	}
	flip("secret", secret, func(s string) error { return verify(s, body, digits) })
	flip("body", body, func(s string) error { return verify(secret, s, digits) })
	flip("time", digits, func(s string) error { return verify(secret, body, s) })
}
