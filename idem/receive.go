package idem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/wire"
)

// Delivery is a verified event that has arrived.
type Delivery struct {
	Event  Event
	DryRun bool // it has [DryRunHeader]: nothing may be stored, and it is not for Receive

	begun time.Time // when its first byte came; zero if it did not come by HTTP
}

// Open has the source verify and name a delivery, within the time and the size that are
// allowed. ok is false if it could not be opened: then it is answered and reported.
func (ep *Endpoint) Open(w http.ResponseWriter, r *http.Request) (d Delivery, ok bool) {
	d.begun = time.Now()
	e, err := ep.open(w, r)
	if err != nil {
		ep.refuse(w, r, d.begun, err)
		return d, false
	}
	d.Event, d.DryRun = e, isDryRun(r)
	if !d.DryRun { // a canary has the application's own secret
		ep.refused.Genuine(pathOf(r))
	}
	return d, true
}

// readTime is the time that a delivery may take to arrive.
const readTime = 8 * time.Second

// open has the source verify and read a delivery, within the time and the size
// that are allowed.
func (ep *Endpoint) open(w http.ResponseWriter, r *http.Request) (e Event, err error) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return e, &rejection{http.StatusMethodNotAllowed, fmt.Errorf("idem: method is %s: a delivery is a POST", r.Method)}
	}
	if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && server.ReadTimeout == 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTime)) // unless w is wrapped
	}
	r.Body = limitedBody{http.MaxBytesReader(w, r.Body, ep.MaxBody), ep.MaxBody}
	err = pgtx.Protect(func() (err error) {
		e, err = ep.source.Open(r)
		return err
	})
	return e, err
}

// refuse answers a request that could not be opened: 401 if it is not genuine, the status of its
// rejection if it is no delivery at all, 503 if that could not be determined.
func (ep *Endpoint) refuse(w http.ResponseWriter, r *http.Request, start time.Time, err error) {
	o := Observation{Outcome: Retrying, Err: err}
	status, body := http.StatusServiceUnavailable, `{"received":false}`
	var rejected *rejection
	var refusal *Refusal
	switch {
	case errors.As(err, &rejected):
		o.Outcome, status = Rejected, rejected.status
	case errors.As(err, &refusal):
		o.Outcome, o.Path = Refused, pathOf(r)
		if !isDryRun(r) {
			ep.countRefusal(o.Path, refusal)
		}
		body = fmt.Sprintf(`{"received":false,"reason":%q}`, string(refusal.Reason))
		if !refusal.isOwnFault() && refusal.SignedBody == "" {
			status = http.StatusUnauthorized
		}
	}
	ctx, s := ep.startSpan(r.Context(), StageDelivery, Event{}, "", start)
	s.report(ctx, o)
	respond(w, status, body)
}

func (ep *Endpoint) countRefusal(path string, r *Refusal) {
	if r.SignedBody != "" {
		ep.refused.RefuseTime(path, r.SignedBody, r.Hint)
		return
	}
	ep.refused.Refuse(path, r.WrongSecret, r.SentToken, r.OfProvider)
}

func isDryRun(r *http.Request) bool { return r.Header.Get(DryRunHeader) != "" }

// maxPath is the number of bytes of a path that are reported.
const maxPath = 200

func pathOf(r *http.Request) string { return r.URL.Path[:min(len(r.URL.Path), maxPath)] }

// Receive calls process with the event, once it can be stored for any body, and
// reports the result to Logger, Observe and Tracer. process has limit to finish; the
// sender's disconnecting does not cancel it. For a type that the source ignores it is not
// called. The error is nil if the outcome is acknowledged.
func (ep *Endpoint) Receive(
	ctx context.Context, d Delivery, limit time.Duration, process func(context.Context, Event) (Outcome, error),
) (Outcome, error) {
	return ep.receive(ctx, d, limit, func(ctx context.Context, e Event) result {
		outcome, err := process(ctx, e)
		return result{outcome: outcome, err: err}
	})
}

// receive is Receive for a process that may find a conflict.
func (ep *Endpoint) receive(
	ctx context.Context, d Delivery, limit time.Duration, process func(context.Context, Event) result,
) (Outcome, error) {
	start := d.begun
	if start.IsZero() {
		start = time.Now()
	}
	e, err := ep.normalize(d.Event)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	ctx, s := ep.startSpan(ctx, StageDelivery, e, "", start)
	var r result
	switch {
	case err != nil:
		r = result{outcome: Retrying, err: err}
	case ep.ignores(e):
		r = result{outcome: Ignored}
	default:
		r = process(ctx, e)
	}
	err = wrap(e, r.err)
	s.report(ctx, Observation{Event: e, Outcome: r.outcome, Relayed: wire.SinceRelayed(ctx, start), Conflict: r.conflict, Err: err})
	if r.outcome.Acknowledged() {
		return r.outcome, nil
	}
	return r.outcome, err
}

// result is the result of one delivery.
type result struct {
	outcome  Outcome
	conflict bool // another body is stored with the event's id
	err      error
}

// Answer answers a delivery with its outcome: 200 if that is acknowledged, and 503 if it is
// not, or in a dry run. It logs the error of a dry run.
func (ep *Endpoint) Answer(w http.ResponseWriter, r *http.Request, d Delivery, o Outcome, err error) {
	switch {
	case d.DryRun:
		if err != nil {
			ep.logError(r.Context(), "webhook dry run failed", d.Event, err)
		}
		respond(w, http.StatusServiceUnavailable, fmt.Sprintf(`{"received":false,"dry_run":%q}`, o))
	case o == Duplicate:
		respond(w, http.StatusOK, `{"received":true,"duplicate":true}`)
	case o.Acknowledged():
		respond(w, http.StatusOK, `{"received":true}`)
	default:
		respond(w, http.StatusServiceUnavailable, `{"received":false}`)
	}
}

func respond(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}
