package provider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/drift"
	"github.com/paghooks/paghooks/idem/internal/handling"
)

// Receiver does the work of a dispatcher, with its settings. A package with a Dispatcher that
// is written by hand makes one for each call. The fields are those of [Dispatcher].
type Receiver struct {
	*Definition

	Routes        *idem.Routes
	Watch         *drift.Watch
	Scheme        Scheme
	Secrets       []string // of the account that has scope ""
	Accounts      func(r *http.Request) ([]idem.Credentials, error)
	AllowTest     bool
	StrictHeaders bool
	Logger        *slog.Logger
	Now           func() time.Time
}

// Open is [idem.Source]'s.
func (v Receiver) Open(r *http.Request) (idem.Event, error) {
	accounts, err := v.Credentials(r)
	if err != nil {
		return idem.Event{}, err
	}
	if err := v.checkHeaders(v.Scheme, r.Header, accounts, v.now()); err != nil {
		return idem.Event{}, err
	}
	var scope string
	_, early := v.Scheme.(Token) // the body of a stranger is not even read
	if early {
		if scope, err = v.scopeOf(v.Scheme, r.Header, nil, accounts); err != nil {
			return idem.Event{}, err
		}
	}
	body, err := idem.ReadBody(r)
	if err != nil {
		return idem.Event{}, err
	}
	if !early {
		if scope, err = v.scopeOf(v.Scheme, r.Header, body, accounts); err != nil {
			return idem.Event{}, err
		}
	}
	var room [12]member
	e, said := v.identify(body, look(room[:0], body))
	var remembered time.Duration
	if said.id != "" { // a second delivery of it is a duplicate
		remembered = handling.Remembered(r.Context())
	}
	if err := v.checkTime(r.Header, body, remembered); err != nil {
		return idem.Event{}, err
	}
	if err := v.compare(r, said, e.Type); err != nil {
		return idem.Event{}, err
	}
	e.Scope = scope
	v.logTest(r.Context(), e)
	return e, nil
}

// Verify checks a delivery with Secrets, for receivers that do not use [idem].
func (v Receiver) Verify(h http.Header, body []byte) error {
	accounts := []idem.Credentials{{Secrets: v.Secrets}}
	if err := v.checkHeaders(v.Scheme, h, accounts, v.now()); err != nil {
		return err
	}
	if _, err := v.scopeOf(v.Scheme, h, body, accounts); err != nil {
		return err
	}
	if err := v.checkTime(h, body, 0); err != nil || !v.StrictHeaders {
		return err
	}
	_, said := v.identify(body, look(nil, body))
	if found := v.contradictions(h, v.Scheme, said); len(found) > 0 {
		return v.contradicted(found[0])
	}
	return nil
}

// Verify checks a delivery with the default scheme. Several secrets are for a
// rotation; an empty one never verifies. The error is an [*idem.Refusal].
func (p *Definition) Verify(h http.Header, body []byte, now time.Time, secrets ...string) error {
	return Receiver{Definition: p, Scheme: p.Scheme, Secrets: secrets, Now: func() time.Time { return now }}.Verify(h, body)
}

// Configured is [Dispatcher.Configured].
func (v Receiver) Configured() error {
	if v.Accounts != nil {
		return nil
	}
	return v.checkConfigured(v.Scheme, []idem.Credentials{{Secrets: v.Secrets}})
}

// AlwaysScoped is [Dispatcher.AlwaysScoped].
func (v Receiver) AlwaysScoped() bool {
	return v.Accounts != nil && !slices.ContainsFunc(v.Secrets, isSecret)
}

// Route is [idem.Source]'s. An event in which no money moved goes to the handler of
// its type, with AllowTest.
func (v Receiver) Route(e idem.Event) (idem.Work, error) {
	if e.Type != Plain(e.Type) && v.Ignores(e.Type) {
		return nil, nil
	}
	e.Type = Plain(e.Type)
	work, err := v.Routes.Route(e)
	if e.Type == PingType {
		return work, err
	}
	v.Watch.Look(e.Type, v.places().of(e.Type).empty, err, e.Payload)
	return work, err
}

// Ignores is [idem.Source]'s.
func (v Receiver) Ignores(eventType string) bool {
	plain := Plain(eventType)
	switch {
	case v.Routes.Ignores(plain), plain != eventType && !v.AllowTest:
		return true
	case plain == PingType, v.places().of(plain).ping:
		return !v.Routes.Handles(plain)
	}
	return false
}

