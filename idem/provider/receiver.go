package provider

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/handling"
	"github.com/paghooks/paghooks/internal/peek"
)

// Open implements [idem.Source]: it checks the headers before it reads the body. In a receiver that
// remembers events, a delivery with an id may be as old as that remembers. One that the right secret has
// signed, and whose time is out of tolerance, is answered 503.
func (d *Dispatcher) Open(r *http.Request) (idem.Event, error) {
	p := d.definition()
	if err := CheckSender(r, p.Source, d.AllowFrom, d.ClientAddrHeader); err != nil {
		if refusal, ok := errors.AsType[*idem.Refusal](err); ok {
			refusal.Misconfigured = d.hasToken(r) // AllowFrom or ClientAddrHeader is wrong, or the token is known to others
		}
		return idem.Event{}, err
	}
	e, failure := d.open(r)
	if err := p.guard(r.Header, e.Payload, failure); err != nil {
		if refusal, ok := errors.AsType[*idem.Refusal](err); ok {
			refusal.OfProvider = d.AllowFrom != nil
			refusal.Misconfigured = refusal.Misconfigured || failure == nil // it is genuine, and comes to the wrong address
		}
		return idem.Event{}, err
	}
	d.logTest(r.Context(), e)
	return e, nil
}

// hasToken reports whether a request has the right token.
func (d *Dispatcher) hasToken(r *http.Request) bool {
	accounts, err := d.credentials(r)
	if _, ok := d.Scheme.(Token); !ok || err != nil {
		return false
	}
	_, err = d.definition().scopeOf(d.Scheme, r.Header, nil, accounts)
	return err == nil
}

func (d *Dispatcher) open(r *http.Request) (idem.Event, error) {
	p := d.definition()
	accounts, err := d.credentials(r)
	if err != nil {
		return idem.Event{}, err
	}
	if err := p.checkHeaders(d.Scheme, r.Header, accounts, d.now()); err != nil {
		return idem.Event{}, err
	}
	var scope string
	_, early := d.Scheme.(Token) // the body of a stranger is not even read
	if early {
		if scope, err = p.scopeOf(d.Scheme, r.Header, nil, accounts); err != nil {
			return idem.Event{}, err
		}
	}
	body, err := idem.ReadBody(r)
	switch {
	case err != nil && !early:
		return idem.Event{}, p.altered(idem.ReasonCutBody, err.Error())
	case err != nil:
		return idem.Event{}, err
	}
	if !early {
		if scope, err = p.scopeOf(d.Scheme, r.Header, body, accounts); err != nil {
			return idem.Event{}, err
		}
	}
	var room [12]member
	e, said := p.identify(body, look(room[:0], body), namesOf(d.Scheme, r.Header))
	if timer, ok := d.Scheme.(Timer); ok && e.OccurredAt.IsZero() && said.signed {
		e.OccurredAt, _, _ = timer.SignedAt(r.Header)
	}
	var remembered time.Duration
	if said.id != "" { // a second delivery of it is a duplicate
		remembered = handling.Remembered(r.Context())
	}
	if err := d.checkTime(r.Header, body, remembered); err != nil {
		return idem.Event{}, err
	}
	if err := d.compare(r, body, said, e.Type); err != nil {
		return idem.Event{}, err
	}
	e.Scope = scope
	return e, nil
}

// guard has the package's guard judge a delivery.
func (p *Definition) guard(h http.Header, body []byte, err error) error {
	if p.Guard == nil {
		return err
	}
	return cmp.Or(p.Guard(h, body, err), err)
}

// Verify checks a delivery with the secrets of NewDispatcher and the settings, for receivers that do
// not use package idem. It is not asked for AllowFrom.
func (d *Dispatcher) Verify(h http.Header, body []byte) error {
	return d.definition().guard(h, body, d.verify(h, body))
}

func (d *Dispatcher) verify(h http.Header, body []byte) error {
	p, accounts := d.definition(), []idem.Credentials{d.unscoped()}
	if err := p.checkHeaders(d.Scheme, h, accounts, d.now()); err != nil {
		return err
	}
	if _, err := p.scopeOf(d.Scheme, h, body, accounts); err != nil {
		return err
	}
	if err := d.checkTime(h, body, 0); err != nil || !d.StrictHeaders {
		return err
	}
	_, said := p.identify(body, look(nil, body), words{})
	if found := p.contradictions(h, d.Scheme, said); len(found) > 0 {
		return p.contradicted(found[0])
	}
	return nil
}

// Verify checks a delivery with the default scheme. Several secrets are for a
// rotation; an empty one never verifies. The error is an [*idem.Refusal].
func (p *Definition) Verify(h http.Header, body []byte, now time.Time, secrets ...string) error {
	d := Dispatcher{Scheme: p.Scheme, Now: func() time.Time { return now }, about: p, secrets: func() []string { return secrets }}
	return d.Verify(h, body)
}

