package provider

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
)

// terms are the words for a scheme's secrets, and for those that do not verify.
type terms struct {
	secret           string
	wrong, ambiguous idem.Reason
	compare          string // the remedy for one that does not verify
	malformed        string // the fault of one that is of another form, and its remedy
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

func (p *Definition) checkHeaders(scheme Scheme, h http.Header, accounts []idem.Credentials, now time.Time) error {
	if err := p.checkConfigured(scheme, accounts); err != nil {
		return err
	}
	if reason, hint := scheme.Check(h, now); reason != "" {
		return p.refuse(reason, hint)
	}
	return nil
}

// checkConfigured tells apart the ways to have nothing to verify with, all of them
// a mistake in the deployment.
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

// canVerify reports whether a secret is one, as far as that can be seen.
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

// scopeOf finds the account with the secret that verifies. It tries all of them, always,
// so that its duration tells nothing.
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
