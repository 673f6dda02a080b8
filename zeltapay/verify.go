package zeltapay

import (
	"crypto/hmac"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
)

// Verify checks that a delivery was signed with one of the secrets, less than
// five minutes ago, and was not changed since. body is the body as received,
// byte for byte: a body that was decoded and encoded again does not verify.
//
// Several secrets are for a rotation; an empty one never verifies. The error
// is an [*idem.Refusal]. Use a [Verifier] for other settings.
//
// Zelta Pay signs the time and the body, and not the other headers: what they
// say is not believed, and not compared unless [Verifier].StrictHeaders is set.
//
// See https://docs-pay.zelta.dev/guides/webhooks/signature-verification.
func Verify(h http.Header, body []byte, secrets ...string) error {
	return Verifier{Secrets: secrets}.Verify(h, body)
}

// Verifier is [Verify] with settings. Set them before its first use.
type Verifier struct {
	// Secrets are the webhook's signing secrets: the new and the old one
	// during a rotation. Empty ones never verify.
	Secrets []string

	// Tolerance is how far the signature's time may be from now, in the past
	// and in the future. Default: 300 s, as Zelta Pay recommends.
	Tolerance time.Duration

	// SignedFormat pins what Zelta Pay signs. Default: either documented format.
	SignedFormat Format

	// AllowBareSignature also accepts a Zeltapay-Signature that is only the
	// 64 hexadecimal digits, with the time in Zeltapay-Timestamp, which is how
	// Zelta Pay's Spanish quick start reads it. Default: refused.
	AllowBareSignature bool

	// StrictHeaders refuses a delivery whose unsigned Zeltapay-Event-Id,
	// Zeltapay-Event-Type or Zeltapay-Timestamp is not what was signed, or comes
	// more than once. Zelta Pay does not promise that they are equal, and sends a
	// refused event to its dead-letter queue at once: one change there, or a proxy,
	// and every payment is refused. Default: false, what was signed counts, and
	// [Dispatcher.Drift] reports the difference.
	StrictHeaders bool

	// Now tells the time. Default: [time.Now].
	Now func() time.Time
}

// Verify checks a delivery, see the function [Verify].
func (v Verifier) Verify(h http.Header, body []byte) error {
	accounts := []idem.Credentials{{Secrets: v.Secrets}}
	s, err := v.verifyHeaders(h, accounts)
	if err != nil {
		return err
	}
	if _, err := v.verifyBody(s, body, accounts); err != nil {
		return err
	}
	if found := contradictions(h, s, headOf(body)); v.StrictHeaders && len(found) > 0 {
		return found[0].refusal()
	}
	return nil
}

// verifyHeaders checks what can be checked without the body: that there is a
// signature, and when it was made.
func (v Verifier) verifyHeaders(h http.Header, accounts []idem.Credentials) (signature, error) {
	if err := configured(accounts); err != nil {
		return signature{}, err
	}
	s, err := v.signature(h)
	if err != nil {
		return signature{}, err
	}
	return s, v.checkTime(s.timestamp)
}

// verifyBody checks the signature, and returns the scope of the account whose
// secret made it.
func (v Verifier) verifyBody(s signature, body []byte, accounts []idem.Credentials) (scope string, err error) {
	switch scopes := v.signers(s, body, accounts); len(scopes) {
	case 0:
		return "", refuse(ReasonWrongSignature, "no secret gives this signature: "+
			"compare the secret with the dashboard's, without spaces or line breaks, and verify the raw body before anything parses it")
	case 1:
		return scopes[0], nil
	}
	return "", refuse(ReasonAmbiguousSecret, "the secret belongs to accounts of different scopes: give each account a secret of its own; those of NewDispatcher have no scope")
}

// signers returns the scopes of the accounts that signed. It compares
// everything, always, so that its duration tells nothing.
func (v Verifier) signers(s signature, body []byte, accounts []idem.Credentials) []string {
	var scopes []string
	for _, a := range accounts {
		for _, secret := range a.Secrets {
			if v.signed(s, body, secret) && !slices.Contains(scopes, a.Scope) {
				scopes = append(scopes, a.Scope)
			}
		}
	}
	return scopes
}

func (v Verifier) signed(s signature, body []byte, secret string) bool {
	match := false
	for _, prefix := range v.SignedFormat.prefixes() {
		want := mac(secret, prefix, s.timestamp, body)
		for _, got := range s.macs {
			if hmac.Equal(want, got) {
				match = true
			}
		}
	}
	return match && isSecret(secret)
}

func (v Verifier) checkTime(timestamp string) error {
	at, err := unixSeconds(timestamp)
	if err != nil {
		return err
	}
	now, tolerance := time.Now, 300*time.Second
	if v.Now != nil {
		now = v.Now
	}
	if v.Tolerance != 0 {
		tolerance = v.Tolerance
	}
	switch age := now().Sub(at); {
	case age > tolerance:
		return refuse(ReasonStale, "it was signed too long ago: check this server's clock, or whether something holds deliveries back or repeats them")
	case age < -tolerance:
		return refuse(ReasonFuture, "it was signed in the future: check this server's clock, and that the time is in seconds, not milliseconds")
	}
	return nil
}

// configured refuses to verify with nothing, a mistake in the deployment.
func configured(accounts []idem.Credentials) error {
	if len(accounts) == 0 {
		return refuse(ReasonUnknownAccount, "no account may send this request: see what Accounts returns for it")
	}
	for _, a := range accounts {
		if slices.ContainsFunc(a.Secrets, isSecret) {
			return nil
		}
	}
	return refuse(ReasonNotConfigured, "there is no secret, or only empty ones: is the environment variable set?")
}

// isSecret tells a secret from what an unset variable in a configuration turns
// into.
func isSecret(s string) bool { return strings.TrimSpace(s) != "" }
