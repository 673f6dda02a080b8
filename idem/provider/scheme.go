package provider

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	_ "crypto/sha1" // for Hash: some providers sign with nothing else
	"crypto/sha256"
	_ "crypto/sha512" // for Hash
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
)

// Scheme is a way in which deliveries are verified. A scheme is comparable.
type Scheme interface {
	// Check checks the headers alone. The reason is "" where nothing is
	// wrong.
	Check(h http.Header, now time.Time) (reason idem.Reason, hint string)

	// Verifies reports whether a secret verifies a delivery. Its duration does
	// not depend on how much of a signature is right.
	Verifies(h http.Header, body []byte, secret string) bool

	// Sign sets the headers of a delivery, for tests.
	Sign(h http.Header, body []byte, secret string, now time.Time) error
}

// Namer is a [Scheme] that signs names of the event in headers. They count where the body has none.
type Namer interface {
	Scheme

	// Names returns the id and the type of the event of a delivery that verifies; "" for what is not
	// signed. The time that SignedAt of a [Timer] returns is that of the event, if the body has none.
	Names(h http.Header) (id, eventType string)
}

// Timer is a [Scheme] that signs the time of the delivery.
type Timer interface {
	Scheme

	// SignedAt returns the time that was signed, and its largest difference from now in a receiver
	// that remembers nothing; ok is false without a time. It is called once a secret has verified the
	// delivery.
	SignedAt(h http.Header) (at time.Time, tolerance time.Duration, ok bool)
}

// Why a delivery was refused: the Reason of an [idem.Refusal].
const (
	ReasonUnknownAccount     idem.Reason = "unknown_account"     // Accounts knows no account that may send this
	ReasonAddressNotAllowed  idem.Reason = "address_not_allowed" // sent from outside of AllowFrom
	ReasonMissingSignature   idem.Reason = "missing_signature"   // the header is not there, or empty
	ReasonDuplicateHeader    idem.Reason = "duplicate_header"    // one header, several times
	ReasonMalformedSignature idem.Reason = "malformed_signature" // not the form that the spec says
	ReasonMissingTimestamp   idem.Reason = "missing_timestamp"   // the header with the signature's time is not there
	ReasonMalformedTimestamp idem.Reason = "malformed_timestamp" // the signature's time is not Unix seconds in digits
	ReasonStale              idem.Reason = "stale"               // signed too long ago
	ReasonFuture             idem.Reason = "future"              // signed too far in the future
	ReasonWrongSignature     idem.Reason = "wrong_signature"     // no secret verifies it
	ReasonAmbiguousSecret    idem.Reason = "ambiguous_secret"    // the secret belongs to two scopes
)

// Why a delivery with a [Token] was refused.
const (
	ReasonMissingToken   idem.Reason = "missing_token"   // the header is not there, or empty
	ReasonSeveralTokens  idem.Reason = "several_tokens"  // the header is there more than once
	ReasonWrongToken     idem.Reason = "wrong_token"     // not a token of this application
	ReasonAmbiguousToken idem.Reason = "ambiguous_token" // the token belongs to two scopes
)

// Why a delivery is refused with StrictHeaders.
const (
	ReasonTimestampMismatch idem.Reason = "timestamp_mismatch"  // a header's time is not the signed one
	ReasonEventIDMismatch   idem.Reason = "event_id_mismatch"   // a header's id is not the body's
	ReasonEventTypeMismatch idem.Reason = "event_type_mismatch" // a header's type is not the body's
)

// Token is a secret that is sent as it is, in a header.
type Token struct{ Header string }

// RSA is a signature of the body by PKCS #1 v1.5, in base64. A secret is the
// provider's public key as PEM, with any line breaks or \n for them; to sign in a
// test, a private key as PEM, which verifies as well.
type RSA struct {
	Header string
	Hash   crypto.Hash
}

// Check implements [Scheme].
func (t Token) Check(h http.Header, _ time.Time) (idem.Reason, string) {
	switch reason, hint := once(h, t.Header); reason {
	case ReasonDuplicateHeader:
		return ReasonSeveralTokens, hint
	case ReasonMissingSignature:
		return ReasonMissingToken, "there is no " + t.Header + ": set a token where the webhook is configured at the provider, and see whether a proxy drops it"
	}
	return "", ""
}

