package asaas

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// failure makes the errors of an operation.
type failure struct {
	operation

	key func() string
}

// clean is the function clean with the operation's secrets.
func (f failure) clean(text string) string { return clean(text, f.secrets()) }

func (f failure) secrets() []string {
	out := []string{f.token}
	if f.key != nil {
		out = append(out, f.key())
	}
	return out
}

// made makes an error. Its text ends with that of the cause.
func (f failure) made(outcome CallOutcome, text string, cause error) *APIError {
	e := &APIError{Op: f.name, WebhookID: f.clean(f.id), Outcome: outcome, text: text, err: cause}
	if cause == nil {
		return e
	}
	e.text += f.clean(cause.Error())
	if harmless := redact(cause.Error(), f.secrets()); harmless != cause.Error() {
		e.err = errors.New(harmless)
	}
	return e
}

// refused is that of an operation that was not sent.
func (f failure) refused(err error) *APIError {
	return f.made(CallNotDelivered, "nothing was sent: ", err)
}

// unanswered is that of a request without an answer.
func (f failure) unanswered(err error, unsent bool) *APIError {
	outcome, text := CallUnknown, "there is no answer, "+f.next()+": "
	switch {
	case errors.Is(err, context.Canceled):
		text = "it was interrupted before there was an answer: "
		if f.method != http.MethodGet {
			text = "it was interrupted before there was an answer, " + f.next() + ": "
		}
	case unsent:
		text = "there is no connection, see the network and the API's address: "
	}
	if unsent {
		outcome = CallNotDelivered
	}
	e := f.made(outcome, text, transportError(err))
	e.passing = true
	return e
}

// unreadable is that of a success that does not look like one.
func (f failure) unreadable(a answered, err error) *APIError {
	e := f.made(CallUnknown, fmt.Sprintf("it was answered with %d, %s: ", a.status, f.next()), err)
	e.Status, e.RateLimit, e.passing = a.status, rateLimitOf(a.header), a.err != nil
	return e
}

// next returns the remedy where the effect is not known.
func (f failure) next() string {
	if f.method == http.MethodGet {
		return "try it again"
	}
	return "it may have been done: look at the webhooks before you do it again"
}

// declined is that of an answer that is no success.
func (f failure) declined(a answered) *APIError {
	e := f.made(outcomeOf(a.status), fmt.Sprintf("it was answered with %d", a.status), nil)
	e.Status, e.RateLimit, e.Errors = a.status, rateLimitOf(a.header), f.cleaned(a.details())
	e.passing = outcomeOf(a.status) == CallUnknown
	for _, d := range e.Errors {
		e.text += fmt.Sprintf(" (%s: %s)", d.Code, d.Description)
	}
	e.RetryAfter = e.pauseWanted(a.header)
	if a.isHTML() {
		e.err = errHTML
		e.text += ", " + errHTML.Error()
		return e
	}
	e.text += ": " + f.advice(e)
	return e
}

func outcomeOf(status int) CallOutcome {
	switch {
	case status == http.StatusTooManyRequests:
		return CallNotDelivered
	case status == http.StatusRequestTimeout, status >= 500:
		return CallUnknown
	}
	return CallRejected
}

// advice returns the remedy for an answer.
func (f failure) advice(e *APIError) string {
	switch {
	case e.Status/100 == 3:
		return "a redirect is not followed, the API key would go with it: set the API's real address"
	case e.Status == http.StatusBadRequest:
		return "correct what it names"
	case e.Status == http.StatusUnauthorized:
		return adviceOnKey(e)
	case e.Status == http.StatusForbidden && !strings.HasPrefix(f.path, "/webhooks"):
		return "the API key has no permission to read charges and the statement, " +
			"or the account's list of allowed addresses does not have this machine: see the key's settings at Asaas"
	case e.Status == http.StatusForbidden:
		return "the API key has no permission for webhooks (WEBHOOK: READ to look, READ_WRITE to change), " +
			"or the account's list of allowed addresses does not have this machine: see the key's settings at Asaas"
	case e.Status == http.StatusNotFound && strings.HasPrefix(f.path, "/payments/"):
		return "the account of the API key has no such charge: it may be removed"
	case e.Status == http.StatusNotFound && f.id != "":
		return "the account of the API key has no such webhook: see the ids of its webhooks, and whether it is the right account and the API's right address"
	case e.Status == http.StatusNotFound:
		return "there is nothing at this address: see the API's address"
	case e.Status == http.StatusTooManyRequests && e.RetryAfter > 0:
		return fmt.Sprintf("there were too many requests: try it again in %s", e.RetryAfter)
	case e.Status == http.StatusTooManyRequests:
		return "there were too many requests, 25,000 in 12 hours or less where Asaas is stricter: try it again later"
	case e.Outcome == CallUnknown:
		return "Asaas is in trouble, " + f.next() + e.pauseText()
	}
	return "see https://docs.asaas.com/docs/http-response-codes"
}

func adviceOnKey(e *APIError) string {
	switch {
	case e.HasCode("invalid_environment"):
		return "the API key is of the other environment, production or sandbox: see the key, and the API's address"
	case e.HasCode("access_token_not_found"):
		return "the API key did not arrive: see whether a proxy drops the header access_token"
	case e.HasCode("invalid_access_token_format"):
		return "the API key is not whole: copy it again, with its $"
	}
	return "Asaas does not take the API key: it is disabled, has expired or was deleted; see it at Asaas, or make a new one"
}

// cleaned are details as they may be shown: five at most.
func (f failure) cleaned(details []ErrorDetail) []ErrorDetail {
	out := slices.Clone(details[:min(len(details), 5)])
	for i, d := range out {
		out[i] = ErrorDetail{Code: f.clean(d.Code), Description: f.clean(d.Description)}
	}
	return out
}
