package zeltapay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

// sent posts a signed body after change has been at its headers, and returns the
// status and the answer.
func sent(t *testing.T, url, body string, change func(http.Header)) (status int, answer string) {
	t.Helper()
	r := zeltapaytest.Request(url, "secret", []byte(body)).WithContext(t.Context())
	change(r.Header)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// A genuine body is read, or kept unread, whatever is in it. These are about
// as large as an inbox takes by default.
//
// It does not run in parallel: others would use memory meanwhile.
func TestHostileBodiesAreReadInBoundedMemory(t *testing.T) {
	const much = 1_000_000 // bytes
	fill := func(s string) string { return strings.Repeat(s, much/len(s)) }
	var keys strings.Builder
	for i := 0; keys.Len() < much; i++ {
		fmt.Fprintf(&keys, `"%x":0,`, i)
	}
	const head = `{"eventId":"evt_1","type":"payment.success","paymentLinkId":"pl_1","transaction":{"externalPaymentId":"p","amount":100`
	for _, c := range []struct {
		why, body string
		state     idem.State
		atMost    uint64 // MB, what is free again included
	}{
		{"100,000 keys", head + `},"metadata":{` + keys.String() + `"k":0}}`, idem.StateDone, 200},
		{"one key again and again", head + fill(`,"id":"t"`) + `}}`, idem.StateDone, 40},
		{"9,000 levels", head + `},"x":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`, idem.StateDone, 40},
		{"11,000 levels", head + `},"x":` + strings.Repeat("[", 11000) + strings.Repeat("]", 11000) + `}`, idem.StateParked, 40},
		{"levels without end", `{"type":` + fill("["), idem.StateParked, 40},
		{"an amount of a million digits", strings.Replace(head, `"amount":100`, `"amount":`+fill("9"), 1) + `}}`, idem.StateParked, 40},
		{"a long id", strings.Replace(head, "evt_1", fill("9"), 1) + `}}`, idem.StateDone, 40},
	} {
		t.Run(c.why, func(t *testing.T) {
			pool, inbox := shop(t)
			inbox.(*idem.Inbox).Timeout = time.Minute // for -race on a slow machine
			server := httptest.NewServer(inbox)
			defer server.Close()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			status, answer := sent(t, server.URL, c.body, func(h http.Header) {
				h.Del("Zeltapay-Event-Id") // a header may not be as long as the id
			})
			runtime.ReadMemStats(&after)
			if took := (after.TotalAlloc - before.TotalAlloc) >> 20; status != http.StatusOK || took > c.atMost {
				t.Errorf("answered %d %s with %d MB allocated, want 200 with at most %d", status, answer, took, c.atMost)
			}
			var state idem.State
			if err := pool.QueryRow(t.Context(), `select state from idem_events`).Scan(&state); err != nil || state != c.state {
				t.Errorf("it is stored as %s, %v, want %s", state, err, c.state)
			}
		})
	}
}

// Of a signed delivery, a header that is added or changed can at most refuse it:
// what is opened is what the signed body alone says.
func FuzzOpen(f *testing.F) {
	for _, name := range bodies(f) {
		f.Add(read(f, name), "Zeltapay-Event-Id", "evt_other")
	}
	f.Add([]byte(`{"eventId":"evt_1","type":"webhook.ping"}`), "zeltapay-event-type", "payment.success")
	f.Add([]byte(`{"type":"webhook.ping"}`), "Zeltapay-Event-Id", "evt_2")
	f.Add([]byte(`{}`), "ZELTAPAY-SIGNATURE", "t=1,v1=")
	f.Add([]byte("\x00"), "Zeltapay-Timestamp", "1")
	f.Fuzz(func(t *testing.T, body []byte, name, value string) {
		events := zeltapay.NewDispatcher("secret")
		events.Now = at(vectorTime)
		r := httptest.NewRequest("POST", "/", nil)
		zeltapay.Sign(r.Header, body, "secret", vectorTime)
		want := zeltapay.Identify(body)
		if got, err := events.Open(withBody(r, body)); err != nil || cmp.Diff(want, got) != "" {
			t.Fatalf("as it was signed: %v\n%s", err, cmp.Diff(want, got))
		}
		r.Header[name] = append(r.Header[name], value)
		got, err := events.Open(withBody(r, body))
		if err == nil {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("with %s: %q it is another event:\n%s", name, value, diff)
			}
			return
		}
		var refusal *idem.Refusal
		if !errors.As(err, &refusal) || refusal.Reason == idem.ReasonNotConfigured {
			t.Errorf("it is refused for %v", err)
		}
		if !strings.HasPrefix(strings.ToLower(name), "zeltapay-") {
			t.Errorf("%s: %q refuses it: %v", name, value, err)
		}
	})
}

// A value of the metadata is text or nothing, and all of it is storable.
func FuzzMetadata(f *testing.F) {
	for _, data := range []string{
		`{"orderId":"1001"}`, `{"orderId":1001.50}`, `{"orderId":null}`, `{"orderId":{"a":[]}}`, `{"orderId":true}`,
		`{"orderId": "\ud800\u0000"}`, `{"orderId":1e400}`, `null`, `{}`,
	} {
		f.Add([]byte(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m zeltapay.Metadata
		if json.Unmarshal(data, &m) != nil {
			return
		}
		for key, raw := range m {
			var want any
			if err := json.Unmarshal(raw, &want); err != nil && !json.Valid(raw) {
				t.Fatalf("%q is no JSON: %v", raw, err)
			}
			got, ok := m.String(key)
			switch want := want.(type) {
			case string:
				if !ok || got != want {
					t.Errorf("%s is %q, %t", raw, got, ok)
				}
			case bool:
				if !ok || got != string(raw) {
					t.Errorf("%s is %q, %t", raw, got, ok)
				}
			case map[string]any, []any:
				if ok {
					t.Errorf("%s is %q", raw, got)
				}
			}
		}
		stored, err := m.Value()
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := stored.(string); ok != (m != nil) || ok && !json.Valid([]byte(text)) {
			t.Errorf("%s is stored as %v", data, stored)
		}
	})
}
