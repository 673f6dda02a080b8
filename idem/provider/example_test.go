package provider_test

import (
	"crypto"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/provider"
)

// overURL is a code over the address of the webhook and the body.
type overURL struct{ Header, URL string }

func (s overURL) Check(h http.Header, _ time.Time) (idem.Reason, string) {
	if h.Get(s.Header) == "" {
		return provider.ReasonMissingSignature, "there is no " + s.Header
	}
	return "", ""
}

func (s overURL) Verifies(h http.Header, body []byte, secret string) bool {
	return hmac.Equal([]byte(h.Get(s.Header)), []byte(s.code(body, secret)))
}

func (s overURL) Sign(h http.Header, body []byte, secret string, _ time.Time) error {
	h.Set(s.Header, s.code(body, secret))
	return nil
}

func (s overURL) code(body []byte, secret string) string {
	sum := hmac.New(sha256.New, []byte(secret))
	sum.Write([]byte(s.URL))
	sum.Write(body)
	return base64.StdEncoding.EncodeToString(sum.Sum(nil))
}

// A scheme of one's own: the address that the provider was given is in what is signed.
func ExampleScheme() {
	var scheme provider.Scheme = overURL{"X-Signature", "https://shop.example/webhooks/bank"}
	h, body := make(http.Header), []byte(`{"type":"PAID"}`)
	_ = scheme.Sign(h, body, "the secret", time.Now())

	fmt.Println(scheme.Verifies(h, body, "the secret"), scheme.Verifies(h, body, "another"))
	// In a program: events.Scheme = overURL{…}
	// Output: true false
}

// semicolons is an HMAC whose header has semicolons between its parts: ts=1614265330;h1=6c….
type semicolons struct{ provider.HMAC }

func (s semicolons) commas(h http.Header) http.Header {
	h = h.Clone()
	for n, value := range h[s.Header] {
		h[s.Header][n] = strings.ReplaceAll(value, ";", ",")
	}
	return h
}

func (s semicolons) Check(h http.Header, now time.Time) (idem.Reason, string) {
	return s.HMAC.Check(s.commas(h), now)
}

func (s semicolons) Verifies(h http.Header, body []byte, secret string) bool {
	return s.HMAC.Verifies(s.commas(h), body, secret)
}

func (s semicolons) SignedAt(h http.Header) (time.Time, time.Duration, bool) {
	return s.HMAC.SignedAt(s.commas(h))
}

func (s semicolons) Sign(h http.Header, body []byte, secret string, now time.Time) error {
	err := s.HMAC.Sign(h, body, secret, now)
	h.Set(s.Header, strings.ReplaceAll(h.Get(s.Header), ",", ";"))
	return err
}

// A scheme that signs its time is a [provider.Timer]: deliveries that are too old are refused.
func ExampleTimer() {
	scheme := semicolons{provider.HMAC{Header: "X-Signature", Hash: crypto.SHA256, Texts: []string{"{time}:{body}"}, Value: "ts={time},h1={mac}"}}
	h, body := make(http.Header), []byte(`{"type":"PAID"}`)
	_ = scheme.Sign(h, body, "the secret", time.Unix(1614265330, 0))

	at, tolerance, _ := scheme.SignedAt(h)
	fmt.Println(scheme.Verifies(h, body, "the secret"), at.UTC().Format(time.DateTime), tolerance)
	// Output: true 2021-02-25 15:02:10 5m0s
}
