package idem

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
)

// Source turns deliveries of one provider into events and events into work.
// asaas.Dispatcher and zeltapay.Dispatcher are sources; embed [Routes] for
// Ignores and Route. Its methods are called from many goroutines at once.
type Source interface {
	// Name is the provider's name. It is part of every stored event's key, so
	// it never changes (unless operator.Operator.Rescope moves the events), and has no slash.
	Name() string

	// Open verifies a delivery and names its event. It refuses a request that the headers
	// alone show not to be genuine, and only then reads the body, with [ReadBody].
	//
	// A [*Refusal] means that the delivery is not genuine or not an event. Any
	// other error means that this could not be determined, and the provider is
	// asked to deliver again. A genuine body that does not decode is not an
	// error: its event has no Type, and an ID made by [BodyID].
	Open(r *http.Request) (Event, error)

	// Ignores reports whether events of a type are acknowledged without being
	// stored.
	Ignores(eventType string) bool

	// Route finds the event's handler and decodes the event for it. A nil Work
	// without an error means that there is no handler. An error means that the
	// event does not decode into its type: it is parked.
	Route(e Event) (Work, error)
}

// checkSource panics if source cannot be used: a mistake in the program.
func checkSource(source Source) {
	if name := source.Name(); name == "" || strings.Contains(name, "/") || !nameable(name) {
		panic(fmt.Sprintf("idem: a source's name is %q: it must not be empty or have a slash, its events would be another's", name))
	}
}

// Reason says, for machines, why a delivery was refused. The providers'
// packages declare theirs: asaas.ReasonWrongToken, zeltapay.ReasonStale. It is a
// constant of few: metrics count by it.
type Reason string

// ReasonNotConfigured refuses every delivery while the application has no
// secret to verify with. The fault is its own, so the answer is 503: the
// provider is to deliver again once that is fixed.
const ReasonNotConfigured Reason = "not_configured"

// Refusal is the error of a delivery that is not genuine, or not an event. It
// is answered with 401, or with 503 where the fault is not the sender's, so that the provider
// delivers again. Nothing is stored.
type Refusal struct {
	Source string // the provider
	Reason Reason // for machines
	Hint   string // for people: the fault and the remedy; never a secret

	// WrongSecret is set if a secret, or a signature, was sent that is not of the
	// application's: a stranger's, or the provider's after a change on one side. Package
	// health tells them apart as well as it can.
	WrongSecret bool

	// SentToken is a hash of the token that was sent, if it is not of the application's; "" for a signature. A
	// stranger guesses, and a provider with another token sends the same one again and again.
	SentToken string

	// Misconfigured is set if the application's own settings are at fault: two of its accounts have one
	// secret, for example. The answer is 503, as it is for ReasonNotConfigured.
	Misconfigured bool

	// SignedBody is the [BodyID] of a delivery that the right secret has signed, at a time that is too far from
	// this server's. The answer is 503, and package health tells how many such bodies there were. "" for all others.
	SignedBody string

	// OfProvider is set if the delivery came from an address that only the provider
	// delivers from, as far as the application knows.
	OfProvider bool
}

// Error implements error: the provider, the reason and the hint.
func (r *Refusal) Error() string {
	return r.Source + ": delivery refused (" + string(r.Reason) + "): " + r.Hint
}

// isOwnFault reports whether the provider is to deliver again once the application is put right.
func (r *Refusal) isOwnFault() bool { return r.Misconfigured || r.Reason == ReasonNotConfigured }

// Credentials are the secrets of one account at a provider (Asaas calls them
// tokens) and the Scope that the account's events are stored under, of at most 255 bytes.
//
// Printing or logging them shows the scope and how many secrets there are,
// never a secret.
type Credentials struct {
	Scope   string
	Secrets []string // any of them verifies: the new and the old one during a rotation
}

// String implements [fmt.Stringer]. It shows no secret.
func (c Credentials) String() string {
	return fmt.Sprintf("{Scope:%q Secrets:%d redacted}", c.Scope, len(c.Secrets))
}

// Format implements [fmt.Formatter]: every verb prints String.
func (c Credentials) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(c.String())) }

// LogValue implements [slog.LogValuer]. It shows no secret.
func (c Credentials) LogValue() slog.Value {
	return slog.GroupValue(slog.String("scope", c.Scope), slog.Int("secrets", len(c.Secrets)))
}

// MarshalJSON implements [json.Marshaler]. It shows no secret.
func (c Credentials) MarshalJSON() ([]byte, error) {
	return fmt.Appendf(nil, `{"scope":%q,"secrets":%d}`, c.Scope, len(c.Secrets)), nil
}

// ReadBody reads the body of a delivery, for [Source.Open]. Its error is
// answered with 413 if the body is larger than MaxBody, and otherwise with 408: return
// it as it is, or wrapped.
func ReadBody(r *http.Request) ([]byte, error) {
	if b, ok := r.Body.(limitedBody); ok && r.ContentLength > b.limit {
		return nil, tooLarge(b.limit) // without waiting for it
	}
	body, err := io.ReadAll(r.Body)
	var limit *http.MaxBytesError
	switch {
	case errors.As(err, &limit):
		return nil, tooLarge(limit.Limit)
	case err != nil:
		return nil, &rejection{http.StatusRequestTimeout, fmt.Errorf("idem: the body did not arrive whole: %w", err)}
	}
	return body, nil
}

// limitedBody is a body of which limit bytes are read.
type limitedBody struct {
	io.ReadCloser
	limit int64
}

func tooLarge(limit int64) error {
	return &rejection{
		http.StatusRequestEntityTooLarge,
		fmt.Errorf("idem: the body is larger than %d bytes: raise MaxBody if it is genuine", limit),
	}
}

// rejection is the reason for which a request is no delivery, with the status to answer.
type rejection struct {
	status int
	err    error
}

func (r *rejection) Error() string { return r.err.Error() }

func (r *rejection) Unwrap() error { return r.err }
