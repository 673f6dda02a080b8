package provider

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
)

// HMAC is a message authentication code over a text that contains the body.
type HMAC struct {
	Header     string
	Hash       crypto.Hash
	Base64     bool     // the code is in base64; false: in hexadecimal digits
	Texts      []string // the signed text, such as {time}.{body}; of several, any verifies, and the first signs
	Value      string   // of the header, such as t={time},v1={mac}; default: {mac}
	TimeHeader string   // has {time}, Unix seconds, where Value has not
	IDHeader   string   // has the event's id, where all Texts sign it: {header:Webhook-Id}
	TypeHeader string   // has the event's type, where all Texts sign it
	Tolerance  time.Duration
	KeyPrefix  string // a secret that begins so has its key behind it, in base64
}

// StandardWebhooks is the scheme of https://www.standardwebhooks.com, with
// symmetric keys (v1): signatures of other versions are skipped. Webhook-Id is the id of an event
// that has none in its body, Webhook-Timestamp its time if the body does not say when it happened.
var StandardWebhooks = HMAC{
	Header: "Webhook-Signature", Hash: crypto.SHA256, Base64: true, Texts: []string{"{header:Webhook-Id}.{time}.{body}"},
	Value: "v1,{mac}", TimeHeader: "Webhook-Timestamp", IDHeader: "Webhook-Id", KeyPrefix: "whsec_",
}

// Bounds of the verifier's work for one delivery.
const (
	maxValue = 1024
	maxCodes = 8
	maxTime  = 15 // digits; seconds have 10, milliseconds 13
)

// Check implements [Scheme]. It does not judge the time, see [HMAC.SignedAt]: the time of a forged
// signature proves nothing.
func (s HMAC) Check(h http.Header, _ time.Time) (idem.Reason, string) {
	if reason, hint := once(h, s.Header); reason != "" {
		return reason, hint
	}
	for _, name := range []string{s.IDHeader, s.TypeHeader} {
		if reason, hint := once(h, name); reason != "" && name != "" {
			return reason, hint
		}
	}
	at, _, wrong := s.read(h)
	switch {
	case wrong != "":
		return ReasonMalformedSignature, s.Header + " " + wrong + ": it is " + s.value()
	case !s.timed():
		return "", ""
	case s.TimeHeader != "":
		switch reason, hint := once(h, s.TimeHeader); reason {
		case "":
		case ReasonMissingSignature:
			return ReasonMissingTimestamp, hint
		default:
			return reason, hint
		}
	}
	if _, ok := seconds(at); !ok {
		return ReasonMalformedTimestamp, "the signature's time is not Unix seconds in digits"
	}
	return "", ""
}

// seconds parses a time that was signed.
func seconds(at string) (time.Time, bool) {
	n, err := strconv.ParseUint(at, 10, 63)
	return time.Unix(int64(n), 0), err == nil && len(at) <= maxTime
}

// SignedAt implements [Timer]. The tolerance is 300 seconds by default.
func (s HMAC) SignedAt(h http.Header) (at time.Time, tolerance time.Duration, ok bool) {
	if !s.timed() {
		return at, 0, false
	}
	text, _, _ := s.read(h)
	at, ok = seconds(text)
	if tolerance = s.Tolerance; tolerance == 0 {
		tolerance = 300 * time.Second
	}
	return at, tolerance, ok
}

// Names implements [Namer].
func (s HMAC) Names(h http.Header) (id, eventType string) {
	return s.signed(h, s.IDHeader), s.signed(h, s.TypeHeader)
}

// signed returns the value of a header, or "" if one of the texts does not sign it.
func (s HMAC) signed(h http.Header, name string) string {
	if name == "" || len(s.Texts) == 0 {
		return ""
	}
	for _, text := range s.Texts {
		if !slices.ContainsFunc(strings.Split(text, "{header:")[1:], func(rest string) bool {
			header, _, _ := strings.Cut(rest, "}")
			return strings.EqualFold(header, name)
		}) {
			return ""
		}
	}
	return sent(h, name)
}

// Verifies implements [Scheme].
func (s HMAC) Verifies(h http.Header, body []byte, secret string) bool {
	at, macs, wrong := s.read(h)
	verifies := false
	for _, text := range s.Texts {
		if text == "" { // its code fits any body
			continue
		}
		want := s.mac(text, h, at, body, secret)
		for _, got := range macs {
			if hmac.Equal(want, got) {
				verifies = true
			}
		}
	}
	return verifies && wrong == ""
}

