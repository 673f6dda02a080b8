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
