package provider_test

import (
	"bytes"
	"context"
	"crypto"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/provider"
	"github.com/paghooks/paghooks/zeltapay"
)

// order is what this shop's events are about.
type order struct {
	Type  string `json:"type"`
	Order struct {
		ID   string `json:"id"`
		Test bool   `json:"test,omitzero"`
	} `json:"order"`
}

// shop is a provider that marks tests, pings, and says in headers what it signs.
func shop() *provider.Definition {
	return &provider.Definition{
		Source: "shop",
		Naming: provider.Naming{
			Type: "type", IDs: []string{"id"},
			Events: []provider.Names{
				{Types: []string{"PAID"}, Key: []string{"order.id"}, Test: "order.test"},
				{Types: []string{"PING"}, Ping: true},
			},
		},
		Scheme:  provider.HMAC{Header: "X-Signature", Hash: crypto.SHA256, Texts: []string{"{time}.{body}"}, Value: "t={time},v1={mac}"},
		Headers: []provider.Header{{Name: "X-Time", Says: "{time}"}, {Name: "X-Id", Says: "{id}"}, {Name: "X-Type", Says: "{type}"}},
		Empty: func(eventType string) any {
			if eventType == "PAID" || eventType == "PING" {
				return new(order)
			}
			return nil
		},
	}
}

func dispatcher(p *provider.Definition) *provider.Dispatcher {
	d := new(provider.Dispatcher)
	d.Setup(p, "secret")
	d.Logger, d.Now = nil, func() time.Time { return now }
	idem.Handle(&d.Routes, "PAID", func(context.Context, pgx.Tx, *order) error { return nil })
	return d
}

// opened is the event of a delivery that is signed, and then changed.
func opened(d *provider.Dispatcher, p *provider.Definition, body string, change func(http.Header)) (idem.Event, error) {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	if err := p.Sign(p.Scheme, r.Header, []byte(body), "secret", now); err != nil {
		return idem.Event{}, err
	}
	change(r.Header)
	return d.Open(r)
}

func unchanged(http.Header) {}

func TestAnEventInWhichNoMoneyMovedReachesNoHandlerUnlessAskedFor(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		why, body, eventType string
		allow                bool
		ignored, handled     bool
		logged               bool
	}{
		{"a test", `{"type":"PAID","id":"1","order":{"id":"o","test":true}}`, "PAID:test", false, true, false, true},
		{"a test that is asked for", `{"type":"PAID","id":"1","order":{"id":"o","test":true}}`, "PAID:test", true, false, true, false},
		{"money", `{"type":"PAID","id":"1","order":{"id":"o","test":false}}`, "PAID", false, false, true, false},
		{"another type with the mark", `{"type":"PING","id":"1","order":{"test":true}}`, "PING", false, true, false, false},
	} {
		var logged bytes.Buffer
		p := shop()
		d := dispatcher(p)
		d.AllowTest, d.Logger = tt.allow, slog.New(slog.NewTextHandler(&logged, nil))
		e, err := opened(d, p, tt.body, unchanged)
		if err != nil || e.Type != tt.eventType || d.Ignores(e.Type) != tt.ignored {
			t.Errorf("%s: it is %s, ignored=%t, %v", tt.why, e.Type, d.Ignores(e.Type), err)
		}
		if work, err := d.Route(e); err != nil || (work != nil) != tt.handled {
			t.Errorf("%s: it has a handler: %t, %v", tt.why, work != nil, err)
		}
		if got := strings.Contains(logged.String(), "id=1"); got != tt.logged {
			t.Errorf("%s: logged %q", tt.why, &logged)
		}
	}
}

