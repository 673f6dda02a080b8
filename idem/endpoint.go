package idem

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/paghooks/paghooks/idem/internal/count"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/redact"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/internal/wire"
)

// Endpoint is the receiving end of one source's deliveries, which an [Inbox] and
// the relay of package relay have in common. Use it through them.
//
// The exported fields are settings: change them before the first event.
type Endpoint struct {
	// MaxBody is the largest number of bytes of a body; a larger body is answered with 413, and counts as a failed
	// delivery. Default: 16 MiB. Most events have a few thousand bytes, but Asaas's CHECKOUT events hold the pictures
	// of the items in base64: MaxBody has room for three photos of 4 MB. With a token, the receiver does not read a
	// stranger's body; with a signature, the body takes memory while it arrives, for 8 seconds at most.
	MaxBody int64

	// Logger gets a line per delivery and attempt, without bodies or secrets: failures as errors, refusals as
	// warnings, the first event that is done as information, the rest as debug; nil logs nothing. An outage of Postgres or
	// of a broker is logged at its begin, once a minute with the number of other failures, and at its end. Its handler
	// must not block. Default: slog.Default().
	Logger *slog.Logger

	// Observe, when set, is called after each delivery, and after each attempt of an
	// inbox's workers or of Replay, for metrics. It is called from many goroutines at once,
	// and must not block: the answer or the worker waits for it. Default: nil.
	Observe func(context.Context, Observation)

	// Tracer, when set, makes spans of deliveries and attempts. Default: nil.
	Tracer Tracer

	// RedactError, when set, returns the text of an error of a handler or a decoder, for all places in which
	// the error is stored, logged, observed, traced and shown; to errors.Is and errors.As the error stays the
	// same. Errors hold the text that the application writes into them, a person's name for example, and more
	// people read errors than bodies. RedactError is also called for errors that this package makes about a
	// handler: the handler took too long, for example. If RedactError panics, the text is that the error is
	// not shown. Default: nil, the error's own text.
	//
	// With and without RedactError, the values that Postgres and pgx write into their errors are removed: the
	// detail, Key (email)=(…), wherever the application has printed it, the value that is not a number or
	// date, and the argument that cannot be encoded.
	RedactError func(error) string

	source   Source
	failures count.Deliveries // that were not acknowledged: see package health
	refused  *count.Refusals
	failing  *count.Failures // in workers
	outages  count.Outages
	hasDone  atomic.Bool // the log says that an event is done
}

// newEndpoint returns an endpoint for the events of source, with its settings at their
// defaults. It panics if the source's name cannot be used: see [Source].
func newEndpoint(source Source) Endpoint {
	checkSource(source)
	return Endpoint{MaxBody: 16 << 20, Logger: slog.Default(), source: source, refused: count.NewRefusals(), failing: new(count.Failures)}
}

// checkSettings finds a setting that makes no sense.
func checkSettings(of string, sensible map[string]bool) error {
	for _, name := range slices.Sorted(maps.Keys(sensible)) {
		if !sensible[name] {
			return fmt.Errorf("idem: %s of the %s is zero or missing: leave it at its default, or set it above zero", name, of)
		}
	}
	return nil
}

// SourceName returns the name of the source of these events.
func (ep *Endpoint) SourceName() string { return ep.source.Name() }

// Types lists the event types that have a handler, sorted; nil if the source has no
// [Routes]. A provider's package compares them with what is sent.
func (ep *Endpoint) Types() []string {
	if s, ok := ep.source.(interface{ handled() []string }); ok {
		return s.handled()
	}
	return nil
}

// alwaysScoped reports whether the source gives every event a scope, as a dispatcher does that has
// accounts and no token or secret of its own. Events that are stored without a scope are
// not recognized then when they come again: health is red until they are moved.
func (ep *Endpoint) alwaysScoped() bool {
	s, ok := ep.source.(interface{ AlwaysScoped() bool })
	return ok && s.AlwaysScoped()
}

