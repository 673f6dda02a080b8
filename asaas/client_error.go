package asaas

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CallOutcome is the effect of a failed call of [Client] at Asaas, and so
// whether it may be repeated.
type CallOutcome string

const (
	// Nothing was done: it was refused here, there was no connection, or Asaas
	// wants a pause (429). It is safe to repeat, after RetryAfter.
	CallNotDelivered CallOutcome = "not delivered"
	// Asaas declined it, and declines it again unless something changes.
	CallRejected CallOutcome = "rejected"
	// It may have been done or not: there was no answer, none that can be read,
	// or that of a server in trouble (5xx). Look before you repeat a change.
	CallUnknown CallOutcome = "unknown"
)

// ErrTooSoon is the cause of an [APIError] of RemoveBackoff that was called
// again within [Client].MinRemoveBackoff. RetryAfter of the APIError is the time to wait.
var ErrTooSoon = errors.New("asaas: too soon after the last time")

// APIError is the error of a failed call of [Client]. Decide by its Outcome.
//
// Its text names the remedy, and has neither the API key nor a webhook's token,
// for any answer of Asaas. [errors.Is] finds causes such as
// [context.DeadlineExceeded] in it.
type APIError struct {
	// Op is the Client's method.
	Op string
	// WebhookID is the webhook that it was called for, if for one. Of [Reconcile] it
	// may be a charge.
	WebhookID string
	// Outcome reports whether anything was done.
	Outcome CallOutcome
	// Status is the HTTP status of the answer, 0 without an answer.
	Status int
	// Errors are Asaas's own codes and descriptions, the first five; nil where there
	// were none. Both are cut after 200 characters.
	Errors []ErrorDetail
	// RateLimit is nil if the answer did not report it.
	RateLimit *RateLimit
	// RetryAfter is the time to wait before it is repeated, as Asaas or a proxy that
	// stands before it asks; 0 where that is not known.
	RetryAfter time.Duration

	text    string
	err     error
	passing bool // a server in trouble, or a connection that was cut: it may work in a moment
}

// RateLimit is the limit of requests to its endpoint, as an answer reports it.
// There are others, of all requests in 12 hours for example, which no answer
// reports.
//
// See https://docs.asaas.com/reference/api-limits.
type RateLimit struct {
	Limit     int           // requests
	Remaining int           // requests
	Reset     time.Duration // until Remaining is Limit again; in whole seconds, a day at most
}

// Error names the fault and the remedy.
func (e *APIError) Error() string {
	text := "asaas: " + e.Op
	if e.WebhookID != "" {
		text += "(" + e.WebhookID + ")"
	}
	return text + ": " + e.text
}

// Unwrap returns the cause, where that is more than an answer of Asaas.
func (e *APIError) Unwrap() error { return e.err }

// HasCode reports whether Asaas gave a code, "invalid_environment" for example.
func (e *APIError) HasCode(code string) bool {
	return slices.ContainsFunc(e.Errors, func(d ErrorDetail) bool { return d.Code == code })
}

// pauseWanted returns the time that an answer asks to wait: its Retry-After, in seconds or as
// a date, or else the time of its rate limit; a day at most.
func (e *APIError) pauseWanted(h http.Header) time.Duration {
	if seconds, ok := count(h, "Retry-After"); ok {
		return time.Duration(min(seconds, maxPause)) * time.Second
	}
	if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		return min(max(time.Until(at), 0), maxPause*time.Second)
	}
	if e.Status == http.StatusTooManyRequests && e.RateLimit != nil {
		return e.RateLimit.Reset
	}
	return 0
}

func (e *APIError) pauseText() string {
	if e.RetryAfter <= 0 {
		return ""
	}
	return ", in " + wholeSeconds(e.RetryAfter)
}

const maxPause = 24 * 60 * 60 // seconds

func rateLimitOf(h http.Header) *RateLimit {
	limit, ok := count(h, "RateLimit-Limit")
	remaining, ok2 := count(h, "RateLimit-Remaining")
	reset, ok3 := count(h, "RateLimit-Reset")
	if !ok && !ok2 && !ok3 {
		return nil
	}
	return &RateLimit{Limit: limit, Remaining: remaining, Reset: time.Duration(min(reset, maxPause)) * time.Second}
}

func count(h http.Header, name string) (n int, ok bool) {
	n, err := strconv.Atoi(strings.TrimSpace(h.Get(name)))
	if err != nil || n < 0 {
		return 0, false
	}
	return n, true
}

// isPause reports whether Asaas asks for a pause.
func (e *APIError) isPause() bool {
	return e.RetryAfter > 0 && (e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable)
}

// wholeSeconds rounds up, as a caller that waits that long must not be too early.
func wholeSeconds(d time.Duration) string {
	return (d + time.Second - 1).Truncate(time.Second).String()
}
