package provider_test

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/provider"
)

var now = time.Unix(1614265330, 0)

func definition(s provider.Scheme) *provider.Definition {
	return &provider.Definition{Source: "shop", Scheme: s, Naming: provider.Naming{Type: "type"}, Empty: func(string) any { return nil }}
}

// The vector is from the specification of Standard Webhooks.
func TestStandardWebhooksVerifies(t *testing.T) {
	t.Parallel()
	const secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", `{"test": 2432232314}`
	const signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	for _, tt := range []struct {
		why, id, signature, secret string
		at                         time.Time
		want                       idem.Reason
	}{
		{"as published", "msg_p5jXN8AQM9LWM0D4loKWxJek", signature, secret, now, ""},
		{"while the key changes", "msg_p5jXN8AQM9LWM0D4loKWxJek", "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA= " + signature, secret, now, ""},
		{"another id", "msg_other", signature, secret, now, provider.ReasonWrongSignature},
		{"another secret", "msg_p5jXN8AQM9LWM0D4loKWxJek", signature, "whsec_AAAA", now, provider.ReasonWrongSignature},
		{"a secret without a key", "msg_p5jXN8AQM9LWM0D4loKWxJek", signature, "whsec_", now, idem.ReasonNotConfigured},
		{"no secret", "msg_p5jXN8AQM9LWM0D4loKWxJek", signature, "", now, idem.ReasonNotConfigured},
		{"late", "msg_p5jXN8AQM9LWM0D4loKWxJek", signature, secret, now.Add(301 * time.Second), provider.ReasonStale},
		{"early", "msg_p5jXN8AQM9LWM0D4loKWxJek", signature, secret, now.Add(-301 * time.Second), provider.ReasonFuture},
		{"of another form", "msg_p5jXN8AQM9LWM0D4loKWxJek", "v1=0", secret, now, provider.ReasonMalformedSignature},
	} {
		h := http.Header{"Webhook-Id": {tt.id}, "Webhook-Timestamp": {"1614265330"}, "Webhook-Signature": {tt.signature}}
		refused(t, tt.why, definition(provider.StandardWebhooks).Verify(h, []byte(body), tt.at, tt.secret), tt.want)
	}
}

// What is signed names an event: a redelivery with other bytes, or another time, is the same event.
func TestAnEventHasTheNamesThatHeadersSignWhereItsBodyHasNone(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	typed := provider.HMAC{
		Header: "X-Signature", Hash: crypto.SHA256, Texts: []string{"{header:X-Event}.{header:x-id}.{body}"}, IDHeader: "X-Id", TypeHeader: "X-Event",
	}
	unsigned := typed
	unsigned.Texts = []string{typed.Texts[0], "{body}"} // one text is enough for whoever makes a delivery
	misspelled := typed
	misspelled.Texts = []string{"{Header:X-Event}.{HEADER:X-Id}.{body}"} // no placeholders, so that they sign nothing
	for _, tt := range []struct {
		why       string
		scheme    provider.Scheme
		body      string
		id        string
		eventType string
		at        time.Time
	}{
		{"the id and the time of Standard Webhooks", provider.StandardWebhooks, `{"type":"user.created"}`, "msg_1", "user.created", now},
		{"the time of the body", provider.StandardWebhooks, `{"type":"user.created","timestamp":"2021-02-25T15:00:00Z"}`, "msg_1", "user.created", time.Date(2021, 2, 25, 15, 0, 0, 0, time.UTC)},
		{"the id of the body", provider.StandardWebhooks, `{"type":"user.created","id":"evt_1"}`, "evt_1", "user.created", now},
		{"an id and a type in headers", typed, `{"name":"Ana"}`, "msg_1", "user.deleted", time.Time{}},
		{"headers in a text that does not sign them", misspelled, `{"name":"Ana"}`, idem.BodyID([]byte(`{"name":"Ana"}`)), "", time.Time{}},
		{"headers that not every text signs", unsigned, `{"name":"Ana"}`, idem.BodyID([]byte(`{"name":"Ana"}`)), "", time.Time{}},
	} {
		p := definition(tt.scheme)
		p.Naming.IDs, p.Naming.Times = []string{"id"}, []string{"timestamp"}
		d := new(provider.Dispatcher)
		d.Setup(p, secret)
		d.Now = func() time.Time { return now }
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(tt.body))
		for name, value := range map[string]string{"Webhook-Id": "msg_1", "X-Id": "msg_1", "X-Event": "user.deleted"} {
			r.Header.Set(name, value)
		}
		if err := p.Sign(p.Scheme, r.Header, []byte(tt.body), secret, now); err != nil {
			t.Fatal(err)
		}
		e, err := d.Open(r)
		if err != nil || e.ID != tt.id || e.Type != tt.eventType || !e.OccurredAt.Equal(tt.at) {
			t.Errorf("%s: %s %q of %v, %v", tt.why, e.ID, e.Type, e.OccurredAt, err)
		}
	}
}

