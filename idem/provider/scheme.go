package provider

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	_ "crypto/sha512" // for HMAC.Hash
	"crypto/subtle"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	_ "crypto/sha1" // for HMAC.Hash: some providers sign with nothing else

	"github.com/paghooks/paghooks/idem"
)

// Why a delivery was refused: the Reason of an [idem.Refusal].
const (
	ReasonUnknownAccount     idem.Reason = "unknown_account"     // Accounts knows no account that may send this
	ReasonMissingSignature   idem.Reason = "missing_signature"   // the header is not there, or empty
	ReasonDuplicateHeader    idem.Reason = "duplicate_header"    // one header, several times
	ReasonMalformedSignature idem.Reason = "malformed_signature" // not the form that the spec says
	ReasonStale              idem.Reason = "stale"               // signed too long ago
	ReasonFuture             idem.Reason = "future"              // signed too far in the future
	ReasonWrongSignature     idem.Reason = "wrong_signature"     // no secret verifies it
	ReasonAmbiguousSecret    idem.Reason = "ambiguous_secret"    // the secret belongs to two scopes
)

// Scheme is a way in which deliveries are verified. A scheme is comparable.
type Scheme interface {
	// Check checks what the headers alone show. The reason is "" where nothing is
	// wrong.
	Check(h http.Header, now time.Time) (reason idem.Reason, hint string)

	// Verifies reports whether a secret verifies a delivery. Its duration does
	// not depend on how much of a signature is right.
	Verifies(h http.Header, body []byte, secret string) bool

	// Sign sets the headers of a delivery, for tests.
	Sign(h http.Header, body []byte, secret string, now time.Time) error
}

// Token is a secret that is sent as it is, in a header.
type Token struct{ Header string }

// Check implements [Scheme].
func (t Token) Check(h http.Header, _ time.Time) (idem.Reason, string) { return once(h, t.Header) }