// Credentials are the accounts that may have sent a request.
func (v Receiver) Credentials(r *http.Request) ([]idem.Credentials, error) {
	unscoped := idem.Credentials{Secrets: v.Secrets}
	if v.Accounts == nil {
		return []idem.Credentials{unscoped}, nil
	}
	accounts, err := v.Accounts(r)
	if err == nil && slices.ContainsFunc(accounts, func(c idem.Credentials) bool { return c.Scope == "" }) {
		err = errors.New(v.Source + ": Accounts returned an account without a Scope: give each a name, and give the secrets of one that has none to NewDispatcher; " +
			"if it comes from r.PathValue, the router does not set that, call r.SetPathValue before the handler")
	}
	if slices.ContainsFunc(unscoped.Secrets, isSecret) {
		accounts = append(slices.Clip(accounts), unscoped)
	}
	return accounts, err
}

func (v Receiver) now() time.Time {
	if v.Now != nil {
		return v.Now()
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
		if scheme == (None{}) || slices.ContainsFunc(a.Secrets, func(s string) bool { return canVerify(scheme, s) }) {
			return nil
		}
		given += len(a.Secrets)
		wrong = wrong || slices.ContainsFunc(a.Secrets, isSecret)
	}
	say := termsOf(scheme)
	secret := say.secret
	switch {
	case len(accounts) == 0:
		return p.refuse(ReasonUnknownAccount, "no account may send this request: see what Accounts returns for it")
	case given == 0:
		return p.refuse(idem.ReasonNotConfigured, "no "+secret+" was given: give the webhook's "+secret)
	case wrong:
		return p.refuse(idem.ReasonNotConfigured, fmt.Sprintf("the %ss given (%d) are %s", secret, given, say.malformed))
	}
	return p.refuse(idem.ReasonNotConfigured, fmt.Sprintf("the %ss given (%d) are empty: is the environment variable set?", secret, given))
}

// canVerify reports whether a secret has the form that the scheme needs.
func canVerify(scheme Scheme, secret string) bool {
	ok := isSecret(secret)
	switch scheme := scheme.(type) {
	case RSA:
		_, ok = publicKey(secret)
	case HMAC:
		_, ok = scheme.key(secret)
	}
	return ok
}

// isSecret reports whether s is a secret, and not an unset variable.
func isSecret(s string) bool { return strings.TrimSpace(s) != "" }

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
			if say.wrong == ReasonWrongToken && strings.TrimSpace(secret) != secret {
				say.compare = "a configured token begins or ends with a space or a line break, which the provider does not send: take it away"
			}
		}
	}
	switch len(scopes) {
	case 0:
		refusal := &idem.Refusal{Source: p.Source, Reason: say.wrong, Hint: say.compare, WrongSecret: true}
		if token, ok := scheme.(Token); ok {
			refusal.SentToken = idem.BodyID([]byte(sent(h, token.Header)))
		}
		return "", refusal
	case 1:
		return scopes[0], nil
	}
	return "", &idem.Refusal{
		Source: p.Source, Reason: say.ambiguous, Misconfigured: true,
		Hint: "the " + say.secret + " belongs to accounts of different scopes: give each account's webhook a " + say.secret +
			" of its own; those of NewDispatcher have no scope",
	}
}

// terms are a scheme's words in refusals.
type terms struct {
	secret           string
	wrong, ambiguous idem.Reason
	compare          string // the remedy if no secret verifies
	malformed        string // the fault of a secret in the wrong form, and the remedy
}

func termsOf(scheme Scheme) terms {
	if _, ok := scheme.(Token); ok {
		return terms{secret: "token", wrong: ReasonWrongToken, ambiguous: ReasonAmbiguousToken, compare: "the token is not the one configured: compare it with the webhook's at the provider"}
	}
	if _, ok := scheme.(RSA); ok {
		return terms{
			"public key", ReasonWrongSignature, ReasonAmbiguousSecret,
			"no public key verifies this delivery: compare the key with the provider's, and see that nothing changes the body on the way",
			"no RSA keys as PEM: give all of the provider's public key, from -----BEGIN PUBLIC KEY----- to -----END PUBLIC KEY-----",
		}
	}
	return terms{
		"secret", ReasonWrongSignature, ReasonAmbiguousSecret,
		"no secret verifies this delivery: compare the secret with the provider's, without spaces or line breaks, and see that nothing changes the body on the way",
		"no keys in base64: give all of the provider's secret, with its prefix",
	}
}

// checkTime refuses a verified delivery whose signed time is too far from now. The tolerance for the
// past grows to remembered, the time for which the receiver recognizes a repeated event.
func (v Receiver) checkTime(h http.Header, body []byte, remembered time.Duration) error {
	scheme, ok := v.Scheme.(interface {
		SignedAt(h http.Header) (at time.Time, tolerance time.Duration, ok bool)
	})
	if !ok {
		return nil
	}
	at, tolerance, ok := scheme.SignedAt(h)
	if !ok {
		return nil
	}
	refusal := &idem.Refusal{Source: v.Source, SignedBody: idem.BodyID(body)}
	switch age := v.now().Sub(at); {
	case age > tolerance && (remembered <= 0 || age > remembered):
		refusal.Reason = ReasonStale
		refusal.Hint = "signed by the right secret, " + apart(age) + " ago: check this server's clock, or whether something holds deliveries back or repeats them"
	case age < -tolerance:
		refusal.Reason = ReasonFuture
		refusal.Hint = "signed by the right secret, " + apart(-age) + " in the future: check this server's clock, and that the time is in seconds, not milliseconds"
	default:
		return nil
	}
	return refusal
}

