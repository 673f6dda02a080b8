package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health/check"
	"github.com/paghooks/paghooks/idem/internal/diagnosis"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// Health is an http.Handler for monitors: see the package comment.
//
// The exported fields, and those of [check.Limits], are settings: change them before the
// first request.
type Health struct {
	check.Limits

	// Logger gets a line when a check begins to fail or passes again; nil logs
	// nothing. Default: slog.Default().
	Logger *slog.Logger

	parts []*part

	turn chan struct{} // has an element during a look; guards the fields below
	last Report
	at   time.Time
}

var _ http.Handler = (*Health)(nil)

// Report is the answer of a [Health].
type Report struct {
	Healthy bool           `json:"healthy"`
	Checks  []check.Result `json:"checks"`
}

// New returns a Health that asks these parts of a program, with its settings at their
// defaults.
func New(parts ...Part) *Health {
	h := &Health{
		Limits: diagnosis.Defaults,
		Logger: slog.Default(), turn: make(chan struct{}, 1),
	}
	for _, p := range parts {
		name := fmt.Sprintf("%T", p)
		if r, ok := p.(idem.Receiver); ok {
			p = Of(r)
		}
		h.parts = append(h.parts, &part{Part: p, name: name})
	}
	h.Failed = h.failed
	return h
}

// failed asks the parts that ask the provider of a source.
func (h *Health) failed(source string) (since time.Time) {
	for _, p := range h.parts {
		asks, ok := p.Part.(interface {
			SourceName() string
			Failed() time.Time
		})
		if !ok || asks.SourceName() != source {
			continue
		}
		if at := asks.Failed(); at.After(since) {
			since = at
		}
	}
	return since
}

// ServeHTTP answers with the report as JSON: 200 if it is healthy, else 503.
func (h *Health) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	report := h.Report()
	status := http.StatusOK
	if !report.Healthy {
		status = http.StatusServiceUnavailable
	}
	body, _ := json.Marshal(report) // texts
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// every is the least time between two looks at the parts.
const every = time.Second

// Report returns the answer of ServeHTTP. It is at most a second old.
func (h *Health) Report() Report {
	h.turn <- struct{}{} // a caller that comes now waits for this look
	defer func() { <-h.turn }()
	if !h.at.IsZero() && time.Since(h.at) < every {
		return h.last
	}
	h.last = Report{Healthy: true, Checks: []check.Result{}}
	for _, p := range h.parts {
		p.begin(h.Limits)
	}
	late, cancel := context.WithTimeout(context.Background(), patience*h.Timeout)
	defer cancel()
	for _, p := range h.parts {
		before := p.said
		p.said = p.end(late)
		for _, c := range p.said {
			h.logChange(c, find(before, c))
			c.Cause = nil
			h.last.Healthy = h.last.Healthy && c.Healthy
			h.last.Checks = append(h.last.Checks, c)
		}
	}
	h.at = time.Now()
	return h.last
}

// logChange logs a check whose result has changed, and each new text of an unhealthy one:
// a person that has seen the line of one parked event may wait for the next one.
func (h *Health) logChange(c, before check.Result) {
	more := (c.Name == "standing" || c.Name == "parked") && before.Name != "" && c.Says != before.Says
	if h.Logger == nil || c.Healthy == before.Healthy && (c.Healthy || !more) {
		return
	}
	attrs := []slog.Attr{slog.String("source", c.Source), slog.String("check", c.Name), slog.String("says", c.String())}
	level, message := slog.LevelInfo, "webhook health check is well again"
	if !c.Healthy {
		level, message = slog.LevelError, "webhook health check fails"
	}
	if c.Cause != nil {
		attrs = append(attrs, slog.String("error", c.Cause.Error()))
	}
	_ = pgtx.Protect(func() error { h.Logger.LogAttrs(context.Background(), level, message, attrs...); return nil })
}

// find returns the check as it was before. One that is new was healthy.
func find(before []check.Result, now check.Result) check.Result {
	for _, c := range before {
		if c.Source == now.Source && c.Name == now.Name {
			return c
		}
	}
	return check.Result{Healthy: true}
}

// patience is the time that a part has to answer, in Timeouts: it may make several queries.
const patience = 10

// part is a part, and the look at it that goes on.
type part struct {
	Part
	name   string
	said   []check.Result // at the last look
	ended  <-chan error   // nil between looks
	checks []check.Result // once ended has an element
}

// begin begins to look at the part. One that does not end is not asked again.
func (p *part) begin(limits check.Limits) {
	if p.ended != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience*limits.Timeout)
	p.ended = pgtx.Start(func() error { // it may be the application's
		defer cancel()
		p.checks = p.Examine(ctx, limits)
		return nil
	})
}

// end returns the part's checks, or that it says nothing.
func (p *part) end(late context.Context) []check.Result {
	r := check.Result{Source: p.name, Name: "answer"}
	select {
	case err := <-p.ended:
		p.ended = nil
		if err == nil {
			return p.checks
		}
		r.Says, r.Cause = "its Examine has panicked: see the error in this application's log", err
	case <-late.Done():
		r.Says = "its Examine has not returned: it must end with its context"
	}
	return []check.Result{r}
}

// lastLook is the result of the last look at the stored events.
type lastLook[T any] struct {
	mu    sync.Mutex // held while somebody looks
	found T
	err   error
	next  time.Time // when to look again
}

// lookShare is the pause until the next look, in times of the last one.
const lookShare = 20

// errNotLooked is the result while Postgres takes too long for another look.
var errNotLooked = errors.New("not looked at yet, because Postgres took too long for another check")

// get calls find, unless that was done lately, or another look of this round took too long:
// one that waits for a lock costs each round its time once. late is set if this one did.
func (l *lastLook[T]) get(late *bool, find func() (T, error)) (T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch start := time.Now(); {
	case start.Before(l.next):
	case !*late:
		l.found, l.err = find()
		l.next = time.Now().Add(lookShare * time.Since(start))
		*late = l.err != nil && pgtx.TookTooLong(l.err)
	case l.next.IsZero():
		return l.found, errNotLooked
	}
	return l.found, l.err
}