func TestAGuardRefusesWhatIsGenuineAndLetsNothingIn(t *testing.T) {
	t.Parallel()
	const question, body = `{"type":"QUESTION"}`, `{"type":"PAID","id":"1","order":{"id":"o"}}`
	p := shop()
	p.Guard = func(h http.Header, body []byte, err error) error {
		refusal, isRefusal := errors.AsType[*idem.Refusal](err)
		switch {
		case isRefusal && refusal.Reason == provider.ReasonMissingSignature && h.Get("Content-Type") == "text/plain":
			return &idem.Refusal{Source: "shop", Reason: "a_letter", Hint: "write to another address"}
		case err == nil && string(body) == question:
			return &idem.Refusal{Source: "shop", Reason: "a_question", Hint: "answer it elsewhere"}
		}
		return nil // also where it is not verified
	}
	d := dispatcher(p)
	letter := func(h http.Header) { h.Del("X-Signature"); h.Set("Content-Type", "text/plain") }
	for _, tt := range []struct {
		why, body string
		change    func(http.Header)
		want      idem.Reason
	}{
		{"an event", body, unchanged, ""},
		{"genuine, and no event", question, unchanged, "a_question"},
		{"not signed", body, func(h http.Header) { h.Del("X-Signature") }, provider.ReasonMissingSignature},
		{"not signed, and of a kind that has a remedy", body, letter, "a_letter"},
		{"signed by another", question, func(h http.Header) { h.Set("X-Signature", "t=1,v1="+strings.Repeat("0", 64)) }, provider.ReasonWrongSignature},
	} {
		_, err := opened(d, p, tt.body, tt.change)
		h := make(http.Header)
		if err := p.Sign(p.Scheme, h, []byte(tt.body), "secret", now); err != nil {
			t.Fatal(err)
		}
		tt.change(h)
		for how, err := range map[string]error{"Open": err, "Verify": p.Verify(h, []byte(tt.body), now, "secret"), "the dispatcher's Verify": d.Verify(h, []byte(tt.body))} {
			refusal, _ := errors.AsType[*idem.Refusal](err)
			if tt.want == "" && err != nil || tt.want != "" && (refusal == nil || refusal.Reason != tt.want) {
				t.Errorf("%s: %s = %v, want %q", tt.why, how, err, tt.want)
			}
		}
	}
}

func TestAPingIsAnsweredAndForgottenUnlessHandled(t *testing.T) {
	t.Parallel()
	d := dispatcher(shop())
	if !d.Ignores("PING") || d.Ignores("PAID") || d.Ignores("LATER") {
		t.Error("it ignores other events than the ping")
	}
	idem.Handle(&d.Routes, "PING", func(context.Context, pgx.Tx, *order) error { return nil })
	if d.Ignores("PING") {
		t.Error("it ignores a ping that has a handler")
	}
}

func TestWhatIsSignedCountsAndAHeaderThatDiffersIsReported(t *testing.T) {
	t.Parallel()
	const body = `{"type":"PAID","id":"1","order":{"id":"o"}}`
	for _, tt := range []struct {
		why    string
		change func(http.Header)
		found  string
		strict idem.Reason
	}{
		{"as it was signed", unchanged, "", ""},
		{"another id", func(h http.Header) { h.Set("X-Id", "2") }, "X-Id", provider.ReasonEventIDMismatch},
		{"another type", func(h http.Header) { h.Set("X-Type", "SEEN") }, "X-Type", provider.ReasonEventTypeMismatch},
		{"another time", func(h http.Header) { h.Set("X-Time", "7") }, "X-Time", provider.ReasonTimestampMismatch},
		{"an id twice", func(h http.Header) { h.Add("X-Id", "1") }, "X-Id", provider.ReasonDuplicateHeader},
		{"none of them", func(h http.Header) { h.Del("X-Id"); h.Del("X-Type"); h.Del("X-Time") }, "", ""},
		{"an empty one, in another case", func(h http.Header) { h.Del("X-Id"); h["x-id"] = []string{""} }, "", ""},
	} {
		p := shop()
		d := dispatcher(p)
		e, err := opened(d, p, body, tt.change)
		if err != nil || e.ID != "1" || e.Type != "PAID" || e.Key != "o" {
			t.Errorf("%s: it is %v, %v", tt.why, e, err)
		}
		var found strings.Builder
		for _, f := range d.Drift() {
			found.WriteString(f.Path)
		}
		if diff := cmp.Diff(tt.found, found.String()); diff != "" {
			t.Errorf("%s: drift (-want +got):\n%s", tt.why, diff)
		}
		d.StrictHeaders = true
		_, err = opened(d, p, body, tt.change)
		refused(t, tt.why+", strict", err, tt.strict)
	}
}

func TestTheSecretsOfNewDispatcherStandBesideAccounts(t *testing.T) {
	t.Parallel()
	p := shop()
	d := dispatcher(p)
	d.Accounts = func(*http.Request) ([]idem.Credentials, error) {
		return []idem.Credentials{{Scope: "other", Secrets: []string{"another"}}}, nil
	}
	const body = `{"type":"PAID","id":"1","order":{"id":"o"}}`
	if e, err := opened(d, p, body, unchanged); err != nil || e.Scope != "" {
		t.Errorf("the scope is %q, %v", e.Scope, err)
	}
	resign := func(h http.Header) { _ = p.Sign(p.Scheme, h, []byte(body), "another", now) }
	if e, err := opened(d, p, body, resign); err != nil || e.Scope != "other" {
		t.Errorf("the scope is %q, %v", e.Scope, err)
	}
	d.Accounts = func(*http.Request) ([]idem.Credentials, error) {
		return []idem.Credentials{{Secrets: []string{"another"}}}, nil
	}
	if _, err := opened(d, p, body, unchanged); err == nil || !strings.Contains(err.Error(), "without a Scope") {
		t.Errorf("an account without a scope: %v", err)
	}
}