// Configured returns an [*idem.Refusal] if there is neither a secret that has the form
// of the scheme's, nor a function Accounts: every delivery is answered 503 then.
// [idem.Serve] logs it at the start.
func (d *Dispatcher) Configured() error {
	if d.Accounts != nil {
		return nil
	}
	return d.definition().checkConfigured(d.Scheme, []idem.Credentials{d.unscoped()})
}

// AlwaysScoped reports whether every event gets a scope: there is a function Accounts, and no
// secret of an account without one. Package health is then red while events without a scope are
// stored, which are not recognized when they come again.
func (d *Dispatcher) AlwaysScoped() bool {
	return d.Accounts != nil && !slices.ContainsFunc(d.unscoped().Secrets, isSecret)
}

// Route implements [idem.Source]. An event that lacks an essential field is an error: its struct would
// hold zeros that the provider did not send. A body that is not JSON is an error also without a handler. Any other
// field that is null or missing is handled, and reported by [Dispatcher.Drift]. An event in which no money moved goes
// to the handler of its type, with AllowTest.
func (d *Dispatcher) Route(e idem.Event) (idem.Work, error) {
	if e.Type != Plain(e.Type) && d.Ignores(e.Type) {
		return nil, nil
	}
	e.Type = Plain(e.Type)
	work, err := d.Routes.Route(e)
	if e.Type == PingType {
		return work, err
	}
	if work == nil && err == nil && e.Type != "" && !json.Valid(e.Payload) {
		err = fmt.Errorf("%s: the body of a %s is not JSON: see what changes it on the way", d.Name(), e.Type)
	}
	d.Watch.Look(e.Type, d.definition().places().of(e.Type).empty, err, e.Payload)
	return work, err
}

// Ignores is [idem.Routes.Ignores]. A test of the address without a handler is
// ignored as well, and without AllowTest an event in which no money moved.
func (d *Dispatcher) Ignores(eventType string) bool {
	plain := Plain(eventType)
	switch {
	case d.Routes.Ignores(plain), plain != eventType && !d.AllowTest:
		return true
	case plain == PingType, d.definition().places().of(plain).ping:
		return !d.Routes.Handles(plain)
	}
	return false
}

// credentials are the accounts that may have sent a request.
func (d *Dispatcher) credentials(r *http.Request) ([]idem.Credentials, error) {
	unscoped := d.unscoped()
	if d.Accounts == nil {
		return []idem.Credentials{unscoped}, nil
	}
	accounts, err := d.Accounts(r)
	if err == nil && slices.ContainsFunc(accounts, func(c idem.Credentials) bool { return c.Scope == "" }) {
		err = errors.New(d.Name() + ": Accounts returned an account without a Scope: give each a name, and give the secrets of one that has none to NewDispatcher; " +
			"if it comes from r.PathValue, the router does not set that, call r.SetPathValue before the handler")
	}
	if slices.ContainsFunc(unscoped.Secrets, isSecret) {
		accounts = append(slices.Clip(accounts), unscoped)
	}
	return accounts, err
}

// unscoped is the account of NewDispatcher's secrets.
func (d *Dispatcher) unscoped() idem.Credentials {
	if d.secrets == nil {
		return idem.Credentials{}
	}
	return idem.Credentials{Secrets: d.secrets()}
}

func (d *Dispatcher) now() time.Time {
	if d.Now != nil {
		return d.Now()
	}
	return time.Now()
}

func (p *Definition) checkHeaders(scheme Scheme, h http.Header, accounts []idem.Credentials, now time.Time) error {
	if err := p.checkConfigured(scheme, accounts); err != nil {
		return err
	}
	if reason, hint := scheme.Check(h, now); reason != "" {
		return p.refuse(reason, hint)
	}
	return nil
}

// checkConfigured returns an error if no account has a secret that can verify. The hint names the
// mistake in the deployment: no account, no secret, an empty one, or one of another form.
func (p *Definition) checkConfigured(scheme Scheme, accounts []idem.Credentials) error {
	given, wrong := 0, false
	for _, a := range accounts {
		if scheme == nil {
			break
		}
		if scheme == (None{}) || slices.ContainsFunc(a.Secrets, func(s string) bool { return canVerify(scheme, s) }) {
			return nil
		}
		given += len(a.Secrets)
		wrong = wrong || slices.ContainsFunc(a.Secrets, isSecret)
	}
	say := termsOf(scheme)
	secret := say.secret
	switch {
	case scheme == nil:
		return p.refuse(idem.ReasonNotConfigured, "the Dispatcher has no Scheme: make it with NewDispatcher")
	case len(accounts) == 0:
		return p.refuse(ReasonUnknownAccount, "no account may send this request: see what Accounts returns for it")
	case given == 0:
		return p.refuse(idem.ReasonNotConfigured, "no "+secret+" was given: give the webhook's "+secret)
	case wrong:
		return p.refuse(idem.ReasonNotConfigured, fmt.Sprintf("the %ss given (%d) are %s", secret, given, say.malformed))
	}
	return p.refuse(idem.ReasonNotConfigured, fmt.Sprintf("the %ss given (%d) are empty: is the environment variable set?", secret, given))
}