// delivery is a verified event that has arrived.
type delivery struct {
	event Event
	begun time.Time // when the first byte arrived; zero without HTTP
}

// serve has the source verify and name a delivery, within the time and the size that are allowed, calls accept or
// dryRun, and answers. It answers and reports a delivery that could not be opened itself.
func (ep *Endpoint) serve(
	w http.ResponseWriter, r *http.Request,
	accept func(context.Context, delivery) (Outcome, error), dryRun func(context.Context, Event) (Outcome, error),
) {
	begun := time.Now()
	e, err := ep.open(w, r)
	switch {
	case err != nil:
		ep.refuse(w, r, begun, err)
	case isDryRun(r):
		outcome, err := dryRun(r.Context(), e)
		if err != nil {
			ep.logError(r.Context(), "webhook dry run failed", e, err)
		}
		respond(w, http.StatusServiceUnavailable, dryAnswer(r, e, outcome, err))
	default:
		if e.Type != "" { // a body that names no event is no sign that events arrive
			ep.refused.Genuine(pathOf(r)) // a dry run may be a canary's, which has the application's own secret
		}
		outcome, _ := accept(r.Context(), delivery{e, begun})
		answer(w, outcome)
	}
}

// dryAnswer returns the answer to a delivery with [DryRunHeader]. If the header has the [BodyID] of another body, and
// the receiver did not recognize the event, the cause is a body that was changed on the way.
func dryAnswer(r *http.Request, e Event, outcome Outcome, err error) string {
	sent, changed := r.Header.Get(DryRunHeader), false
	switch outcome {
	case Parked, Unhandled, Ignored:
		changed = true
	case Published:
		changed = err != nil
	}
	if changed && strings.HasPrefix(sent, "sha256:") && sent != BodyID(e.Payload) {
		return refusedBody(ReasonChangedBody)
	}
	return fmt.Sprintf(`{"received":false,"dry_run":%q}`, outcome)
}

// readTime is the time that a delivery may take to arrive.
const readTime = 8 * time.Second

// open has the source verify and read a delivery, within the time and the size
// that are allowed.
func (ep *Endpoint) open(w http.ResponseWriter, r *http.Request) (e Event, err error) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return e, &rejection{status: http.StatusMethodNotAllowed, says: fmt.Sprintf("method is %s: a delivery is a POST", r.Method)}
	}
	if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && server.ReadTimeout == 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTime)) // unless w is wrapped
	}
	r.Body = limitedBody{http.MaxBytesReader(w, r.Body, ep.MaxBody), ep.MaxBody}
	err = pgtx.Protect(func() (err error) {
		e, err = ep.source.Open(r)
		return err
	})
	if err == nil {
		err = checkBody(e)
	}
	return e, err
}

// refuse answers a request that could not be opened: 401 if the request is not genuine, the status of its
// rejection if it is no delivery at all or has no body that can be read, and otherwise 503.
func (ep *Endpoint) refuse(w http.ResponseWriter, r *http.Request, start time.Time, err error) {
	o := Observation{Outcome: Retrying, Err: err}
	status, body := http.StatusServiceUnavailable, `{"received":false}`
	var rejected *rejection
	var refusal *Refusal
	switch {
	case errors.As(err, &rejected) && rejected.reason == "":
		o.Outcome, status = Rejected, rejected.status
	case errors.As(err, &rejected):
		status, body = rejected.status, refusedBody(rejected.reason)
	case errors.As(err, &refusal):
		o.Outcome, o.Path = Refused, pathOf(r)
		if !isDryRun(r) {
			ep.countRefusal(o.Path, refusal)
		}
		body = refusedBody(refusal.Reason)
		if !refusal.isOwnFault() && refusal.SignedBody == "" && !refusal.Altered {
			status = http.StatusUnauthorized
		}
	}
	ctx, s := ep.startSpan(r.Context(), StageDelivery, Event{}, "", start)
	s.report(ctx, o)
	respond(w, status, body)
}

