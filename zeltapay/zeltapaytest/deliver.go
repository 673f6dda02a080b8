package zeltapaytest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
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

// exchange sends a request to its receiver.
func (f *Fake) exchange(w *Webhook, r *http.Request) answer {
	if w.Handler != nil {
		return f.inProcess(w.Handler, r)
	}
	return f.overHTTP(r)
}

func (f *Fake) overHTTP(r *http.Request) answer {
	response, err := f.client.Do(r)
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		err = failed.Err // without the URL, which may hold a secret
	}
	if err != nil {
		return answer{err: err}
	}
	defer response.Body.Close()
	return answered(response)
}

// inProcess serves a request in this process, and waits for the answer as long as the request's context lasts.
func (f *Fake) inProcess(h http.Handler, r *http.Request) answer {
	r.RequestURI, r.RemoteAddr = r.URL.RequestURI(), "192.0.2.1:1234" // an address for documentation, RFC 5737
	done := make(chan answer, 1)
	f.begin(func() { serve(h, r, done) })
	select {
	case a := <-done:
		return a
	case <-r.Context().Done():
		return answer{err: r.Context().Err()}
	}
}

// begin runs a function that Close waits for, unless the fake is closed.
func (f *Fake) begin(work func()) {
	f.timeline.Lock()
	defer f.timeline.Unlock()
	if f.ctx.Err() == nil {
		f.inFlight.Go(work)
	}
}

// serve answers even when the handler panics, or ends the goroutine as t.Fatal does.
func serve(h http.Handler, r *http.Request, done chan<- answer) {
	a := answer{err: errors.New("the handler ended without an answer")}
	defer func() {
		if p := recover(); p != nil {
			a.err = fmt.Errorf("the handler panicked: %v", p)
		}
		done <- a
	}()
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, r)
	a = answered(recorder.Result())
}

// maxAnswer is the number of bytes of an answer that are kept.
const maxAnswer = 4096

// answer is a receiver's; or the error instead of one, or of one that does not count.
type answer struct {
	status int
	body   string
	err    error
}

func (a answer) entry(k Kind, fault Fault) Entry {
	e := Entry{Kind: k, Status: a.status, Answer: a.body, Fault: fault}
	if a.err != nil {
		e.Error = a.err.Error()
	}
	return e
}

func answered(response *http.Response) answer {
	body, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer)) // the status has come, which counts
	return answer{status: response.StatusCode, body: string(body)}
}
