package idem

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/paghooks/paghooks/idem/internal/count"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/redact"
)

// Endpoint is the receiving end of one source's deliveries, which [Processor], [Inbox] and
// the relay of package relay have in common. A receiver of another kind embeds one: its ServeHTTP calls
// [Endpoint.Open], hands the event to [Endpoint.Receive], and calls [Endpoint.Answer].
//
// The exported fields are settings: change them before the first event.
type Endpoint struct {
	// MaxBody is the number of bytes of a body that are read; a larger one is answered
	// with 413. Default: 1 MiB.
	MaxBody int64

	// Logger gets a line per delivery and attempt, without bodies or secrets:
	// failures as errors, refusals as warnings, the first event that is done as
	// information, the rest below; nil logs nothing. Default: slog.Default().
	Logger *slog.Logger

	// Observe, when set, is called after each delivery, and after each attempt of an
	// inbox's workers or of Replay, for metrics. It is called from many goroutines,
	// and delays the answer or the worker. Default: nil.
	Observe func(context.Context, Observation)

	// Tracer, when set, makes spans of the same. Default: nil.
	Tracer Tracer

	// RedactError, when set, returns the text of an error of a handler or a decoder, for all places in which
	// it is stored, logged, observed, traced and shown; to errors.Is and errors.As it stays
	// the same error. Errors hold the text that the application writes into them, a person's name for
	// example, and more people read them than bodies. It is also called for errors that this
	// package makes about a handler, that it took too long for example. If it panics, the
	// text is that the error is not shown. Default: nil, the error's own text.
	//
	// In either case the values go that Postgres and pgx write into their errors: the
	// detail, Key (email)=(…), wherever the application has printed it, the value that is no
	// number or date, and the argument that cannot be encoded.
	RedactError func(error) string

	source   Source
	failures atomic.Int64 // deliveries that were not acknowledged, in a row: see package health
	refused  *count.Refusals
	failing  *count.Failures // in workers
	hasDone  atomic.Bool     // the log says that an event is done
}

// NewEndpoint returns an endpoint for the events of source, with its settings at their
// defaults. It panics if the source's name cannot be used: see [Source].
func NewEndpoint(source Source) Endpoint {
	checkSource(source)
	return Endpoint{MaxBody: 1 << 20, Logger: slog.Default(), source: source, refused: count.NewRefusals(), failing: new(count.Failures)}
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
// [Routes].
func (ep *Endpoint) Types() []string {
	if s, ok := ep.source.(interface{ handled() []string }); ok {
		return s.handled()
	}
	return nil
}

// AlwaysScoped reports whether the source gives every event a scope, as a dispatcher does that has
// accounts and no token or secret of its own. Events that are stored without a scope are
// not recognized then when they come again: health is red until they are moved.
func (ep *Endpoint) AlwaysScoped() bool {
	s, ok := ep.source.(interface{ AlwaysScoped() bool })
	return ok && s.AlwaysScoped()
}

// normalize makes sure that an event can be stored, for any content of its body: a
// genuine event is never refused because of its bytes.
func (ep *Endpoint) normalize(e Event) (Event, error) {
	switch e.Source {
	case "":
		e.Source = ep.source.Name()
	case ep.source.Name():
	default:
		return e, fmt.Errorf("an event of source %q was given to a receiver of %q: give it to the one of its own source", e.Source, ep.source.Name())
	}
	if len(e.Scope) > maxName {
		return e, fmt.Errorf("the scope has %d bytes, at most %d can be stored: give the account a shorter one, its events are asked for again until then", len(e.Scope), maxName)
	}
	switch {
	case e.ID == "":
		e.ID = BodyID(e.Payload)
	case !nameable(e.ID):
		e.ID = BodyID([]byte(e.ID)) // the same id is the same event, also when its body is formatted anew
	}
	if !nameable(e.Type) {
		e.Type = ""
	}
	if !nameable(e.Key) {
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

// ignores is the source's Ignores. Where that panics the event is stored.
func (ep *Endpoint) ignores(e Event) (yes bool) {
	if e.Type == SetAsideType {
		return false
	}
	_ = pgtx.Protect(func() error {
		yes = ep.source.Ignores(e.Type)
		return nil
	})
	return yes
}

// route is the source's Route. A panic in a decoder is a decode error.
func (ep *Endpoint) route(e Event) (work Work, err error) {
	if e.Type == SetAsideType {
		return nil, errSetAside
	}
	err = pgtx.Protect(func() (err error) {
		work, err = ep.source.Route(e)
		return err
	})
	return work, ep.redacted(err)
}

// redacted is an error of the application as it may be stored, logged and shown.
func (ep *Endpoint) redacted(err error) error { return redact.Error(err, ep.RedactError) }
