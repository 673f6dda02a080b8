package asaas

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/paghooks/paghooks/asaas/internal/shown"
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

// APIError is the error of a failed call of [Client]. Decide by its Outcome.
//
// Its text names the remedy, and has neither the API key nor a webhook's token,
// for any answer of Asaas. [errors.Is] finds causes such as
// [context.DeadlineExceeded] in it.
type APIError struct {
	// Op is the Client's method.
	Op string
	// WebhookID is the webhook that it was called for, if for one. Of [Client.Payment] it
	// is the charge, of [Client.Customer] the customer.
	WebhookID string
	// Outcome reports whether anything was done.
	Outcome CallOutcome
	// Status is the HTTP status of the answer, 0 without an answer.
	Status int
	// Errors are Asaas's own codes and descriptions, the first five; nil where there
	// were none. Both are cut after 200 characters.
	Errors []ErrorDetail
	// RetryAfter is the time to wait before it is repeated, as Asaas or a proxy that
	// stands before it asks; 0 where that is not known.
	RetryAfter time.Duration

	text    string
	err     error
	passing bool // a server in trouble, or a connection that was cut: it may work in a moment
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

// isPause reports whether Asaas asks for a pause.
func (e *APIError) isPause() bool {
	return e.RetryAfter > 0 && (e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable)
}

// failed makes the error of an operation. Its text ends with that of the cause.
func (c *Client) failed(o operation, outcome CallOutcome, text string, cause error) *APIError {
	secrets := c.secrets(o.token)
	e := &APIError{Op: o.name, WebhookID: shown.Clean(o.id, secrets...), Outcome: outcome, text: text, err: cause}
	if cause == nil {
		return e
	}
	e.text += shown.Clean(cause.Error(), secrets...)
	if harmless := shown.Redact(cause.Error(), secrets...); harmless != cause.Error() {
		e.err = errors.New(harmless)
	}
	return e
}

// refused returns the error of an operation that was not sent.
func (c *Client) refused(o operation, err error) *APIError {
	return c.failed(o, CallNotDelivered, "nothing was sent: ", err)
}

// unanswered returns the error of a request without an answer.
func (c *Client) unanswered(o operation, err error) *APIError {
	if outer, ok := errors.AsType[*url.Error](err); ok { // which names the method and the URL
		err = outer.Err
	}
	outcome, text := CallUnknown, "there is no answer, "+o.next()+": "
	switch {
	case neverConnected(err):
		outcome, text = CallNotDelivered, "there is no connection, see the network and the API's address: "
	case errors.Is(err, context.Canceled) && o.method == http.MethodGet:
		text = "it was interrupted before there was an answer: "
	case errors.Is(err, context.Canceled):
		text = "it was interrupted before there was an answer, " + o.next() + ": "
	}
	e := c.failed(o, outcome, text, err)
	e.passing = true
	return e
}

// neverConnected reports whether an error is of a time before the request: nothing can have
// been sent.
func neverConnected(err error) bool {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "dial" || op.Op == "proxyconnect")
}

// next returns the remedy where the effect is not known.
func (o operation) next() string {
	switch {
	case o.method == http.MethodGet:
		return "try it again"
	case o.path == "/payments":
		return "the charge may have been made: look for its externalReference before you make it again"
	}
	return "it may have been done: look at the webhooks before you do it again"
}

// answered is an answer, as far as it could be read.
type answered struct {
	status int
	header http.Header
	body   []byte
	err    error // why the body is not whole
}

// judge decodes a success into the value at into, and makes an error of any other answer.
func (c *Client) judge(o operation, a answered, into any) *APIError {
	if a.status/100 != 2 {
		return c.declined(o, a)
	}
	err := a.decode(into)
	if err == nil {
		return nil
	}
	e := c.failed(o, CallUnknown, fmt.Sprintf("it was answered with %d, %s: ", a.status, o.next()), err)
	e.Status, e.passing = a.status, a.err != nil
	return e
}

var errHTML = errors.New("the answer is HTML, not Asaas's: a proxy or a wrong host gave it, see the API's address and the proxies before it")

// isHTML reports whether the answer is a page for people.
func (a answered) isHTML() bool { return bytes.HasPrefix(bytes.TrimSpace(a.body), []byte("<")) }

