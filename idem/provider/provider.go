// Package provider is what a provider's package stands on that gen makes of a
// spec: it verifies deliveries, names events, and takes them to their handlers.
// What differs between providers is a [Definition].
//
// A program imports the generated package, and this one only to choose another
// [Scheme].
package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/drift"
)

// Definition is what a spec says of a provider.
type Definition struct {
	Source string // part of the key of every stored event: it never changes
	Naming Naming
	Scheme Scheme                     // how deliveries are verified, unless the program chooses another
	Empty  func(eventType string) any // a pointer to a new event struct; nil for a type that is not known
}

// Dispatcher is what a generated Dispatcher embeds: an [idem.Source].
//
// The exported fields are settings: change them before the first event.
type Dispatcher struct {
	idem.Routes

	// Scheme is how deliveries are verified. Default: the first of the spec.
	Scheme Scheme

	// Accounts returns the accounts that may have sent a request. Default: one
	// account of scope "", with the secrets of NewDispatcher. The secret that
	// verifies decides the event's Scope. For a request of no known account return
	// none, which refuses it. An error, and an account without a Scope, means that
	// the provider is asked to deliver again.
	Accounts func(r *http.Request) ([]idem.Credentials, error)

	// Watch looks for what the provider sends and the spec does not know.
	Watch drift.Watch

	// Now tells the time. Default: [time.Now].
	Now func() time.Time

	about   *Definition
	secrets func() []string // a function, so that printing shows no secret
}

// Setup makes d the dispatcher of a provider, with its secrets. A generated
// NewDispatcher calls it.
func (d *Dispatcher) Setup(about *Definition, secrets ...string) {
	secrets = slices.Clone(secrets)
	d.about, d.Scheme = about, about.Scheme
	d.secrets = func() []string { return secrets }
}

// Name implements [idem.Source].
func (d *Dispatcher) Name() string { return d.about.Source }

// Open implements [idem.Source]: it checks the headers before it reads the body.
func (d *Dispatcher) Open(r *http.Request) (idem.Event, error) {
	accounts, err := d.accounts(r)
	if err != nil {
		return idem.Event{}, err
	}
	now := time.Now
	if d.Now != nil {
		now = d.Now
	}
	if err := d.about.checkHeaders(d.Scheme, r.Header, accounts, now()); err != nil {
		return idem.Event{}, err
	}
	body, err := idem.ReadBody(r)
	if err != nil {
		return idem.Event{}, err
	}
	scope, err := d.about.scopeOf(d.Scheme, r.Header, body, accounts)
	if err != nil {
		return idem.Event{}, err
	}
	e := d.about.Identify(body)
	e.Scope = scope
	return e, nil
}

func (d *Dispatcher) accounts(r *http.Request) ([]idem.Credentials, error) {
	if d.Accounts == nil {
		return []idem.Credentials{{Secrets: d.secrets()}}, nil
	}
	accounts, err := d.Accounts(r)
	if err == nil && slices.ContainsFunc(accounts, func(c idem.Credentials) bool { return c.Scope == "" }) {
		err = errors.New(d.about.Source + ": Accounts returned an account without a Scope: give each a name; " +
			"if it comes from r.PathValue, the router does not set that, call r.SetPathValue before the handler")
	}
	return accounts, err
}

// Route implements [idem.Source]. An event that lacks what it is nothing without
// is an error.
func (d *Dispatcher) Route(e idem.Event) (idem.Work, error) {
	work, err := d.Routes.Route(e)
	d.Watch.Look(e.Type, d.about.Empty(e.Type), err, e.Payload)
	return work, err
}

// Ignores is [idem.Routes.Ignores]. A test of the address without a handler is
// ignored, as well.
func (d *Dispatcher) Ignores(eventType string) bool {
	return d.Routes.Ignores(eventType) || eventType == PingType && !d.Handles(eventType)
}

// Drift returns what this dispatcher was sent and the spec does not know, since
// the program started, and never a value.
func (d *Dispatcher) Drift() []drift.Finding { return d.Watch.Findings() }

// Format implements [fmt.Formatter]: every verb shows what the Dispatcher is, and
// no secret.
func (d *Dispatcher) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "%s.Dispatcher{%d event types, secrets redacted}", d.about.Source, len(d.Routes.Types()))
}

// LogValue implements [slog.LogValuer]. It shows no secret.
func (d *Dispatcher) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(d)) }

// MarshalJSON implements [json.Marshaler]. It shows no secret.
func (d *Dispatcher) MarshalJSON() ([]byte, error) { return json.Marshal(fmt.Sprint(d)) }

// Verify checks a delivery with the default scheme. Several secrets are for a
// rotation; an empty one never verifies. The error is an [*idem.Refusal].
func (p *Definition) Verify(h http.Header, body []byte, now time.Time, secrets ...string) error {
	accounts := []idem.Credentials{{Secrets: secrets}}
	if err := p.checkHeaders(p.Scheme, h, accounts, now); err != nil {
		return err
	}
	_, err := p.scopeOf(p.Scheme, h, body, accounts)
	return err
}

func (p *Definition) checkHeaders(scheme Scheme, h http.Header, accounts []idem.Credentials, now time.Time) error {
	switch {
	case len(accounts) == 0:
		return p.refuse(ReasonUnknownAccount, "no account may send this request: see what Accounts returns for it")
	case !slices.ContainsFunc(accounts, func(a idem.Credentials) bool { return slices.ContainsFunc(a.Secrets, isSecret) }) && scheme != (None{}):
		return p.refuse(idem.ReasonNotConfigured, "there is no secret, or only empty ones: is the environment variable set?")
	}
	if reason, hint := scheme.Check(h, now); reason != "" {
		return p.refuse(reason, hint)
	}
	return nil
}

// scopeOf finds the account whose secret verifies. It tries all of them, always,
// so that its duration tells nothing.
func (p *Definition) scopeOf(scheme Scheme, h http.Header, body []byte, accounts []idem.Credentials) (string, error) {
	var scopes []string
	for _, a := range accounts {
		secrets := a.Secrets
		if scheme == (None{}) {
			secrets = []string{"none is needed"}
		}
		for _, secret := range secrets {
			if verifies := scheme.Verifies(h, body, secret); verifies && isSecret(secret) && !slices.Contains(scopes, a.Scope) {
				scopes = append(scopes, a.Scope)
			}
		}
	}
	switch len(scopes) {
	case 0:
		return "", p.refuse(ReasonWrongSignature, "no secret verifies this delivery: compare the secret with the provider's, "+
			"without spaces or line breaks, and see that nothing changes the body on the way")
	case 1:
		return scopes[0], nil
	}
	return "", p.refuse(ReasonAmbiguousSecret, "the secret belongs to accounts of different scopes: give each account a secret of its own")
}

func (p *Definition) refuse(reason idem.Reason, hint string) error {
	return &idem.Refusal{Source: p.Source, Reason: reason, Hint: hint}
}

// isSecret tells a secret from what an unset variable turns into.
func isSecret(s string) bool { return strings.TrimSpace(s) != "" }