func TestAHeaderThatNamesTheEventComesOnce(t *testing.T) {
	t.Parallel()
	const secret, body = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", `{"type":"user.created"}`
	d := definition(provider.StandardWebhooks)
	for want, change := range map[idem.Reason]func(http.Header){
		provider.ReasonMissingSignature: func(h http.Header) { h.Del("Webhook-Id") },
		provider.ReasonDuplicateHeader:  func(h http.Header) { h.Add("Webhook-Id", "msg_2") },
		provider.ReasonWrongSignature:   func(h http.Header) { h.Set("Webhook-Id", "msg_2") },
	} {
		h := make(http.Header)
		if err := d.Sign(d.Scheme, h, []byte(body), secret, now); err != nil {
			t.Fatal(err)
		}
		refused(t, "as signed, with an id of its own", d.Verify(h, []byte(body), now, secret), "")
		change(h)
		refused(t, "changed", d.Verify(h, []byte(body), now, secret), want)
	}
}

// base64 decodes "QUJD-…" to ABC and an error: a key that anybody guesses.
func TestASecretThatIsNotAllBase64VerifiesNothing(t *testing.T) {
	t.Parallel()
	const secret, body = "whsec_QUJD-fKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", `{}`
	d := definition(provider.StandardWebhooks)
	h := http.Header{"Webhook-Id": {"msg_1"}}
	if err := d.Sign(d.Scheme, h, []byte(body), "ABC", now); err != nil {
		t.Fatal(err)
	}
	err := d.Verify(h, []byte(body), now, secret)
	refused(t, "signed with the part that is base64", err, idem.ReasonNotConfigured)
	if !strings.Contains(err.Error(), "the secrets given (1) are no keys in base64: give all of the provider's secret, with its prefix") {
		t.Errorf("it says %v", err)
	}
	refused(t, "beside a right one", d.Verify(h, []byte(body), now, secret, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), provider.ReasonWrongSignature)
}

func refused(t *testing.T, why string, err error, want idem.Reason) {
	t.Helper()
	var r *idem.Refusal
	switch {
	case want == "" && err != nil, want != "" && !errors.As(err, &r):
		t.Errorf("%s: %v", why, err)
	case want != "" && r.Reason != want:
		t.Errorf("%s: refused as %s, want %s", why, r.Reason, want)
	}
}

