package zeltapaytest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing/iotest"
	"time"

	"github.com/paghooks/paghooks/internal/fixture"
)

var (
	errLost = errors.New("the answer was lost")
	errCut  = errors.New("the connection broke in the body")
)

// deliver makes an attempt, and returns the answers to its copies, of which the first counts.
func (f *Fake) deliver(p *pending, fault Fault) []answer {
	at := f.signingTime(p)
	post := func() answer { return f.post(p, fault, at) }
	return fixture.Copies(post, fault.has(Concurrent), fault.has(Duplicate))
}

func (f *Fake) signingTime(p *pending) time.Time {
	if p.signed.IsZero() || !f.SignOnce {
		now := f.Now
		if f.SigningTime != nil {
			now = f.SigningTime
		}
		p.signed = now()
	}
	return p.signed
}

// post sends one copy, and returns the answer as Zelta Pay gets it.
func (f *Fake) post(p *pending, fault Fault, signed time.Time) answer {
	ctx, cancel := f.withTimeout()
	defer cancel()
	r, err := f.request(ctx, p, fault, signed)
	if err != nil {
		return answer{err: err}
	}
	a := f.exchange(p.webhook, r)
	switch {
	case fault.has(CutBody):
		return answer{err: errCut} // also where a receiver answers before it has read the body
	case ctx.Err() != nil:
		return answer{err: context.Cause(ctx)}
	case fault.has(LostAnswer) && a.err == nil:
		a.err = errLost
	}
	return a
}

func (f *Fake) request(ctx context.Context, p *pending, fault Fault, signed time.Time) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.webhook.URL, withFault(p.body, fault))
	if err != nil {
		return nil, err
	}
	r.ContentLength = int64(len(p.body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(headerAttempt, strconv.Itoa(f.FirstAttempt+p.attempts-1))
	f.sign(r.Header, p, fault, signed)
	r.Header.Set(headerEventID, p.id)
	contradict(r.Header, fault)
	return r, nil
}

// contradict makes unsigned headers differ from the signed body.
func contradict(h http.Header, fault Fault) {
	if fault.has(OtherEventID) {
		h.Set(headerEventID, newID())
	}
	if fault.has(OtherEventType) {
		h.Set(headerEventType, "payment.other")
	}
	if fault.has(OtherTimestamp) {
		h.Set(headerTimestamp, h.Get(headerTimestamp)+"000") // as milliseconds
	}
}

func (f *Fake) sign(h http.Header, p *pending, fault Fault, at time.Time) {
	secret := p.webhook.Secret
	if fault.has(WrongSecret) {
		secret = "not " + secret
	}
	if fault.has(Stale) {
		at = at.Add(-time.Hour)
	}
	f.Format.Sign(h, p.body, secret, at)
	if f.BareSignature {
		_, digits, _ := strings.Cut(h.Get(headerSignature), "v1=")
		h.Set(headerSignature, digits)
	}
}

// withFault is the body as it travels.
func withFault(body []byte, fault Fault) io.Reader {
	var r io.Reader = bytes.NewReader(body)
	if fault.has(CutBody) {
		r = io.MultiReader(bytes.NewReader(body[:len(body)/2]), iotest.ErrReader(io.ErrUnexpectedEOF))
	}
	if fault.has(SlowBody) {
		r = iotest.OneByteReader(r)
	}
	return r
}