// decode reads the answer of a success.
func (a answered) decode(into any) error {
	switch {
	case into == nil && a.status == http.StatusNoContent:
		return nil
	case a.err != nil:
		return fmt.Errorf("the answer could not be read: %w", a.err)
	case a.isHTML():
		return errHTML
	case into == nil:
		return errors.New("there is an answer where Asaas gives none")
	case len(a.body) == 0:
		return errors.New("the answer is empty")
	}
	if err := json.Unmarshal(a.body, into); err != nil {
		return fmt.Errorf("the answer is not the JSON that it should be: %w", err)
	}
	if checked, ok := into.(interface{ check() error }); ok {
		return checked.check()
	}
	return nil
}

// declined returns the error of an answer that is no success.
func (c *Client) declined(o operation, a answered) *APIError {
	outcome := CallRejected
	switch {
	case a.status == http.StatusTooManyRequests:
		outcome = CallNotDelivered
	case a.status == http.StatusRequestTimeout, a.status >= 500:
		outcome = CallUnknown
	}
	e := c.failed(o, outcome, fmt.Sprintf("it was answered with %d", a.status), nil)
	e.Status, e.passing = a.status, outcome == CallUnknown
	e.RetryAfter = a.pauseWanted()
	var said ErrorAnswer
	if a.err == nil && json.Unmarshal(a.body, &said) == nil {
		all, secrets := said.Errors.Or(nil), c.secrets(o.token)
		for _, d := range all[:min(len(all), 5)] {
			d = ErrorDetail{Code: shown.Clean(d.Code, secrets...), Description: shown.Clean(d.Description, secrets...)}
			e.Errors = append(e.Errors, d)
			e.text += fmt.Sprintf(" (%s: %s)", d.Code, d.Description)
		}
	}
	if a.isHTML() {
		e.err = errHTML
		e.text += ", " + errHTML.Error()
		return e
	}
	e.text += ": " + e.advice(o)
	return e
}

// advice returns the remedy for an answer that is no success.
func (e *APIError) advice(o operation) string {
	again := ""
	if e.RetryAfter > 0 {
		again = ", in " + wholeSeconds(e.RetryAfter)
	}
	switch {
	case e.Status/100 == 3:
		return "a redirect is not followed, the API key would go with it: set the API's real address"
	case e.Status == http.StatusBadRequest:
		return "correct what it names"
	case e.Status == http.StatusUnauthorized:
		return "Asaas does not take the API key: it may be of the other environment, not whole, disabled or deleted, or a proxy drops the header access_token"
	case e.Status == http.StatusForbidden:
		return "the API key has no permission for it (for webhooks WEBHOOK: READ to look, READ_WRITE to change), " +
			"or the account's list of allowed addresses does not have this machine: see the key's settings at Asaas"
	case e.Status == http.StatusNotFound:
		return "there is nothing for the API key at this address: see the id, the account, and the API's address"
	case e.Status == http.StatusTooManyRequests:
		return "there were too many requests, 25,000 in 12 hours or less where Asaas is stricter: try it again later" + again
	case e.Outcome == CallUnknown:
		return "Asaas is in trouble, " + o.next() + again
	}
	return "see https://docs.asaas.com/docs/http-response-codes"
}

const maxPause = 24 * 60 * 60 // seconds

// pauseWanted returns the time that an answer asks to wait: its Retry-After, in seconds or as
// a date, or else the time of its rate limit; a day at most.
func (a answered) pauseWanted() time.Duration {
	seconds, ok := count(a.header, "Retry-After")
	if at, err := http.ParseTime(a.header.Get("Retry-After")); err == nil {
		return min(max(time.Until(at), 0), maxPause*time.Second)
	}
	if !ok && a.status == http.StatusTooManyRequests {
		seconds, _ = count(a.header, "RateLimit-Reset")
	}
	return time.Duration(min(seconds, maxPause)) * time.Second
}

func count(h http.Header, name string) (n int, ok bool) {
	n, err := strconv.Atoi(strings.TrimSpace(h.Get(name)))
	if err != nil || n < 0 {
		return 0, false
	}
	return n, true
}

// wholeSeconds rounds up, as a caller that waits that long must not be too early.
func wholeSeconds(d time.Duration) string {
	return (d + time.Second - 1).Truncate(time.Second).String()
}

// secrets returns the texts that nothing may show: the API key, and a token if not "".
func (c *Client) secrets(token string) []string {
	if c.key == nil {
		return []string{token}
	}
	return []string{token, c.key()}
}
