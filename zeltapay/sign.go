package zeltapay

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
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

// prefixes returns what may stand before the timestamp.
func (f Format) prefixes() []string {
	switch f {
	case FormatAny:
		return []string{"t=", ""}
	case FormatPrefixed:
		return []string{"t="}
	case FormatPlain:
		return []string{""}
	}
	return nil
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
	prefix := "t="
	if f == FormatPlain {
		prefix = ""
	}
	timestamp := strconv.FormatInt(at.Unix(), 10)
	sum := mac(secret, prefix, timestamp, body)
	h.Set(headerSignature, "t="+timestamp+", v1="+hex.EncodeToString(sum))
	h.Set(headerTimestamp, timestamp)

	signed := headOf(body)
	if signed.EventID != "" {
		h.Set(headerEventID, signed.EventID)
	}
	if signed.Type != "" {
		h.Set(headerEventType, string(signed.Type))
	}
}

// mac is HMAC-SHA256 over <prefix><timestamp>.<body>.
func mac(secret, prefix, timestamp string, body []byte) []byte {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(prefix + timestamp + "."))
	m.Write(body)
	return m.Sum(nil)
}
