package zeltapay

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"time"

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
//	scheme.Texts = []string{string(zeltapay.FormatPrefixed)}
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
		scheme.Texts = []string{string(f)}
	}
	_ = definition.Sign(scheme, h, body, secret, at) // an HMAC is made of any secret
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
