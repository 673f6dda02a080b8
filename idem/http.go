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

// serve opens a delivery, accepts it or has a dry run of it, and answers.
func (in *Receiving) serve(
	w http.ResponseWriter, r *http.Request,
	accept func(context.Context, Event, time.Time) (Outcome, error), dryRun func(context.Context, Event) (Outcome, error),
) {
	start := time.Now()
	e, err := in.open(w, r)
	switch {
	case err != nil:
		in.refuse(w, r, start, err)
	case r.Header.Get(DryRunHeader) != "":
		outcome, err := dryRun(r.Context(), e)
		if err != nil {
			in.logError(r.Context(), "webhook dry run failed", e, err)
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
func (in *Receiving) open(w http.ResponseWriter, r *http.Request) (e Event, err error) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return e, &rejection{http.StatusMethodNotAllowed, fmt.Errorf("idem: method is %s: a delivery is a POST", r.Method)}
	}
	if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && server.ReadTimeout == 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTime)) // unless w is wrapped
	}
	r.Body = limitedBody{http.MaxBytesReader(w, r.Body, in.MaxBody), in.MaxBody}
	err = pgtx.Protect(func() (err error) {
		e, err = in.source.Open(r)
		return err
	})
	return e, err
}

// refuse answers what could not be opened: 401 if it is not genuine, the status of its
// rejection if it is no delivery at all, 503 if that could not be determined.
func (in *Receiving) refuse(w http.ResponseWriter, r *http.Request, start time.Time, err error) {
	o := Observation{Outcome: Retrying, Err: err}
	status, body := http.StatusServiceUnavailable, `{"received":false}`
	var rejected *rejection
	var refusal *Refusal
	switch {
	case errors.As(err, &rejected):
		o.Outcome, status = Rejected, rejected.status
	case errors.As(err, &refusal):
		o.Outcome = Refused
		body = fmt.Sprintf(`{"received":false,"reason":%q}`, string(refusal.Reason))
		if refusal.Reason != ReasonNotConfigured {
			status = http.StatusUnauthorized
		}
	}
	ctx, s := in.startSpan(r.Context(), StageDelivery, Event{}, "", start)
	s.report(ctx, o)
	respond(w, status, body)
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
