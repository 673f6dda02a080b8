package providertest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/provider"
)

func (s suite) configured(t *testing.T) {
	scheme, any := s.scheme(), s.New("")
	settings(any).Accounts = func(*http.Request) ([]idem.Credentials, error) { return nil, nil }
	for can, dispatchers := range map[bool][]Dispatcher{
		false: {s.New(), s.New(""), s.New(" ", "\t")},
		true:  {s.New("", s.Secrets[0]), any},
	} {
		for n, d := range dispatchers {
			if err := d.Configured(); (err == nil) != (can || scheme == provider.None{}) {
				t.Errorf("number %d: Configured = %v, want that it can verify: %t", n, err, can)
			}
		}
	}
}

// open opens a delivery of a body.
func open(d Dispatcher, r *http.Request, body []byte) (idem.Event, error) {
	r.Body = io.NopCloser(bytes.NewReader(body))
	return d.Open(r)
}

// verify returns the reason for which Verify refuses a delivery. That of a dispatcher, and its Open, must agree.
func (s suite) verify(t *testing.T, h http.Header, body []byte, secrets ...string) idem.Reason {
	t.Helper()
	why := reason(t, s.Verify(h, body, secrets...))
	d := s.New(secrets...)
	r := s.request(s.Secrets[0], body)
	r.Header = h
	e, err := open(d, r, body)
	if opened, verified := reason(t, err), reason(t, d.Verify(h, body)); opened != why || verified != why || why != "" && e.ID != "" {
		t.Errorf("Verify refuses it as %q, that of the dispatcher as %q, and Open as %q, with the event %q", why, verified, opened, e.ID)
	}
	return why
}

func (s suite) verified(t *testing.T) {
	s.verifies(t)
	body := s.Event(s.Types[0])
	for _, secret := range s.Secrets {
		h := s.request(secret, body).Header
		for _, secrets := range [][]string{{secret}, {s.Secrets[0], "", s.Secrets[1]}, {s.Secrets[1], s.Secrets[0]}, {secret, secret}} {
			if why := s.verify(t, h, body, secrets...); why != "" {
				t.Errorf("one of %d secrets is refused as %q", len(secrets), why)
			}
		}
	}
	h := s.request(s.Secrets[1], body).Header
	err := s.Verify(h, body, s.Secrets[0])
	if refusal, ok := errors.AsType[*idem.Refusal](err); !ok || !refusal.WrongSecret || s.verify(t, h, body, s.Secrets[0]) == "" {
		t.Errorf("another secret: %v", err)
	}
	if _, rsa := s.scheme().(provider.RSA); rsa {
		return // of a PEM some bits change nothing
	}
	h = s.request(s.Secrets[0], body).Header
	for bit := range 8 * len(s.Secrets[0]) {
		if s.Verify(h, body, flipped(s.Secrets[0], bit)) == nil {
			t.Errorf("a secret with bit %d changed verifies", bit)
		}
	}
}

func flipped(text string, bit int) string {
	changed := []byte(text)
	changed[bit/8] ^= 1 << (bit % 8)
	return string(changed)
}

func (s suite) altered(t *testing.T) {
	if _, token := s.verifies(t).(provider.Token); token {
		t.Skip("it signs no body")
	}
	body := s.Sparse(s.Types[0])
	h := s.request(s.Secrets[0], body).Header
	for bit := range 8 * len(body) {
		if s.Verify(h, []byte(flipped(string(body), bit)), s.Secrets[0]) == nil {
			t.Errorf("a body with bit %d changed verifies", bit)
		}
	}
	for _, changed := range [][]byte{nil, append(bytes.Clone(body), ' '), body[:len(body)-1]} {
		if why := s.verify(t, h, changed, s.Secrets[0]); why != provider.ReasonWrongSignature && len(changed) > 0 || why == "" {
			t.Errorf("a body of %d bytes, of %d: refused as %q", len(changed), len(body), why)
		}
	}
}

