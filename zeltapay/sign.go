package zeltapay

import (
	"net/http"
	"strings"
	"time"
)

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
