package zeltapay

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health/canary"
	"github.com/paghooks/paghooks/idem/provider"
)

// EventTestPayment is the type of a payment.success in which no money moved:
// its transaction.isTest is true. Zelta Pay does not send this name. [Identify]
// gives it to the event, so that logs, metrics and the stored event show it.
const EventTestPayment EventType = EventPaymentSuccess + provider.TestSuffix

// Format is the text that Zelta Pay signs: Texts of [SchemeHMAC]. Its documentation shows two and
// does not say which is right, so that either verifies. They cannot be confused: a
// timestamp is digits only. To pin one:
//
//	scheme := zeltapay.SchemeHMAC
//	scheme.Texts = string(zeltapay.FormatPrefixed)
//	events.Scheme = scheme
type Format string

const (
	// FormatPrefixed is that of the page on signatures:
	// https://docs-pay.zelta.dev/guides/webhooks/signature-verification.
	FormatPrefixed Format = "t={time}.{body}"

	// FormatPlain is that of the Spanish quick start:
	// https://docs.zelta.dev/zelta-pay/funcionalidades/webhooks.
	FormatPlain Format = "{time}.{body}"
)

// Sign sets the headers that Zelta Pay would send with body: signature,
// timestamp, and the event's id and type where the body has them. It is for
// the tests of your endpoint. It signs in [FormatPrefixed].
func Sign(h http.Header, body []byte, secret string, at time.Time) {
	FormatPrefixed.Sign(h, body, secret, at)
}

// Sign is the function [Sign] in this format, FormatPrefixed for "".
func (f Format) Sign(h http.Header, body []byte, secret string, at time.Time) {
	scheme := SchemeHMAC
	if f != "" {
		scheme.Texts = string(f)
	}
	_ = definition.Sign(scheme, h, body, secret, at) // an HMAC is made of any secret
}

// AnySignature is a scheme that verifies the documented header, as [SchemeHMAC] does, and the bare digits of the
// Spanish quick start, as [SchemeHMAC2] does: no delivery is refused if Zelta Pay changes from one to the other.
//
//	events.Scheme = zeltapay.AnySignature{}
type AnySignature struct {
	Format    Format        // pins the text that is signed; default: either
	Tolerance time.Duration // default: 300 seconds
}

// Check implements [provider.Scheme].
func (s AnySignature) Check(h http.Header, now time.Time) (idem.Reason, string) {
	return s.of(h).Check(h, now)
}

// Verifies implements [provider.Scheme].
func (s AnySignature) Verifies(h http.Header, body []byte, secret string) bool {
	return s.of(h).Verifies(h, body, secret)
}

// Sign implements [provider.Scheme]. It makes the documented header.
func (s AnySignature) Sign(h http.Header, body []byte, secret string, now time.Time) error {
	return s.with(SchemeHMAC).Sign(h, body, secret, now)
}

// SignedAt implements [provider.Timer].
func (s AnySignature) SignedAt(h http.Header) (at time.Time, tolerance time.Duration, ok bool) {
	return s.of(h).SignedAt(h)
}

// of returns the scheme of a delivery: bare digits have no equals sign.
func (s AnySignature) of(h http.Header) provider.HMAC {
	if strings.Contains(h.Get(SchemeHMAC.Header), "=") {
		return s.with(SchemeHMAC)
	}
	return s.with(SchemeHMAC2)
}

func (s AnySignature) with(scheme provider.HMAC) provider.HMAC {
	if s.Format != "" {
		scheme.Texts = string(s.Format)
	}
	scheme.Tolerance = s.Tolerance
	return scheme
}

// NewCanary returns a canary for a webhook: address is its URL at Zelta Pay,
// secret one that the receiver verifies with. Each delivery is signed anew, in both
// formats, so that it verifies where one is pinned.
func NewCanary(address, secret string) *canary.Canary {
	body, _ := json.Marshal(map[string]string{ // texts
		"type": canary.EventType, "eventId": "evt_canary_" + rand.Text(), "createdAt": time.Now().UTC().Format(time.RFC3339),
	})
	return canary.New(definition.Source, address, body, func(h http.Header, body []byte) {
		now, plain := time.Now(), make(http.Header)
		FormatPlain.Sign(plain, body, secret, now)
		_, code, _ := strings.Cut(plain.Get(SchemeHMAC.Header), ", ")
		Sign(h, body, secret, now)
		h.Set(SchemeHMAC.Header, h.Get(SchemeHMAC.Header)+", "+code)
	})
}