func (s suite) empty(t *testing.T) {
	s.verifies(t)
	body := s.Event(s.Types[0])
	for _, secrets := range [][]string{nil, {}, {""}, {"", ""}, {" "}, {"\n", "\t"}} {
		for _, signed := range []string{"", " ", "\n", s.Secrets[0]} {
			h, ok := s.signed(signed, body)
			if why := s.verify(t, h, body, secrets...); why != idem.ReasonNotConfigured {
				t.Errorf("the secrets %q, signed with %q: refused as %q", secrets, signed, why)
			}
			if why := s.verify(t, h, body, append(secrets, s.Secrets[0])...); ok && (why == "") != (signed == s.Secrets[0]) {
				t.Errorf("the secrets %q beside a right one, signed with %q: refused as %q", secrets, signed, why)
			}
		}
	}
}

// signed returns the headers of a delivery. ok is false where a secret cannot sign.
func (s suite) signed(secret string, body []byte) (h http.Header, ok bool) {
	defer func() {
		if recover() != nil {
			h, ok = make(http.Header), false
		}
	}()
	return s.request(secret, body).Header, true
}

// header is the one that proves a delivery; "" for a scheme that is not of package provider.
func header(scheme provider.Scheme) string {
	switch scheme := scheme.(type) {
	case provider.HMAC:
		return scheme.Header
	case provider.RSA:
		return scheme.Header
	case provider.Token:
		return scheme.Header
	}
	return ""
}

func (s suite) headers(t *testing.T) {
	name, body := header(s.verifies(t)), s.Event(s.Types[0])
	sent, lower := s.request(s.Secrets[0], body).Header, make(http.Header)
	for name, values := range sent {
		lower[strings.ToLower(name)] = values
	}
	if why := s.verify(t, lower, body, s.Secrets[0]); why != "" {
		t.Errorf("in lower case it is refused as %q", why)
	}
	if name == "" {
		return
	}
	once := []idem.Reason{provider.ReasonDuplicateHeader, provider.ReasonSeveralTokens}
	lower[name] = sent[name]
	if why := s.verify(t, lower, body, s.Secrets[0]); !slices.Contains(once, why) {
		t.Errorf("in two cases it is refused as %q", why)
	}
	for _, second := range []string{sent.Get(name), "another"} {
		twice := sent.Clone()
		twice.Add(name, second)
		if why := s.verify(t, twice, body, s.Secrets[0]); !slices.Contains(once, why) {
			t.Errorf("twice it is refused as %q", why)
		}
	}
	sent.Del(name)
	if why := s.verify(t, sent, body, s.Secrets[0]); why != provider.ReasonMissingSignature && why != provider.ReasonMissingToken {
		t.Errorf("without it, it is refused as %q", why)
	}
}

func (s suite) times(t *testing.T) {
	timer, ok := s.verifies(t).(provider.Timer)
	body := s.Event(s.Types[0])
	h := s.request(s.Secrets[0], body).Header
	var at time.Time
	var tolerance time.Duration
	if ok {
		at, tolerance, ok = timer.SignedAt(h)
	}
	if !ok {
		t.Skip("it signs no time")
	}
	for _, c := range []struct {
		why  string
		now  time.Time
		want idem.Reason
	}{
		{"just now", at, ""},
		{"the last moment", at.Add(tolerance), ""},
		{"too late", at.Add(tolerance + time.Millisecond), provider.ReasonStale},
		{"a clock that is behind", at.Add(-tolerance), ""},
		{"a clock that is too far behind", at.Add(-tolerance - time.Millisecond), provider.ReasonFuture},
	} {
		d := s.New(s.Secrets[0])
		settings(d).Now = func() time.Time { return c.now }
		r := s.request(s.Secrets[0], body)
		r.Header = h
		_, err := open(d, r, body)
		if opened, why := reason(t, err), reason(t, d.Verify(h, body)); opened != c.want || why != c.want {
			t.Errorf("%s: Open refuses it as %q, Verify as %q, want %q", c.why, opened, why, c.want)
		}
	}
}