// apart returns a duration in words.
func apart(d time.Duration) string {
	if d >= 2*time.Minute {
		return fmt.Sprintf("%.0f minutes", d.Minutes())
	}
	return fmt.Sprintf("%.0f seconds", d.Seconds())
}

// compare refuses, or reports, contradictions of headers.
func (v Receiver) compare(r *http.Request, said words, eventType string) error {
	for _, c := range v.contradictions(r.Header, v.Scheme, said) {
		if v.StrictHeaders {
			return v.contradicted(c)
		}
		v.observe(r.Context(), Plain(eventType), c)
	}
	return nil
}

// contradiction is an unsigned header that differs from the signed body.
type contradiction struct {
	header string
	reason idem.Reason
}

var mismatches = map[string]idem.Reason{
	"{time}": ReasonTimestampMismatch, "{id}": ReasonEventIDMismatch, "{type}": ReasonEventTypeMismatch,
}

// contradictions compares the unsigned headers with the signed body. A value that is missing or
// empty in the header or in the body contradicts nothing.
func (p *Definition) contradictions(h http.Header, scheme Scheme, said words) (out []contradiction) {
	at := ""
	if timed, ok := scheme.(HMAC); ok && len(p.Headers) > 0 {
		at = timed.time(h)
	}
	for _, unsigned := range p.Headers {
		signed := unsigned.signed(said, at)
		switch value, count := sentAs(h, unsigned.Name); {
		case count > 1:
			out = append(out, contradiction{unsigned.Name, ReasonDuplicateHeader})
		case value != "" && signed != "" && value != signed:
			out = append(out, contradiction{unsigned.Name, mismatches[unsigned.Says]})
		}
	}
	return out
}

// signed returns the signed value that a header repeats; at is the time that was signed.
func (u Header) signed(said words, at string) string {
	switch u.Says {
	case "{time}":
		return at
	case "{id}":
		return said.id
	}
	return said.eventType
}

func (p *Definition) contradicted(c contradiction) error {
	if c.reason == ReasonDuplicateHeader {
		return p.refuse(c.reason, c.header+" comes more than once: see what a proxy adds")
	}
	return p.refuse(c.reason, c.header+" is not what was signed: something on the way changed it, or the provider does; "+
		"without StrictHeaders what was signed counts")
}

// observe has the drift report a contradiction, and logs it the first time.
func (v Receiver) observe(ctx context.Context, eventType string, c contradiction) {
	if eventType != "" && v.places().of(eventType).empty == nil {
		eventType = drift.Name(eventType)
	}
	if !v.Watch.Note(eventType, c.header, drift.HeaderDiffers) {
		return
	}
	v.log(ctx, slog.LevelWarn, "an unsigned header is not what was signed, and what was signed counts; logged once",
		slog.String("header", c.header), slog.String("type", eventType), slog.String("reason", string(c.reason)))
}

// logTest logs an event that is ignored because no money moved.
func (v Receiver) logTest(ctx context.Context, e idem.Event) {
	if e.Type == Plain(e.Type) || v.AllowTest {
		return
	}
	v.log(ctx, slog.LevelInfo, "a test payment is ignored: no money moved; set AllowTest of the Dispatcher where handlers should get it",
		slog.String("scope", e.Scope), slog.String("id", e.ID), slog.String("key", e.Key))
}

func (v Receiver) log(ctx context.Context, level slog.Level, text string, attrs ...slog.Attr) {
	if v.Logger == nil {
		return
	}
	defer func() { _ = recover() }() // a panic of the logger cannot be reported, and the delivery is genuine
	v.Logger.LogAttrs(ctx, level, v.Source+": "+text, attrs...)
}

func (p *Definition) refuse(reason idem.Reason, hint string) error {
	return &idem.Refusal{Source: p.Source, Reason: reason, Hint: hint}
}

// Sign sets the headers that the provider would send with a body, for tests.
func (p *Definition) Sign(scheme Scheme, h http.Header, body []byte, secret string, now time.Time) error {
	_, said := p.identify(body, look(nil, body))
	for _, unsigned := range p.Headers {
		if text := unsigned.signed(said, strconv.FormatInt(now.Unix(), 10)); text != "" {
			h.Set(unsigned.Name, text)
		}
	}
	return scheme.Sign(h, body, secret, now)
}
