package provider_test

import (
	"crypto"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/provider"
)

// A variable of a deployment has more in it than the provider's token, and no screen shows what.
func TestARefusalSaysWhatAConfiguredSecretHasTooMuch(t *testing.T) {
	t.Parallel()
	const token, quotes, invisible, compare = "tok-0123456789abcdef", "is in quotes, which count as a part of it: remove them", "has invisible characters", "compare it with the webhook's"
	for _, tt := range []struct{ why, configured, want string }{
		{"quotes of a .env file", `"` + token + `"`, quotes},
		{"single ones", "'" + token + "'", quotes},
		{"of a page", "“" + token + "”", quotes},
		{"of a chat", "`" + token + "`", quotes},
		{"and a line break", `"` + token + "\"\n", "begins or ends with a space or a line break"},
		{"a file of Windows", "\ufeff" + token, invisible},
		{"copied from a page", token + "\u200b", invisible},
		{"in the middle", token[:5] + "\u2060" + token[5:], invisible},
		{"another one", "another", compare},
		{"a quote that is part of it", `"` + token, compare},
		{"a single quote", `"`, compare},
	} {
		for _, scheme := range []provider.Scheme{provider.Token{Header: "X-Token"}, provider.StandardWebhooks} {
			want, p := tt.want, definition(scheme)
			if _, sent := scheme.(provider.Token); !sent {
				p = definition(provider.HMAC{Header: "X-Signature", Hash: crypto.SHA256, Texts: []string{"{body}"}})
				want = strings.Replace(want, compare, "compare the secret with the provider's", 1)
			}
			var d provider.Dispatcher
			d.Setup(p, tt.configured)
			r := httptest.NewRequest("POST", "/", nil)
			body := []byte(`{"type":"PAID"}`)
			if err := p.Sign(p.Scheme, r.Header, body, token, now); err != nil {
				t.Fatal(err)
			}
			err := d.Verify(r.Header, body)
			if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "0123456789") {
				t.Errorf("%s: %v, want %q in it, and no secret", tt.why, err, want)
			}
		}
	}
}

func TestARefusedSenderIsNamedAndTheHeaderThatFits(t *testing.T) {
	t.Parallel()
	const bank, cdn, client = "192.0.2.7", "198.51.100.9", "203.0.113.5"
	for _, tt := range []struct {
		why, header string
		sent        map[string]string
		want        []string // "" for a request that is allowed
	}{
		{"no proxy", "", nil, []string{`"10.0.0.1:80" as the connection has it`, "behind a proxy set ClientAddrHeader"}},
		{"one proxy, and no setting", "", map[string]string{"X-Forwarded-For": bank}, []string{`"10.0.0.1:80" as the connection has it`, `set ClientAddrHeader to "X-Forwarded-For" if your own proxy writes it`}},
		{"two proxies", "X-Forwarded-For", map[string]string{"X-Forwarded-For": bank + ", " + cdn}, []string{`"` + cdn + `" as the last element of X-Forwarded-For has it`, "more than one proxy", "CF-Connecting-IP or X-Real-IP"}},
		{"Cloudflare and another one", "X-Forwarded-For", map[string]string{"X-Forwarded-For": bank + ", " + cdn, "CF-Connecting-IP": bank}, []string{`"` + cdn + `"`, `set ClientAddrHeader to "CF-Connecting-IP"`}},
		{"so it is set", "CF-Connecting-IP", map[string]string{"X-Forwarded-For": bank + ", " + cdn, "CF-Connecting-IP": bank}, nil},
		{"Forwarded", "", map[string]string{"Forwarded": "for=" + bank + ";proto=https"}, []string{`set ClientAddrHeader to "Forwarded"`}},
		{"Forwarded is set", "Forwarded", map[string]string{"Forwarded": "for=" + client + ", For=\"" + bank + ":4711\";by=10.0.0.1"}, nil},
		{"Forwarded of another", "Forwarded", map[string]string{"Forwarded": "for=" + bank + ", for=" + client}, []string{`"` + client + `" as the last element of Forwarded has it`}},
		{"Forwarded without a sender", "Forwarded", map[string]string{"Forwarded": "for=" + bank + ", by=" + client}, []string{`"" as the last element of Forwarded has it`}},
		{"a stranger behind a proxy", "", map[string]string{"X-Real-IP": client}, []string{"the header that the proxy writes the sender in"}},
		{"no address", "X-Real-IP", map[string]string{"X-Real-IP": strings.Repeat("x", 5000)}, []string{"as the last element of X-Real-IP has it"}},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r.RemoteAddr = "10.0.0.1:80"
		for name, value := range tt.sent {
			r.Header.Set(name, value)
		}
		err := provider.CheckSender(r, "bank", []netip.Prefix{netip.MustParsePrefix(bank + "/32")}, tt.header)
		if tt.want == nil {
			if err != nil {
				t.Errorf("%s: %v", tt.why, err)
			}
			continue
		}
		refused(t, tt.why, err, provider.ReasonAddressNotAllowed)
		for _, want := range tt.want {
			if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 600 {
				t.Errorf("%s: %v, want %q in it", tt.why, err, want)
			}
		}
	}
}

// With the right token an address that is not allowed is a mistake in the settings, and all deliveries are refused so.
func TestASenderWithTheTokenFromAnotherAddressIsAFailedDelivery(t *testing.T) {
	t.Parallel()
	for token, misconfigured := range map[string]bool{"token": true, "a guess": false, "": false} {
		var d provider.Dispatcher
		d.Setup(definition(provider.Token{Header: "X-Token"}), "token")
		d.AllowFrom = []netip.Prefix{netip.MustParsePrefix("192.0.2.7/32")}
		r := httptest.NewRequest("POST", "/", strings.NewReader(`{"type":"PAID"}`))
		r.Header.Set("X-Token", token)
		_, err := d.Open(r)
		refusal, ok := err.(*idem.Refusal)
		if !ok || refusal.Reason != provider.ReasonAddressNotAllowed || refusal.Misconfigured != misconfigured {
			t.Errorf("with the token %q: %v, %+v", token, err, refusal)
		}
	}
}