func refusedBody(reason Reason) string {
	return fmt.Sprintf(`{"received":false,"reason":%q}`, string(reason))
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

// receive calls process with the event, made fit to be stored, and reports the result to Logger, Observe and
// Tracer. process has the rest of limit, which begins with the first byte, to finish, or a second if more is over; the
// sender's disconnecting does not cancel it. For a type that the source ignores, receive does not call process. The
// error is nil if the outcome is acknowledged.
func (ep *Endpoint) receive(
	ctx context.Context, d delivery, limit time.Duration, process func(context.Context, Event) result,
) (Outcome, error) {
	start := cmp.Or(d.begun, time.Now())
	e, err := ep.normalize(d.event)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(time.Second, limit-time.Since(start)))
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

// answer answers a delivery: 200 if its outcome is acknowledged, and 503 if it is not.
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

// normalize returns an event that can be stored, for any content of its body: a genuine event is never
// refused because of its bytes.
func (ep *Endpoint) normalize(e Event) (Event, error) {
	switch e.Source {
	case "":
		e.Source = ep.source.Name()
	case ep.source.Name():
	default:
		return e, fmt.Errorf("an event of source %q was given to a receiver of %q: give it to the one of its own source", e.Source, ep.source.Name())
	}
	if len(e.Scope) > store.MaxName {
		return e, fmt.Errorf("the scope has %d bytes, at most %d can be stored: give the account a shorter one, its events are asked for again until then", len(e.Scope), store.MaxName)
	}
	if err := checkBody(e); err != nil {
		return e, err
	}
	switch {
	case e.Type == "": // of many such deliveries none is a duplicate, and an id may be an envelope's
		e.ID = "unreadable-" + rand.Text()
	case e.ID == "":
		e.ID = BodyID(e.Payload)
	case !store.Nameable(e.ID):
		e.ID = BodyID([]byte(e.ID)) // the same id is the same event, also when its body is formatted anew
	}
	switch {
	case e.Type == "":
		e.Type = UnreadableType
	case !store.Nameable(e.Type):
		e.Type = BodyID([]byte(e.Type)) // a name, though an unknown one
	}
	if !store.Nameable(e.Key) {
		e.Key = BodyID([]byte(e.Key))
	}
	if year := e.OccurredAt.UTC().Year(); year < 1 || year > 9998 { // JSON has four digits, in whichever zone
		e.OccurredAt = time.Time{}
	}
	if e.Payload == nil {
		e.Payload = []byte{}
	}
	return e, nil
}

// ignores calls the source's Ignores. If Ignores panics, the event is stored.
func (ep *Endpoint) ignores(e Event) (yes bool) {
	if e.Type == store.SetAsideType || e.Type == UnreadableType {
		return false
	}
	_ = pgtx.Protect(func() error {
		yes = ep.source.Ignores(e.Type)
		return nil
	})
	return yes
}

// errSetAside is the error of routing a body that was set aside.
var errSetAside = errors.New("it was set aside, and reaches no handler: see idem readmit, or discard it")

// route calls the source's Route. A panic in a decoder is a decode error.
func (ep *Endpoint) route(e Event) (work Work, err error) {
	if e.Type == store.SetAsideType {
		return nil, errSetAside
	}
	err = pgtx.Protect(func() (err error) {
		work, err = routeBy(ep.source, e)
		return err
	})
	return work, ep.redacted(err)
}

// routeBy calls a source's Route, for an event that names itself.
func routeBy(source interface{ Route(Event) (Work, error) }, e Event) (Work, error) {
	if e.Type == UnreadableType {
		e.Type = "" // as the source has opened it
	}
	work, err := source.Route(e)
	if e.Type == "" { // the source may have a handler for all that it does not know
		return nil, unreadable(e.Payload)
	}
	return work, err
}

// redacted returns an error of the application as it may be stored, logged and shown.
func (ep *Endpoint) redacted(err error) error { return redact.Error(err, ep.RedactError) }