func TestWhatASchemeSignsItVerifies(t *testing.T) {
	t.Parallel()
	body := []byte(`{"type":"PAID"}`)
	for why, s := range map[string]provider.Scheme{
		"a token":                provider.Token{Header: "X-Token"},
		"a bare code":            provider.HMAC{Header: "X-Signature", Hash: crypto.SHA512, Texts: []string{"{body}"}},
		"a time in the value":    provider.HMAC{Header: "X-Signature", Hash: crypto.SHA256, Texts: []string{"{time}.{body}"}, Value: "t={time},v1={mac}"},
		"a time in a header":     provider.HMAC{Header: "X-Signature", Hash: crypto.SHA256, Texts: []string{"{time}.{body}"}, TimeHeader: "X-Time", Base64: true},
		"a fixed URL":            provider.HMAC{Header: "X-Signature", Hash: crypto.SHA256, Texts: []string{"https://shop.example/acme{body}"}},
		"the second of two ways": provider.HMAC{Header: "X-Signature", Hash: crypto.SHA256, Texts: []string{"t={time}.{body}", "{time}.{body}"}, Value: "t={time}, v1={mac}"},
	} {
		h := http.Header{}
		if err := s.Sign(h, body, "secret", now); err != nil {
			t.Fatal(err)
		}
		p, missing, wrong := definition(s), provider.ReasonMissingSignature, provider.ReasonWrongSignature
		if _, isToken := s.(provider.Token); isToken {
			missing, wrong = provider.ReasonMissingToken, provider.ReasonWrongToken
		}
		refused(t, why, p.Verify(h, body, now, "old", "secret"), "")
		refused(t, why+", another secret", p.Verify(h, body, now, "other"), wrong)
		refused(t, why+", without it", p.Verify(http.Header{}, body, now, "secret"), missing)
		for name, values := range h {
			twice := h.Clone()
			twice[name] = append(values, values...)
			if p.Verify(twice, body, now, "secret") == nil {
				t.Errorf("%s: %s comes twice, and it verifies", why, name)
			}
		}
		if _, isToken := s.(provider.Token); !isToken {
			refused(t, why+", another body", p.Verify(h, append(body, ' '), now, "secret"), provider.ReasonWrongSignature)
		}
	}
	refused(t, "nothing is verified", definition(provider.None{}).Verify(http.Header{}, body, now), "")
}

func TestAnEventIsNamedByWhatTheDefinitionSays(t *testing.T) {
	t.Parallel()
	p := definition(provider.None{})
	p.Naming.IDs, p.Naming.Times, p.Naming.Ping = []string{"id"}, []string{"at"}, "ping"
	p.Naming.Events = []provider.Names{{Types: []string{"PAID"}, Key: []string{"order", "order.id#"}, ID: []string{"order.id"}, Times: []string{"order.at"}}}
	for _, tt := range []struct {
		why, body, eventType, id, key string
		at                            int64
	}{
		{"all of it", `{"type":"PAID","id":"e1","at":"2026-01-01T00:00:01Z","order":{"id":7,"at":"2026-01-01T00:00:02Z"}}`, "PAID", "e1", "7", 1767225602},
		{"no id of its own", `{"type":"PAID","id":null,"order":{"id":"o1"}}`, "PAID", "PAID:o1", "o1", 0},
		{"the last of two", `{"type":"PAID","order":{"id":"o1"},"order":{"id":"o2"}}`, "PAID", "PAID:o2", "o2", 0},
		{"a test of the address", `{"type":"PAID","ping":true,"id":"e1"}`, provider.PingType, "e1", "", 0},
		{"another type", `{"type":"LATER","id":"e1","order":{"id":"o1"}}`, "LATER", "e1", "", 0},
	} {
		e := p.Identify([]byte(tt.body))
		if e.Type != tt.eventType || e.ID != tt.id || e.Key != tt.key || tt.at != 0 && e.OccurredAt.Unix() != tt.at || tt.at == 0 && !e.OccurredAt.IsZero() {
			t.Errorf("%s: %v", tt.why, e)
		}
	}
	for _, body := range []string{``, `[]`, `{"type":"PAID"`, `{}`} {
		if e := p.Identify([]byte(body)); e.Type != "" || e.ID != idem.BodyID([]byte(body)) {
			t.Errorf("%q is %v", body, e)
		}
	}
}