// Verifies implements [Scheme]. It compares hashes, so that not even the length of
// a token shows.
func (t Token) Verifies(h http.Header, _ []byte, secret string) bool {
	a, b := sha256.Sum256([]byte(sent(h, t.Header))), sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// Sign implements [Scheme].
func (t Token) Sign(h http.Header, _ []byte, secret string, _ time.Time) error {
	h.Set(t.Header, secret)
	return nil
}

// Check implements [Scheme].
func (s RSA) Check(h http.Header, _ time.Time) (idem.Reason, string) { return once(h, s.Header) }

// Verifies implements [Scheme].
func (s RSA) Verifies(h http.Header, body []byte, secret string) bool {
	signature, err := base64.StdEncoding.DecodeString(sent(h, s.Header))
	key, ok := publicKey(secret)
	return err == nil && ok && rsa.VerifyPKCS1v15(key, s.Hash, digest(s.Hash, body), signature) == nil
}

// Sign implements [Scheme].
func (s RSA) Sign(h http.Header, body []byte, secret string, _ time.Time) error {
	private, ok := privateKey(keyBytes(secret))
	if !ok {
		return errors.New("provider: a delivery is signed with a private RSA key as PEM, in PKCS #8: give one")
	}
	signature, err := rsa.SignPKCS1v15(rand.Reader, private, s.Hash, digest(s.Hash, body))
	h.Set(s.Header, base64.StdEncoding.EncodeToString(signature))
	return err
}

func digest(hash crypto.Hash, body []byte) []byte {
	sum := hash.New()
	sum.Write(body)
	return sum.Sum(nil)
}

func publicKey(secret string) (*rsa.PublicKey, bool) {
	der := keyBytes(secret)
	if key, err := x509.ParsePKIXPublicKey(der); err == nil {
		public, ok := key.(*rsa.PublicKey)
		return public, ok
	}
	private, ok := privateKey(der)
	if !ok {
		return nil, false
	}
	return &private.PublicKey, true
}

func privateKey(der []byte) (private *rsa.PrivateKey, ok bool) {
	key, _ := x509.ParsePKCS8PrivateKey(der) // nil is no key either
	private, ok = key.(*rsa.PrivateKey)
	return private, ok
}

// keyBytes returns the text between the first and the last line of a PEM; nil if it is
// none. Environment variables and YAML change line breaks: \n in two characters, spaces
// and indentation are all the same.
func keyBytes(secret string) []byte {
	_, rest, _ := strings.Cut(secret, "-----BEGIN ")
	_, rest, _ = strings.Cut(rest, "-----")
	text, _, ended := strings.Cut(rest, "-----END ")
	der, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(strings.NewReplacer(`\r`, " ", `\n`, " ").Replace(text)), ""))
	if err != nil || !ended {
		return nil
	}
	return der
}

// None verifies nothing: anyone that knows the address can make events. It is for
// endpoints that something in front of them guards, mutual TLS for example.
type None struct{}

// Check implements [Scheme].
func (None) Check(http.Header, time.Time) (idem.Reason, string) { return "", "" }

// Verifies implements [Scheme].
func (None) Verifies(http.Header, []byte, string) bool { return true }

// Sign implements [Scheme].
func (None) Sign(http.Header, []byte, string, time.Time) error { return nil }

// once checks that a header comes exactly once: of two, a proxy could read one and
// this server the other.
func once(h http.Header, name string) (idem.Reason, string) {
	switch value, count := sentAs(h, name); {
	case count > 1:
		return ReasonDuplicateHeader, name + " comes more than once: see what a proxy adds"
	case value == "":
		return ReasonMissingSignature, "there is no " + name + ": not a delivery of the provider, or a proxy dropped the header"
	}
	return "", ""
}

// sent returns a header's value, or "" if the header does not come exactly once.
func sent(h http.Header, name string) string {
	value, count := sentAs(h, name)
	if count > 1 {
		return ""
	}
	return value
}

// sentAs returns a value of a header and the number of its values, whatever the case of the header's
// name: API gateways pass headers on in lower case.
func sentAs(h http.Header, name string) (value string, count int) {
	for key, values := range h {
		if len(key) == len(name) && strings.EqualFold(key, name) && len(values) > 0 {
			count += len(values)
			value = values[0]
		}
	}
	return value, count
}