// A name in a naming says what decoding would find.
func TestAPathFindsWhatDecodingFinds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ why, path, body, want string }{
		{"a text", "order.id", `{"order":{"id":"1"}}`, "1"},
		{"another case", "order.id", `{"ORDER":{"Id":"1"}}`, "1"},
		{"escaped", "order.id", `{"\u006frder":{"i\u0064":"\u0031"}}`, "1"},
		{"null, for a text, is nothing", "order.id", `{"order":{"id":"1","id":null}}`, "1"},
		{"null, for a value.Optional, empties it", "order.id?", `{"order":{"id":"1","id":null}}`, ""},
		{"an object is filled", "order.id", `{"order":{"id":"1"},"order":{"total":1}}`, "1"},
		{"a value.Optional is replaced", "order?.id?", `{"order":{"id":"1"},"order":{"total":1}}`, ""},
		{"a number is no text", "order.id", `{"order":{"id":1.50}}`, ""},
		{"unless it may be", "order.id#", `{"order":{"id":1.50}}`, "1.50"},
		{"an optional one", "order?.id?#", `{"order":{"id":7}}`, "7"},
		{"no object", "order.id", `{"order":"1"}`, ""},
		{"no whole body", "order.id", `{"order":{"id":"1"}`, ""},
	} {
		p := definition(provider.None{})
		p.Naming.Events = []provider.Names{{Types: []string{"SENT", "PAID"}, Key: []string{tt.path}}}
		body := strings.Replace(tt.body, "{", `{"type":"PAID",`, 1)
		if got := p.Identify([]byte(body)).Key; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.why, got, tt.want)
		}
	}
}

func TestASourceWithAccountsAloneGivesEveryEventAScope(t *testing.T) {
	t.Parallel()
	accounts := func(*http.Request) ([]idem.Credentials, error) { return nil, nil }
	for _, c := range []struct {
		why     string
		secrets []string
		alone   bool // accounts
		want    bool
	}{
		{"one account without a scope", []string{"secret"}, false, false},
		{"nothing is configured", nil, false, false},
		{"accounts beside it", []string{"", "secret"}, true, false},
		{"accounts, and a variable that is not set", []string{" "}, true, true},
		{"accounts alone", nil, true, true},
	} {
		z, g := zeltapay.NewDispatcher(c.secrets...), new(provider.Dispatcher)
		g.Setup(&provider.Definition{Source: "bank"}, c.secrets...)
		a := asaas.NewDispatcher(c.secrets...)
		if c.alone {
			z.Accounts, g.Accounts, a.Accounts = accounts, accounts, accounts
		}
		for _, d := range []interface{ AlwaysScoped() bool }{z, g, a} {
			if got := d.AlwaysScoped(); got != c.want {
				t.Errorf("%s: AlwaysScoped of %T = %t", c.why, d, got)
			}
		}
	}
}

type person struct {
	Name  string          `json:"name"`
	Heirs []person        `json:"heirs,omitempty"`
	Heir  *person         `json:"heir,omitempty"`
	Notes json.RawMessage `json:"notes,omitempty"`
	Of    string          `json:"of,omitempty"`
}

func TestWhatIsPersonalIsHiddenWhereverItIs(t *testing.T) {
	t.Parallel()
	table := provider.Personal{"person": {"name": "", "heirs": "person", "heir": "person", "notes": ""}}
	for _, c := range []struct {
		why, want string
		v         any
	}{
		{"a text", `{"name":"[redacted]","of":"Rio, \"SP\""}`, person{Name: "Ana", Of: `Rio, "SP"`}},
		{"no text", `{"name":""}`, person{}},
		{"lists and pointers", `{"name":"[redacted]","heirs":[{"name":"[redacted]"},{"name":""}],"heir":{"name":"[redacted]"}}`, person{Name: "Ana", Heirs: []person{{Name: "Bia"}, {}}, Heir: &person{Name: "Cid"}}},
		{"an object", `{"name":"","notes":"[2 fields]"}`, person{Notes: json.RawMessage(`{"Ana": 1, "Bia": 2}`)}},
		{"a number", `{"name":"","notes":"[redacted]"}`, person{Notes: json.RawMessage("5511987654321")}},
		{"null", `{"name":"","notes":null}`, person{Notes: json.RawMessage("null")}},
		{"no pointer", `null`, (*person)(nil)},
		{"no JSON", `"[unprintable]"`, person{Notes: json.RawMessage("Ana")}},
	} {
		if got := table.LogValue("person", c.v).String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.why, got, c.want)
		}
	}
}
