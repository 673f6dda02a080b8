package zeltapay_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

// Zelta Pay signs the body, and gives an event up that is answered with another 4xx than 408 and 429: what cannot be
// the body that it signed is asked for again. A stranger can send the same, so it is no failed delivery.
func TestAlteredBodyIsAskedForAgain(t *testing.T) {
	t.Parallel()
	pool, shop := shop(t)
	event := zeltapaytest.Event("payment.success")
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	if _, err := w.Write(event); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		why, body, answer string
		status            int
	}{
		{"drained", "", "empty_body", 503},
		{"a line break", "\r\n", "empty_body", 503},
		{"compressed", zipped.String(), "wrong_signature", 503},
		{"base64", base64.StdEncoding.EncodeToString(event), "wrong_signature", 503},
		{"cut off", string(event[:len(event)/2]), "wrong_signature", 503},
		{"an array", "[" + string(event) + "]", "wrong_signature", 503},
		{"a page", "<html></html>", "wrong_signature", 503},
		{"null", "null", "wrong_signature", 503},
		{"an envelope, which may be a forgery", `{"data":` + string(event) + `}`, "wrong_signature", 401},
		{"formatted anew", string(event) + " ", "wrong_signature", 401},
	} {
		front := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(row.body)), int64(len(row.body))
			shop.ServeHTTP(w, r)
		})
		server := httptest.NewServer(front)
		for range 10 {
			status, answer := sent(t, server.URL, string(event), func(http.Header) {})
			if want := `{"received":false,"reason":"` + row.answer + `"}`; status != row.status || answer != want {
				t.Errorf("%s: answered %d %s, want %d %s", row.why, status, answer, row.status, want)
			}
		}
		server.Close()
	}
	if n := count(t, pool, "idem_events"); n != 0 {
		t.Errorf("%d events are stored", n)
	}
	h := health.New(shop.(*idem.Inbox))
	h.Logger = nil
	for _, c := range h.Report().Checks {
		if !c.Healthy {
			t.Errorf("strangers can do that: health says %+v", c)
		}
		if c.Name == "refused" && !strings.HasPrefix(c.Says, "100 were refused") {
			t.Errorf("health says %q", c.Says)
		}
	}
	if status, answer := deliver(shop, event, "secret"); status != http.StatusOK {
		t.Errorf("as Zelta Pay sent it: answered %d %s", status, answer)
	}
}

// Zelta Pay itself has signed these.
func TestSignedBodyThatNamesNoEventIsParked(t *testing.T) {
	t.Parallel()
	for body, status := range map[string]int{
		`{}`: 200, `[]`: 200, `null`: 200, `{"data":{"type":"payment.success"}}`: 200, `{"eventId":"evt_1","type":null}`: 200, ``: 503, ` `: 503,
	} {
		pool, shop := shop(t)
		for range 2 {
			if got, answer := deliver(shop, []byte(body), "secret"); got != status || strings.Contains(answer, "duplicate") {
				t.Errorf("%q: answered %d %s, want %d", body, got, answer, status)
			}
		}
		want := 2
		if status != 200 {
			want = 0
		}
		if all, parked := count(t, pool, "idem_events"), count(t, pool, "idem_events where state = 'parked'"); all != want || parked != want {
			t.Errorf("%q: %d events, of which %d are parked, want %d", body, all, parked, want)
		}
	}
}