// What variables of the environment and YAML make of a PEM is the same key.
func TestAPublicKeyVerifiesHoweverItsLinesAreBroken(t *testing.T) {
	t.Parallel()
	scheme, body := provider.RSA{Header: "X-Signature", Hash: crypto.SHA256}, []byte(`{"type":"PAID"}`)
	private, public := keys(t)
	h := http.Header{}
	if err := scheme.Sign(h, body, strings.ReplaceAll(private, "\n", `\n`), now); err != nil {
		t.Fatal(err)
	}
	_, other := keys(t)
	for why, secret := range map[string]string{
		"as it is":              public,
		"the private key":       private,
		`\n in two characters`:  strings.ReplaceAll(public, "\n", `\n`),
		"lines of Windows":      strings.ReplaceAll(public, "\n", `\r\n`),
		"spaces instead":        strings.ReplaceAll(public, "\n", " "),
		"indented":              "  " + strings.ReplaceAll(public, "\n", "\n    "),
		"in quotes":             `"` + public + `"`,
		"without the last line": strings.TrimSpace(public),
	} {
		refused(t, why, definition(scheme).Verify(h, body, now, secret), "")
		refused(t, why+", beside one that is none", definition(scheme).Verify(h, body, now, "a secret", secret), "")
		refused(t, why+", another body", definition(scheme).Verify(h, []byte(`{}`), now, secret), provider.ReasonWrongSignature)
	}
	err := definition(scheme).Verify(h, body, now, other)
	refused(t, "another key", err, provider.ReasonWrongSignature)
	if strings.Contains(err.Error(), "line breaks") {
		t.Errorf("it advises to break a PEM: %v", err)
	}
}

// The difference to a time in milliseconds overflows.
func TestATimeInMillisecondsIsSaidToBeFarInTheFuture(t *testing.T) {
	t.Parallel()
	s := provider.HMAC{Header: "X-Signature", Hash: crypto.SHA256, Texts: []string{"{time}.{body}"}, TimeHeader: "X-Time"}
	h := http.Header{}
	if err := s.Sign(h, nil, "secret", time.Unix(now.UnixMilli(), 0)); err != nil {
		t.Fatal(err)
	}
	err := definition(s).Verify(h, nil, now, "secret")
	refused(t, "in milliseconds", err, provider.ReasonFuture)
	if !strings.Contains(err.Error(), "by the right secret, 153722867 minutes in the future") {
		t.Errorf("it says %v", err)
	}
}

// It is a mistake in the deployment, as an empty secret: the provider delivers again.
func TestASecretThatIsNoPublicKeyIsAMistakeInTheConfiguration(t *testing.T) {
	t.Parallel()
	scheme := provider.RSA{Header: "X-Signature", Hash: crypto.SHA256}
	_, public := keys(t)
	for why, secret := range map[string]string{
		"a text":               "a secret",
		"a part of a key":      public[:len(public)/2],
		"a key of other bytes": strings.Replace(public, "MII", "AAA", 1),
	} {
		d := new(provider.Dispatcher)
		d.Setup(definition(scheme), secret)
		if d.Configured() == nil {
			t.Errorf("%s: it can verify", why)
		}
		err := definition(scheme).Verify(http.Header{}, nil, now, secret)
		refused(t, why, err, idem.ReasonNotConfigured)
		if !strings.Contains(err.Error(), "BEGIN PUBLIC KEY") || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: it is said as %v", why, err)
		}
	}
	d := new(provider.Dispatcher)
	d.Setup(definition(scheme), "old", public)
	if d.Configured() != nil {
		t.Error("a key cannot verify beside a text")
	}
	if d.Scheme = (provider.None{}); d.Configured() != nil {
		t.Error("nothing has to be verified, and yet it says that it cannot")
	}
}

func keys(t *testing.T) (private, public string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	publicDER, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: publicDER}))
}

// Neither a list without texts nor an empty text, whose code would fit any body, makes a signature that verifies.
func TestAnHMACOfNothingVerifiesNothing(t *testing.T) {
	t.Parallel()
	body := []byte(`{"type":"PAID"}`)
	for _, texts := range [][]string{nil, {}, {""}} {
		s := provider.HMAC{Header: "X-Signature", Hash: crypto.SHA256, Texts: texts, IDHeader: "X-Id"}
		h := http.Header{"X-Id": {"stranger"}}
		if err := s.Sign(h, body, "secret", time.Now()); (err == nil) != (len(texts) > 0) {
			t.Errorf("%q: signing ended with %v", texts, err)
		}
		if h.Get("X-Signature") == "" {
			mac := hmac.New(sha256.New, []byte("secret"))
			h.Set("X-Signature", hex.EncodeToString(mac.Sum(nil)))
		}
		if id, _ := s.Names(h); id != "" || s.Verifies(h, body, "secret") {
			t.Errorf("%q: it verifies, or names the event %q", texts, id)
		}
	}
}
