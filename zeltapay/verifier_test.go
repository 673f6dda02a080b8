package zeltapay_test

import (
	"net/http"
	"time"

	"github.com/paghooks/paghooks/idem/provider"
	"github.com/paghooks/paghooks/zeltapay"
)

// verifier is a receiver that does not use package idem: a dispatcher with its settings.
type verifier struct {
	Secrets             []string
	SignedFormat        zeltapay.Format
	Tolerance           time.Duration
	Bare, StrictHeaders bool
	Now                 func() time.Time
}

func (v verifier) Verify(h http.Header, body []byte) error {
	d := zeltapay.NewDispatcher(v.Secrets...)
	scheme := zeltapay.SchemeHMAC
	if v.Bare {
		scheme = zeltapay.SchemeHMAC2
	}
	if v.SignedFormat != "" {
		scheme.Texts = []string{string(v.SignedFormat)}
	}
	scheme.Tolerance = v.Tolerance
	d.Scheme = scheme
	d.StrictHeaders, d.Now = v.StrictHeaders, v.Now
	return d.Verify(h, body)
}

// pinned is the scheme where one of the two texts is signed.
func pinned(f zeltapay.Format) provider.Scheme {
	scheme := zeltapay.SchemeHMAC
	scheme.Texts = []string{string(f)}
	return scheme
}