func (s suite) scopes(t *testing.T) {
	s.verifies(t)
	first, second := s.Secrets[0], s.Secrets[1]
	ambiguous := []idem.Reason{provider.ReasonAmbiguousSecret, provider.ReasonAmbiguousToken}
	wrong := []idem.Reason{provider.ReasonWrongSignature, provider.ReasonWrongToken}
	for _, c := range []struct {
		why      string
		unscoped string
		accounts []idem.Credentials
		scope    string
		want     []idem.Reason
	}{
		{"the first", "", []idem.Credentials{{Scope: "north", Secrets: []string{second, first}}, {Scope: "nobody"}}, "north", nil},
		{"the second", "", []idem.Credentials{{Scope: "north", Secrets: []string{second}}, {Scope: "south", Secrets: []string{"", first}}}, "south", nil},
		{"one scope, twice", "", []idem.Credentials{{Scope: "south", Secrets: []string{first}}, {Scope: "south", Secrets: []string{first}}}, "south", nil},
		{"the account of before scopes", first, []idem.Credentials{{Scope: "north", Secrets: []string{second}}}, "", nil},
		{"two scopes", "", []idem.Credentials{{Scope: "north", Secrets: []string{first}}, {Scope: "south", Secrets: []string{first}}}, "", ambiguous},
		{"one with a scope, and one without", first, []idem.Credentials{{Scope: "north", Secrets: []string{first}}}, "", ambiguous},
		{"nobody's", "", []idem.Credentials{{Scope: "north", Secrets: []string{second}}}, "", wrong},
		{"an account with an empty secret", second, []idem.Credentials{{Scope: "north", Secrets: []string{""}}}, "", wrong},
	} {
		d := s.New(c.unscoped)
		settings(d).Accounts = func(*http.Request) ([]idem.Credentials, error) { return c.accounts, nil }
		body := s.Event(s.Types[0])
		e, err := open(d, s.request(first, body), body)
		if why := reason(t, err); why != "" && !slices.Contains(c.want, why) || why == "" && c.want != nil || e.Scope != c.scope {
			t.Errorf("%s: the scope is %q, refused as %q", c.why, e.Scope, why)
		}
	}
}