// Sign implements [Scheme].
func (s HMAC) Sign(h http.Header, body []byte, secret string, now time.Time) error {
	if len(s.Texts) == 0 {
		return errors.New("provider: the HMAC has no Texts, so that it signs nothing; give it {body}, for example")
	}
	at := strconv.FormatInt(now.Unix(), 10)
	if s.IDHeader != "" && sent(h, s.IDHeader) == "" {
		h.Set(s.IDHeader, "msg_"+rand.Text())
	}
	if s.TimeHeader != "" {
		h.Set(s.TimeHeader, at)
	}
	sum := s.mac(s.Texts[0], h, at, body, secret)
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
func (s HMAC) timed() bool {
	return slices.ContainsFunc(s.Texts, func(text string) bool { return strings.Contains(text, "{time}") })
}

// read reads the time and the codes of the headers, and names the fault of their
// form. The parts of a value are parted by commas, or by spaces where the template
// has a comma in a part; a part that no part of the template begins like is skipped.
func (s HMAC) read(h http.Header) (at string, codes [][]byte, wrong string) {
	value, template, separator := sent(h, s.Header), s.value(), ","
	if s.TimeHeader != "" && strings.Contains(template, ",") {
		separator = " "
	}
	if len(value) > maxValue {
		return "", nil, "is too long"
	}
	timeAt, macAt := prefixes(template, separator)
	if at = sent(h, s.TimeHeader); s.TimeHeader != "" {
		timeAt = ""
	}
	for part := range strings.SplitSeq(value, separator) {
		part = strings.Trim(part, " \t")
		if text, ok := strings.CutPrefix(part, timeAt); ok && timeAt != "" {
			if at != "" {
				return "", nil, "has more than one time"
			}
			at = text
		} else if text, ok := strings.CutPrefix(part, macAt); ok {
			code, err := s.decode(text)
			if err != nil || len(code) != s.Hash.Size() {
				return "", nil, "has a code that is none"
			}
			codes = append(codes, code)
		}
	}
	switch {
	case len(codes) == 0, timeAt != "" && at == "":
		wrong = "is of another form"
	case len(codes) > maxCodes:
		wrong = "has too many codes"
	}
	return at, codes, wrong
}

// prefixes returns the text before the time and the code in the parts of a template.
func prefixes(template, separator string) (timeAt, macAt string) {
	if separator == " " {
		separator = "\n" // the template is one part
	}
	for part := range strings.SplitSeq(template, separator) {
		switch prefix, name, _ := strings.Cut(strings.TrimSpace(part), "{"); name {
		case "time}":
			timeAt = prefix
		case "mac}":
			macAt = prefix
		}
	}
	return timeAt, macAt
}

func (s HMAC) decode(code string) ([]byte, error) {
	if s.Base64 {
		return base64.StdEncoding.DecodeString(code)
	}
	return hex.DecodeString(code)
}

// key returns the key of a secret. ok is false if that is none.
func (s HMAC) key(secret string) (key []byte, ok bool) {
	coded, isCoded := strings.CutPrefix(secret, s.KeyPrefix)
	if s.KeyPrefix == "" || !isCoded {
		return []byte(secret), isSecret(secret)
	}
	key, err := base64.StdEncoding.DecodeString(coded)
	return key, err == nil && len(key) > 0
}

// mac is the code over a text, in which the names in braces are replaced.
func (s HMAC) mac(text string, h http.Header, at string, body []byte, secret string) []byte {
	key, ok := s.key(secret)
	if !ok {
		key = []byte(rand.Text()) // a random key verifies nothing
	}
	sum := hmac.New(s.Hash.New, key)
	var around []byte // the text around the body
	for text != "" {
		plain, rest, found := strings.Cut(text, "{")
		around = append(around, plain...)
		if !found {
			break
		}
		var name string
		name, text, _ = strings.Cut(rest, "}")
		switch header, ok := strings.CutPrefix(name, "header:"); {
		case ok:
			around = append(around, sent(h, header)...)
		case name == "time":
			around = append(around, at...)
		case name == "body":
			sum.Write(around)
			sum.Write(body)
			around = around[:0]
		}
	}
	sum.Write(around)
	return sum.Sum(nil)
}
