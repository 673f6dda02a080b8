package zeltapay

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem/provider"
)

// Verify checks that a delivery was signed with one of the secrets, less than
// five minutes ago, and was not changed since. body is the body as received,
// byte for byte: a body that was decoded and encoded again does not verify.
//
// Several secrets are for a rotation; an empty one never verifies. The error
// is an [*idem.Refusal]. Use a [Verifier] for other settings.
//
// Zelta Pay signs the time and the body, and not the other headers: their content
// is not believed, and not compared unless [Verifier].StrictHeaders is set.
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

	// Tolerance is the largest difference between the signature's time and now, in the past
	// and in the future. Default: 300 s, as Zelta Pay recommends.
	Tolerance time.Duration

	// SignedFormat pins the format that Zelta Pay signs. Default: either documented format.
	SignedFormat Format

	// AllowBareSignature also accepts a Zeltapay-Signature that is only the
	// 64 hexadecimal digits, with the time in Zeltapay-Timestamp, which is how
	// Zelta Pay's Spanish quick start reads it. Default: refused.
	AllowBareSignature bool

	// StrictHeaders refuses a delivery if its unsigned Zeltapay-Event-Id,
	// Zeltapay-Event-Type or Zeltapay-Timestamp differs from the signed body, or comes
	// more than once. Zelta Pay does not promise that they are equal, and sends a
	// refused event to its dead-letter queue at once: one change there, or a proxy,
	// and every payment is refused. Default: false, the signed body counts, and
	// [Dispatcher.Drift] reports the difference.
	StrictHeaders bool

	// Now returns the time. Default: [time.Now].
	Now func() time.Time
}

// Verify checks a delivery, see the function [Verify].
func (v Verifier) Verify(h http.Header, body []byte) error { return v.receiver(h).Verify(h, body) }

// receiver has the settings, and the form that the signature has in h.
func (v Verifier) receiver(h http.Header) provider.Receiver {
	scheme := schemeHMAC
	if v.AllowBareSignature && schemeHMAC2.Fits(h) {
		scheme = schemeHMAC2
	}
	scheme.Tolerance, scheme.Texts = v.Tolerance, v.SignedFormat.texts()
	return provider.Receiver{Definition: &definition, Scheme: scheme, Secrets: v.Secrets, StrictHeaders: v.StrictHeaders, Now: v.Now}
}

// Format implements [fmt.Formatter]: every verb shows how many secrets there
// are, and none of them.
func (v Verifier) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "zeltapay.Verifier{%d secrets redacted}", len(v.Secrets))
}

// LogValue implements [slog.LogValuer]. It shows no secret.
func (v Verifier) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(v)) }

// MarshalJSON implements [json.Marshaler]. It shows no secret.
func (v Verifier) MarshalJSON() ([]byte, error) { return fmt.Appendf(nil, "%q", fmt.Sprint(v)), nil }

// Format is the string that Zelta Pay signs. Its documentation shows two and
// does not say which is right, so that by default either verifies. They cannot
// be confused: a timestamp is digits only.
type Format int

const (
	// FormatAny is either of the two formats.
	FormatAny Format = iota

	// FormatPrefixed signs t=<timestamp>.<body>, as the page on signatures says:
	// https://docs-pay.zelta.dev/guides/webhooks/signature-verification.
	FormatPrefixed

	// FormatPlain signs <timestamp>.<body>, as the Spanish quick start says:
	// https://docs.zelta.dev/zelta-pay/funcionalidades/webhooks.
	FormatPlain
)

// texts are the templates of the signed text; none for a format that there is not.
func (f Format) texts() string {
	prefixed, plain, _ := strings.Cut(schemeHMAC.Texts, "\n")
	switch f {
	case FormatAny:
		return schemeHMAC.Texts
	case FormatPrefixed:
		return prefixed
	case FormatPlain:
		return plain
	}
	return ""
}

// Sign sets the headers that Zelta Pay would send with body: signature,
// timestamp, and the event's id and type where the body has them. It is for
// the tests of your endpoint.
//
// It signs in [FormatPrefixed]; FormatPlain.Sign signs in the other format.
func Sign(h http.Header, body []byte, secret string, at time.Time) {
	FormatPrefixed.Sign(h, body, secret, at)
}

// Sign is the function [Sign] in this format, FormatPrefixed for [FormatAny].
func (f Format) Sign(h http.Header, body []byte, secret string, at time.Time) {
	scheme := schemeHMAC
	scheme.Texts = f.texts()
	_ = definition.Sign(scheme, h, body, secret, at) // an HMAC is made of any secret
}