// Verifies implements [Scheme].
func (t Token) Verifies(h http.Header, _ []byte, secret string) bool {
	a, b := sha256.Sum256([]byte(sent(h, t.Header))), sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

// Sign implements [Scheme].
func (t Token) Sign(h http.Header, _ []byte, secret string, _ time.Time) error {
	h.Set(t.Header, secret)
	return nil
}

// RSA is a signature of the body by PKCS #1 v1.5, in base64. A secret is the
// provider's public key as PEM; to sign in a test, a private key as PEM, which
// verifies as well.
type RSA struct {
	Header string
	Hash   crypto.Hash
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
	block, _ := pem.Decode([]byte(secret))
	if block == nil {
		return errors.New("provider: a delivery is signed with a private RSA key as PEM: give one")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	private, ok := key.(*rsa.PrivateKey)
	if err != nil || !ok {
		return errors.New("provider: a delivery is signed with a private RSA key in PKCS #8: give one")
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
	block, _ := pem.Decode([]byte(secret))
	if block == nil {
		return nil, false
	}
	if key, err := x509.ParsePKIXPublicKey(block.Bytes); err == nil {
		public, ok := key.(*rsa.PublicKey)
		return public, ok
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	private, ok := key.(*rsa.PrivateKey)
	if err != nil || !ok {
		return nil, false
	}
	return &private.PublicKey, true
}

// HMAC is a code over a text that has the body in it.
type HMAC struct {
	Header     string
	Hash       crypto.Hash
	Base64     bool   // else hexadecimal digits
	Texts      string // what is signed, such as {time}.{body}; of several, parted by line breaks, any
	Value      string // of the header, such as t={time},v1={mac}; default: {mac}
	TimeHeader string // has {time}, Unix seconds, where Value has not
	Tolerance  time.Duration
	KeyPrefix  string // a secret that begins so has its key behind it, in base64
}

// StandardWebhooks is the scheme of https://www.standardwebhooks.com, with
// symmetric keys (v1).
var StandardWebhooks = HMAC{
	Header: "Webhook-Signature", Hash: crypto.SHA256, Base64: true, Texts: "{header:Webhook-Id}.{time}.{body}",
	Value: "v1,{mac}", TimeHeader: "Webhook-Timestamp", KeyPrefix: "whsec_",
}

// Check implements [Scheme].
func (s HMAC) Check(h http.Header, now time.Time) (idem.Reason, string) {
	if reason, hint := once(h, s.Header); reason != "" {
		return reason, hint
	}
	at, macs := s.read(h)
	if len(macs) == 0 || len(macs) > 8 {
		return ReasonMalformedSignature, s.Header + " is not of the form " + s.value()
	}
	if !s.timed() {
		return "", ""
	}
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return ReasonMalformedSignature, "the signature's time is not Unix seconds in digits"
	}
	tolerance := s.Tolerance
	if tolerance == 0 {
		tolerance = 300 * time.Second
	}
	switch age := now.Sub(time.Unix(seconds, 0)); {
	case age > tolerance:
		return ReasonStale, "it was signed too long ago: check this server's clock, or whether something holds deliveries back or repeats them"
	case age < -tolerance:
		return ReasonFuture, "it was signed in the future: check this server's clock"
	}
	return "", ""
}

// Verifies implements [Scheme].
func (s HMAC) Verifies(h http.Header, body []byte, secret string) bool {
	at, macs := s.read(h)
	verifies := false
	for text := range strings.SplitSeq(s.Texts, "\n") {
		want := s.mac(text, h, at, body, secret)
		for _, got := range macs {
			if hmac.Equal(want, got) {
				verifies = true
			}
		}
	}
	return verifies
}

// Sign implements [Scheme].
func (s HMAC) Sign(h http.Header, body []byte, secret string, now time.Time) error {
	at := strconv.FormatInt(now.Unix(), 10)
	if s.TimeHeader != "" {
		h.Set(s.TimeHeader, at)
	}
	text, _, _ := strings.Cut(s.Texts, "\n")
	sum := s.mac(text, h, at, body, secret)
	code := hex.EncodeToString(sum)
	if s.Base64 {
		code = base64.StdEncoding.EncodeToString(sum)
	}
	h.Set(s.Header, strings.NewReplacer("{time}", at, "{mac}", code).Replace(s.value()))
	return nil
}

func (s HMAC) value() string {
	if s.Value == "" {
		return "{mac}"
	}
	return s.Value
}

// timed reports whether the time is signed.
func (s HMAC) timed() bool { return strings.Contains(s.Texts, "{time}") }

// read reads the time and the codes of the headers. The parts of a value are
// parted by commas, or by spaces where the template has a comma in a part.
func (s HMAC) read(h http.Header) (at string, macs [][]byte) {
	at = sent(h, s.TimeHeader)
	separator, templates := ",", strings.Split(s.value(), ",")
	if s.TimeHeader != "" && strings.Contains(s.value(), ",") {
		separator, templates = " ", []string{s.value()}
	}
	for part := range strings.SplitSeq(sent(h, s.Header), separator) {
		part = strings.TrimSpace(part)
		for _, template := range templates {
			prefix, name, _ := strings.Cut(strings.TrimSpace(template), "{")
			value, ok := strings.CutPrefix(part, prefix)
			switch {
			case !ok:
			case name == "time}" && at == "":
				at = value
			case name == "mac}":
				if sum, err := s.decode(value); err == nil && len(sum) == s.Hash.Size() {
					macs = append(macs, sum)
				}
			}
		}
	}
	return at, macs
}

func (s HMAC) decode(code string) ([]byte, error) {
	if s.Base64 {
		return base64.StdEncoding.DecodeString(code)
	}
	return hex.DecodeString(code)
}

// mac is the code over a text, in which the names in braces are replaced.
func (s HMAC) mac(text string, h http.Header, at string, body []byte, secret string) []byte {
	key := []byte(secret)
	if coded, ok := strings.CutPrefix(secret, s.KeyPrefix); ok && s.KeyPrefix != "" {
		key, _ = base64.StdEncoding.DecodeString(coded)
		if len(key) == 0 {
			key = []byte(rand.Text()) // an empty key never verifies
		}
	}
	sum := hmac.New(s.Hash.New, key)
	for text != "" {
		plain, rest, found := strings.Cut(text, "{")
		sum.Write([]byte(plain))
		if !found {
			break
		}
		var name string
		name, text, _ = strings.Cut(rest, "}")
		switch header, ok := strings.CutPrefix(name, "header:"); {
		case ok:
			sum.Write([]byte(sent(h, header)))
		case name == "time":
			sum.Write([]byte(at))
		case name == "body":
			sum.Write(body)
		}
	}
	return sum.Sum(nil)
}

// None verifies nothing: whoever knows the address can make events. It is for
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
	switch values := values(h, name); {
	case len(values) > 1:
		return ReasonDuplicateHeader, name + " comes more than once: see what a proxy adds"
	case len(values) == 0 || values[0] == "":
		return ReasonMissingSignature, "there is no " + name + ": not a delivery of the provider, or a proxy dropped the header"
	}
	return "", ""
}

// sent is a header's value, whatever the header's case; "" if it does not come
// exactly once.
func sent(h http.Header, name string) string {
	if values := values(h, name); len(values) == 1 {
		return values[0]
	}
	return ""
}

func values(h http.Header, name string) (out []string) {
	for key, values := range h {
		if strings.EqualFold(key, name) {
			out = append(out, values...)
		}
	}
	return out
}
