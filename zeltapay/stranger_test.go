package zeltapay_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/zeltapay"
)

func TestRefusalsNeverShowSecretOrSignature(t *testing.T) {
	t.Parallel()
	const secret = "whsec_very_secret"
	good := make(http.Header)
	zeltapay.Sign(good, []byte(vectorPing), secret, time.Now())
	sum := good.Get("Zeltapay-Signature")[len("t=1640995200, v1="):]
	for name, values := range map[string][]string{
		"Zeltapay-Signature":  {"", sum, "t=1, v1=" + sum, "t=x, v1=" + sum, "v1=" + sum, sum + sum},
		"Zeltapay-Timestamp":  {"1", sum},
		"Zeltapay-Event-Id":   {sum, secret},
		"Zeltapay-Event-Type": {sum, secret},
	} {
		for _, value := range values {
			h := good.Clone()
			h.Set(name, value)
			err := zeltapay.Verifier{Secrets: []string{secret}, StrictHeaders: true}.Verify(h, []byte(vectorPing))
			if err == nil {
				t.Fatalf("%s: %s verifies", name, value)
			}
			if strings.Contains(err.Error(), sum) || strings.Contains(err.Error(), secret) {
				t.Errorf("%s: the refusal shows what it must not: %v", name, err)
			}
		}
	}
}

// unread is a body that must not be read.
type unread struct {
	t   *testing.T
	why string
}

func (u unread) Read([]byte) (int, error) {
	u.t.Errorf("%s: the body is read", u.why)
	return 0, io.EOF
}

func (unread) Close() error { return nil }

// What the headers alone show is not genuine costs no memory for its body.
func TestTheBodyOfAStrangerIsNotRead(t *testing.T) {
	t.Parallel()
	signature := func(text string) http.Header { return http.Header{"Zeltapay-Signature": {text}} }
	digits := strings.Repeat("0", 64)
	now := time.Now()
	for _, c := range []struct {
		why    string
		header http.Header
		secret string
	}{
		{"no signature", nil, "secret"},
		{"none of the known forms", signature("guess"), "secret"},
		{"no secret is configured", signature(fmt.Sprintf("t=%d, v1=%s", now.Unix(), digits)), ""},
	} {
		r := httptest.NewRequest(http.MethodPost, "/", unread{t, c.why})
		r.Header = c.header
		var refusal *idem.Refusal
		if _, err := zeltapay.NewDispatcher(c.secret).Open(r); !errors.As(err, &refusal) {
			t.Errorf("%s: Open = %v, want a refusal", c.why, err)
		}
	}
}
