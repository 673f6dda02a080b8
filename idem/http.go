package idem

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// ServeHTTP receives one delivery: it reads, verifies and names it, runs
// [Processor.Accept], and answers. The provider stops sending an event that was
// answered with 200, which means that it is stored.
//
//	200  the event is stored: done now, done before, unhandled, parked or queued
//	401  not genuine, or not an event; the body names the reason
//	405  not a POST
//	408  the body did not arrive whole
//	413  the body is larger than MaxBody
//	503  not stored: it must be delivered again; or a dry run, see [DryRunHeader]
func (p *Processor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.serve(w, r, p.receive)
}

// serve opens a delivery for receive, which calls back with what to answer.
func (p *Processor) serve(w http.ResponseWriter, r *http.Request, receive func(context.Context, Event, func(Outcome, error))) {
	start := time.Now()
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		p.reject(w, r, http.StatusMethodNotAllowed, start, fmt.Errorf("idem: method is %s: a delivery is a POST", r.Method))
		return
	}
	p.limit(w, r)
	e, err := p.source.Open(r)
	var unread *bodyError
	switch {
	case errors.As(err, &unread):
		p.reject(w, r, unread.status, start, err)
		return
	case err != nil:
		p.refuse(w, r, start, err)
		return
	}
	if r.Header.Get(DryRunHeader) != "" {
		p.receiveDry(w, r, e)
		return
	}
	receive(r.Context(), e, func(o Outcome, _ error) { answer(w, o) })
}

// limit bounds the time and the size of the body, for [ReadBody].
func (p *Processor) limit(w http.ResponseWriter, r *http.Request) {
	if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && server.ReadTimeout == 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(p.Timeout)) // unless w is wrapped
	}
	r.Body = http.MaxBytesReader(w, r.Body, p.MaxBody)
}

func (p *Processor) reject(w http.ResponseWriter, r *http.Request, status int, start time.Time, err error) {
	p.report(r.Context(), Observation{Outcome: Rejected, Err: err, Duration: time.Since(start)})
	respond(w, status, `{"received":false}`)
}

// refuse answers a delivery that could not be opened: 401 if it is not genuine,
// 503 if that could not be found out.
func (p *Processor) refuse(w http.ResponseWriter, r *http.Request, start time.Time, err error) {
	o := Observation{Outcome: Retrying, Err: err, Duration: time.Since(start)}
	status, body := http.StatusServiceUnavailable, `{"received":false}`
	var refusal *Refusal
	if errors.As(err, &refusal) {
		o.Outcome = Refused
		body = fmt.Sprintf(`{"received":false,"reason":%q}`, string(refusal.Reason))
		if refusal.Reason != ReasonNotConfigured {
			status = http.StatusUnauthorized
		}
	}
	p.report(r.Context(), o)
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
	if status != http.StatusServiceUnavailable {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
		return
	}
	// A handler that hangs keeps ServeHTTP from returning: send the answer now,
	// and let nobody wait for another one on this connection.
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.Header().Set("Connection", "close")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
	_ = http.NewResponseController(w).Flush()
}

var _ http.Handler = (*Processor)(nil)