func (s suite) accounts(t *testing.T) {
	s.verifies(t)
	down := errors.New("the store of secrets is down")
	d := s.New()
	settings(d).Accounts = func(r *http.Request) ([]idem.Credentials, error) {
		switch name := r.PathValue("account"); name {
		case "down":
			return nil, down
		case "west":
			return []idem.Credentials{{Scope: name}}, nil
		case "nowhere":
			return nil, nil
		default:
			return []idem.Credentials{{Scope: name, Secrets: []string{s.Secrets[0]}}}, nil
		}
	}
	body := s.Event(s.Types[0])
	from := func(account, secret string) (idem.Event, error) {
		r := s.request(secret, body)
		r.SetPathValue("account", account)
		return open(d, r, body)
	}
	for _, c := range []struct {
		account, secret string
		want            []idem.Reason
	}{
		{"north", s.Secrets[0], nil},
		{"north", s.Secrets[1], []idem.Reason{provider.ReasonWrongSignature, provider.ReasonWrongToken}},
		{"west", s.Secrets[0], []idem.Reason{idem.ReasonNotConfigured}},
		{"nowhere", s.Secrets[0], []idem.Reason{provider.ReasonUnknownAccount}},
	} {
		e, err := from(c.account, c.secret)
		if why := reason(t, err); why != "" && !slices.Contains(c.want, why) || why == "" && (c.want != nil || e.Scope != c.account) {
			t.Errorf("%s: the scope is %q, refused as %q", c.account, e.Scope, why)
		}
	}
	if _, err := from("down", s.Secrets[0]); err != down { // the error of Accounts itself
		t.Errorf("got %v, want the error of Accounts", err)
	}
	if _, err := from("", s.Secrets[0]); err == nil || errors.As(err, new(*idem.Refusal)) || !strings.Contains(err.Error(), "SetPathValue") {
		t.Errorf("an account without a scope: %v, want an error that says what to do", err)
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

// strangers checks that a delivery which its headers alone show to be no genuine one costs no memory for its body.
func (s suite) strangers(t *testing.T) {
	scheme := s.verifies(t)
	body := s.Event(s.Types[0])
	genuine := s.request(s.Secrets[0], body).Header
	elsewhere, accounts := s.New(s.Secrets[0]), s.New()
	settings(elsewhere).AllowFrom = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}
	settings(accounts).Accounts = func(*http.Request) ([]idem.Credentials, error) { return nil, nil }
	type stranger struct {
		why    string
		header http.Header
		to     Dispatcher
	}
	all := []stranger{
		{"no header", nil, s.New(s.Secrets[0])},
		{"no secret is configured", genuine, s.New()},
		{"an empty secret is configured", genuine, s.New("")},
		{"another address", genuine, elsewhere},
		{"no account", genuine, accounts},
	}
	switch scheme.(type) {
	case provider.Token:
		all = append(all, stranger{"another token", s.request(s.Secrets[1], body).Header, s.New(s.Secrets[0])})
	case provider.HMAC:
		all = append(all, stranger{"none of the known forms", http.Header{header(scheme): {"guess"}}, s.New(s.Secrets[0])})
	}
	for _, c := range all {
		r := httptest.NewRequest(http.MethodPost, "/", unread{t, c.why})
		r.Header = c.header
		r.RemoteAddr = "192.0.2.1:40000"
		if _, err := c.to.Open(r); reason(t, err) == "" {
			t.Errorf("%s: it is taken", c.why)
		}
	}
}

// refusals checks what refusals of changed headers say.
func (s suite) refusals(t *testing.T) {
	name := header(s.verifies(t))
	if name == "" {
		t.Skip("the header is not known here")
	}
	body := s.Event(s.Types[0])
	good := s.request(s.Secrets[0], body).Header
	proof := good.Get(name)
	for _, value := range []string{"", proof + proof, "x" + proof, proof[:len(proof)-2], s.Secrets[1], s.Secrets[1] + "\x00"} {
		h := good.Clone()
		h.Set(name, value)
		err := s.Verify(h, body, s.Secrets[0])
		if err == nil {
			t.Errorf("%s: %q verifies", name, value)
			continue
		}
		for _, hidden := range []string{s.Secrets[0], s.Secrets[1], proof, proof[len(proof)/2:]} {
			if strings.Contains(err.Error(), hidden) {
				t.Errorf("the refusal shows %q: %v", hidden, err)
			}
		}
	}
}

// unset checks the zero value of a dispatcher, which NewDispatcher has not made.
func (s suite) unset(t *testing.T) {
	if len(s.Types) == 0 || s.scheme() == (provider.None{}) {
		t.Skip("anybody may deliver")
	}
	body := s.Event(s.Types[0])
	for _, accounts := range []func(*http.Request) ([]idem.Credentials, error){nil, func(*http.Request) ([]idem.Credentials, error) {
		return []idem.Credentials{{Scope: "a", Secrets: s.Secrets[:]}}, nil
	}} {
		zero := reflect.New(reflect.TypeOf(s.New()).Elem()).Interface().(Dispatcher)
		settings(zero).Accounts = accounts
		_, err := open(zero, s.request(s.Secrets[0], body), body)
		if why := reason(t, err); why != idem.ReasonNotConfigured || !strings.Contains(err.Error(), "NewDispatcher") {
			t.Errorf("without NewDispatcher: %v", err)
		}
	}
}