// scopeOf returns the scope of the account with the secret that verifies. It always tries all
// secrets, so that its duration reveals nothing.
func (p *Definition) scopeOf(scheme Scheme, h http.Header, body []byte, accounts []idem.Credentials) (string, error) {
	var scopes []string
	say := termsOf(scheme)
	for _, a := range accounts {
		secrets := a.Secrets
		if scheme == (None{}) {
			secrets = []string{"none is needed"}
		}
		for _, secret := range secrets {
			if verifies := scheme.Verifies(h, body, secret); verifies && isSecret(secret) && !slices.Contains(scopes, a.Scope) {
				scopes = append(scopes, a.Scope)
			}
			say.compare = cmp.Or(say.oddity(secret), say.compare)
		}
	}
	switch len(scopes) {
	case 0:
		if token, ok := scheme.(Token); ok {
			return "", &idem.Refusal{
				Source: p.Source, Reason: say.wrong, Hint: say.compare, WrongSecret: true, SentToken: idem.BodyID([]byte(sent(h, token.Header))),
			}
		}
		switch whole := peek.Members(body, func(_, _ []byte) {}); {
		case len(bytes.TrimSpace(body)) == 0:
			return "", p.altered(idem.ReasonEmptyBody, "the body is empty: "+notAsSigned)
		case !whole:
			return "", p.altered(say.wrong, "the body is no JSON object: "+notAsSigned)
		}
		return "", &idem.Refusal{Source: p.Source, Reason: say.wrong, Hint: say.compare, WrongSecret: true}
	case 1:
		return scopes[0], nil
	}
	return "", &idem.Refusal{
		Source: p.Source, Reason: say.ambiguous, Misconfigured: true,
		Hint: "the " + say.secret + " belongs to accounts of different scopes: give each account's webhook a " + say.secret +
			" of its own; those of NewDispatcher have no scope",
	}
}

const notAsSigned = "something in front of the receiver has changed it, so that no signature fits: have that pass bodies on unchanged"

// altered refuses a delivery that may be the provider's, but whose body was not read whole or was altered.
func (p *Definition) altered(reason idem.Reason, hint string) error {
	return &idem.Refusal{Source: p.Source, Reason: reason, Hint: hint, WrongSecret: true, Altered: true}
}

// checkTime refuses a verified delivery whose signed time is too far from now. The tolerance for the
// past grows to remembered, the time for which the receiver recognizes a repeated event.
func (d *Dispatcher) checkTime(h http.Header, body []byte, remembered time.Duration) error {
	scheme, ok := d.Scheme.(Timer)
	if !ok {
		return nil
	}
	at, tolerance, ok := scheme.SignedAt(h)
	if !ok {
		return nil
	}
	refusal := &idem.Refusal{Source: d.Name(), SignedBody: idem.BodyID(body)}
	switch age := d.now().Sub(at); {
	case age > tolerance && (remembered <= 0 || age > remembered):
		refusal.Reason = ReasonStale
		refusal.Hint = "signed by the right secret, " + apart(age) + " ago: check this server's clock, or whether something holds deliveries back or repeats them"
	case age < -tolerance:
		refusal.Reason = ReasonFuture
		refusal.Hint = "signed by the right secret, " + apart(age) + " in the future: check this server's clock, and that the time is in seconds, not milliseconds"
	default:
		return nil
	}
	return refusal
}

// apart returns the size of a duration in words.
func apart(d time.Duration) string {
	d = d.Abs() // negating the smallest one, to which the difference of milliseconds overflows, does nothing
	if d >= 2*time.Minute {
		return fmt.Sprintf("%.0f minutes", d.Minutes())
	}
	return fmt.Sprintf("%.0f seconds", d.Seconds())
}

// logTest logs an event that is ignored because no money moved.
func (d *Dispatcher) logTest(ctx context.Context, e idem.Event) {
	if e.Type == Plain(e.Type) || d.AllowTest {
		return
	}
	d.log(ctx, slog.LevelInfo, "a test payment is ignored: no money moved; set AllowTest of the Dispatcher where handlers should get it",
		slog.String("scope", e.Scope), slog.String("id", e.ID), slog.String("key", e.Key))
}

func (d *Dispatcher) log(ctx context.Context, level slog.Level, text string, attrs ...slog.Attr) {
	if d.Logger == nil {
		return
	}
	defer func() { _ = recover() }() // a panic of the logger cannot be reported, and the delivery is genuine
	d.Logger.LogAttrs(ctx, level, d.Name()+": "+text, attrs...)
}

func (p *Definition) refuse(reason idem.Reason, hint string) error {
	return &idem.Refusal{Source: p.Source, Reason: reason, Hint: hint}
}

// Sign sets the headers that the provider would send with a body, for tests.
func (p *Definition) Sign(scheme Scheme, h http.Header, body []byte, secret string, now time.Time) error {
	_, said := p.identify(body, look(nil, body), words{})
	for _, unsigned := range p.Headers {
		if text := unsigned.signed(said, strconv.FormatInt(now.Unix(), 10)); text != "" {
			h.Set(unsigned.Name, text)
		}
	}
	return scheme.Sign(h, body, secret, now)
}
