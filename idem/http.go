package idem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// ServeHTTP receives one delivery: it has the source verify and read it, runs
// [Processor.Accept], and answers. The provider stops sending an event that was
// answered with 200, which means that it is stored.
//
//	200  the event is stored (done now or before, unhandled or parked), or ignored
//	401  not genuine, or not an event; the body names the reason
//	405  not a POST
//	408  the body did not arrive whole
//	413  the body is larger than MaxBody
//	503  not stored: it must be delivered again; or a dry run, see [DryRunHeader]
func (p *Processor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.serve(w, r, p.accept, p.dryDelivery)
}

// serve opens a delivery, accepts it or has a dry run of it, and answers.
func (c *Receiving) serve(
	w http.ResponseWriter, r *http.Request,
	accept func(context.Context, Event, time.Time) (Outcome, error), dryRun func(context.Context, Event) (Outcome, error),
) {
	start := time.Now()
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		c.reject(w, r, http.StatusMethodNotAllowed, start, fmt.Errorf("idem: method is %s: a delivery is a POST", r.Method))
		return
	}
	e, err := c.open(w, r)
	var unread *bodyError
	switch {
	case errors.As(err, &unread):
		c.reject(w, r, unread.status, start, err)
	case err != nil:
		c.refuse(w, r, start, err)
	case r.Header.Get(DryRunHeader) != "":
		outcome, err := dryRun(r.Context(), e)
		if err != nil {
			c.logError(r.Context(), "webhook dry run failed", e, err)
		}
		respond(w, http.StatusServiceUnavailable, fmt.Sprintf(`{"received":false,"dry_run":%q}`, outcome))
	default:
		outcome, _ := accept(r.Context(), e, start)
		answer(w, outcome)
	}
}

// readTime is how long a delivery may take to arrive.
const readTime = 8 * time.Second

// open has the source verify and read a delivery, within the time and the size
// that are allowed.
func (c *Receiving) open(w http.ResponseWriter, r *http.Request) (e Event, err error) {
	if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && server.ReadTimeout == 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTime)) // unless w is wrapped
	}
	r.Body = limitedBody{http.MaxBytesReader(w, r.Body, c.MaxBody), c.MaxBody}
	err = pgtx.Protect(func() (err error) {
		e, err = c.source.Open(r)
		return err
	})
	return e, err
}

// reject answers what is not a delivery.
func (c *Receiving) reject(w http.ResponseWriter, r *http.Request, status int, start time.Time, err error) {
	c.reportRefused(r.Context(), start, Observation{Outcome: Rejected, Err: err})
	respond(w, status, `{"received":false}`)
}

// refuse answers a delivery that could not be opened: 401 if it is not genuine,
// 503 if that could not be determined.
func (c *Receiving) refuse(w http.ResponseWriter, r *http.Request, start time.Time, err error) {
	o := Observation{Outcome: Retrying, Err: err}
	status, body := http.StatusServiceUnavailable, `{"received":false}`
	var refusal *Refusal
	if errors.As(err, &refusal) {
		o.Outcome = Refused
		body = fmt.Sprintf(`{"received":false,"reason":%q}`, string(refusal.Reason))
		if refusal.Reason != ReasonNotConfigured {
			status = http.StatusUnauthorized
		}
	}
	c.reportRefused(r.Context(), start, o)
	respond(w, status, body)
}

// reportRefused reports a delivery that has no event: it was refused or rejected.
func (c *Receiving) reportRefused(ctx context.Context, start time.Time, o Observation) {
	ctx, s := c.startSpan(ctx, StageDelivery, Event{}, "", start)
	s.report(ctx, o)
}

func answer(w http.ResponseWriter, o Outcome) {
	switch {
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
