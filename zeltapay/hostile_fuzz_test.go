package zeltapay_test

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/zeltapay"
)

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
		events.Verifier.Now = at(vectorTime)
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
		if !errors.As(err, &refusal) || refusal.Reason == zeltapay.ReasonNotConfigured {
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
