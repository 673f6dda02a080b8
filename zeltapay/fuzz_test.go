package zeltapay_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/zeltapay"
)

// What Sign signs verifies, at that time and with that secret; with one bit of
// the body, the secret or the time changed it does not.
func FuzzSignedDeliveries(f *testing.F) {
	f.Add([]byte(`{"eventId":"evt_1","type":"webhook.ping"}`), "secret", uint64(1640995200), false, uint(3))
	f.Add([]byte("not JSON \x00\xff"), "\xff", uint64(0), true, uint(900))
	f.Add([]byte{}, " ", uint64(1), true, uint(0))
	f.Fuzz(func(t *testing.T, body []byte, secret string, seconds uint64, plain bool, bit uint) {
		signedAt := time.Unix(int64(seconds%1e12), 0)
		format := zeltapay.FormatPrefixed
		if plain {
			format = zeltapay.FormatPlain
		}
		h := make(http.Header)
		format.Sign(h, body, secret, signedAt)
		verify := func(h http.Header, body []byte, secret string) idem.Reason {
			receiver := verifier{Secrets: []string{secret}, Now: at(signedAt)}
			return reason(t, receiver.Verify(h, body))
		}

		if strings.TrimSpace(secret) == "" {
			if got := verify(h, body, secret); got != idem.ReasonNotConfigured {
				t.Fatalf("a blank secret: got %q", got)
			}
			return
		}
		if got := verify(h, body, secret); got != "" {
			t.Fatalf("refused as %s", got)
		}
		if got := verify(h, body, flipped(secret, bit)); got == "" {
			t.Error("another secret verifies")
		}
		if len(body) > 0 && verify(h, []byte(flipped(string(body), bit)), secret) == "" {
			t.Error("another body verifies")
		}
		later := h.Get("Zeltapay-Timestamp") + "0"
		h.Set("Zeltapay-Signature", strings.Replace(h.Get("Zeltapay-Signature"), ", ", "0, ", 1))
		h.Set("Zeltapay-Timestamp", later)
		if verify(h, body, secret) == "" {
			t.Error("another time verifies")
		}
	})
}

func flipped(s string, bit uint) string {
	b := []byte(s)
	b[bit/8%uint(len(b))] ^= 1 << (bit % 8)
	return string(b)
}

// No header verifies that was made without the secret, and each gets a refusal.
func FuzzSignatureHeader(f *testing.F) {
	const right = "ef7619df883a7b13a0700ff184c0827cc2a21dddadba3fa68089f688d2cd026d" // of another secret's delivery
	for _, signature := range []string{"", "t=1640995200, v1=" + right, "t=1640995200,v1=" + right + ",v1=" + right, right, "t=,v1=", "t=1,t=1,v1=" + right, "=,=", ",,,"} {
		f.Add(signature, "1640995200", true)
		f.Add(signature, "", false)
	}
	f.Fuzz(func(t *testing.T, signature, timestamp string, bare bool) {
		receiver := verifier{Secrets: []string{"a secret nobody has"}, Bare: bare, Now: at(vectorTime)}
		if reason(t, receiver.Verify(header(signature, timestamp), []byte(`{}`))) == "" {
			t.Errorf("Zeltapay-Signature: %q verifies", signature)
		}
	})
}

// Every body has a name. What decodes can be encoded and decoded again and is
// still the same.
func FuzzParse(f *testing.F) {
	for _, name := range bodies(f) {
		f.Add(read(f, name))
	}
	for _, body := range []string{
		``, `null`, `[]`, `"x"`, `{}`, `{"type":5}`, `{"type":"payment.success"`, "{\"type\":\"\xff\"}",
		`{"type":"webhook.ping","TYPE":"payment.success"}`, `{"type":"payment.success","transaction":{"id":"\u0000"}}`,
		`{"TRANSACTION":{"ID":"t","id":null},"type":"payment.success","eventId":"a","eventid":null,"transaction":{"completedAt":"2025-01-15T10:30:00Z"}}`,
		`{"type":"payment.success","paymentLink":{"id":"a"},"paymentLinkId":"b","paymentLink":{},"transaction":{"id":"c"},"transaction":null}`,
		`{"type":"payment.success","metadata":{"n":1e400,"<":"\u2028"}}`, `{"type":"payment.success","transaction":{"amount":1.5}}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		named := zeltapay.Identify(body)
		if named.ID == "" || named.Source != "zeltapay" || !bytes.Equal(named.Payload, body) {
			t.Fatalf("named %+v", named)
		}
		e, err := zeltapay.Parse(body)
		if err != nil {
			return
		}
		if json.Unmarshal(body, new(zeltapay.Envelope)) != nil {
			return // an unknown event, which may use these names for something else
		}
		if diff := cmp.Diff(zeltapay.HeadIn(e, body), named); diff != "" {
			t.Errorf("%q is decoded as another event than it is named (-decoded +named):\n%s", body, diff)
		}
		if once, twice := encoded(t, e), encoded(t, parsed(t, encoded(t, e))); !bytes.Equal(once, twice) {
			t.Errorf("encoded once:\n%s\nand twice:\n%s", once, twice)
		}
	})
}

// An amount is the exact value of what was written, or refused.
func FuzzCents(f *testing.F) {
	for _, s := range []string{
		`1500`, `1500.0`, `"1500"`, `"1500.00"`, `-1`, `0`, `1500.5`, `1e3`, `9223372036854775807`, `9223372036854775808`,
		`null`, `true`, `""`, `"-"`, `"."`, `"1."`, `"1_0"`, `" 1"`, `"0x10"`, `{}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var c zeltapay.Cents
		if json.Unmarshal([]byte(text), &c) != nil || strings.TrimSpace(text) == "null" {
			return
		}
		exact, ok := new(big.Rat).SetString(strings.TrimSuffix(strings.Trim(strings.TrimSpace(text), `"`), "."))
		if !ok || exact.Cmp(new(big.Rat).SetInt64(int64(c))) != 0 {
			t.Errorf("%s became %d", text, c)
		}
	})
}

// A time keeps its letters, whatever they are, and never stands for two
// instants.
func FuzzTime(f *testing.F) {
	for _, s := range []string{"2025-01-15T10:30:00.000Z", "2025-01-15t10:30:00z", "2025-01-15 10:30:00,5-05", "2025-01-15T10:30:00", "yesterday", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sent := zeltapay.Time(text)
		if instant, err := sent.Time(); err == nil {
			again, err := zeltapay.Time(instant.Format(time.RFC3339Nano)).Time()
			if err != nil || !again.Equal(instant) {
				t.Errorf("%q is %v and then %v, %v", text, instant, again, err)
			}
		}
		var kept zeltapay.Time
		if err := json.Unmarshal(encoded(t, sent), &kept); utf8.ValidString(text) && (err != nil || kept != sent) {
			t.Errorf("%q became %q, %v", text, kept, err)
		}
	})
}

// bodies are the files of testdata.
func bodies(t testing.TB) []string {
	t.Helper()
	names, err := filepath.Glob("testdata/*.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("no bodies in testdata: %v", err)
	}
	return names
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func parsed(t testing.TB, body []byte) zeltapay.Event {
	t.Helper()
	e, err := zeltapay.Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func encoded(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
