package idem

import (
	"context"
	"log/slog"
	"time"
)

// Stage is the subject of an [Observation].
type Stage string

const (
	StageDelivery Stage = "delivery" // a delivery, from its first byte or from Accept to the answer
	StageAttempt  Stage = "attempt"  // an attempt of an inbox's worker, or of Replay
)

// Observation is the result of a delivery, or of an attempt at a stored event. See
// [Endpoint.Observe].
type Observation struct {
	Source   string // the source's name, also when the delivery is refused
	Stage    Stage
	Event    Event // zero before the delivery is verified and named
	Outcome  Outcome
	Path     string // of the URL, when refused: it names the account where each has its own; its first 200 bytes
	Err      error  // why it failed, was parked or was refused; a *[Refusal] when refused
	Duration time.Duration

	// Relayed is the time that the delivery was with a broker, from the relay on; 0 if it
	// did not come through one. The two times are of two clocks: where the relay's is
	// ahead, it is a nanosecond.
	Relayed time.Duration

	// Label is the event's type, for metrics: [OtherTypes] if the application neither
	// handles nor ignores the type, so that strangers cannot add series, and "" if
	// the delivery was refused.
	Label string

	// Conflict is set when another body is stored with the event's id: an id
	// that was used twice, or two accounts that share an address. Only one of
	// the two is processed. See operator.Operator.Conflicts.
	Conflict bool
}

// OtherTypes is the label of all event types that the application neither handles
// nor ignores.
const OtherTypes = "_other"

// Lag returns the time from the provider's own time of the event until now. Call it
// in Observe. ok is false unless the outcome is [Done] and the provider gave a time.
// The two times are of two clocks: a negative lag is returned as 0.
func (o Observation) Lag() (lag time.Duration, ok bool) {
	if o.Outcome != Done || o.Event.OccurredAt.IsZero() {
		return 0, false
	}
	return max(time.Since(o.Event.OccurredAt), 0), true
}

func (o Observation) level() slog.Level {
	switch {
	case o.Outcome == Refused || o.Outcome == Rejected:
		return slog.LevelWarn
	case o.Err != nil:
		return slog.LevelError
	case o.Outcome == Unhandled:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

// Tracer makes spans of deliveries and attempts; package idemotel has one for
// OpenTelemetry. Its methods are called from many goroutines at once. If one panics,
// that is logged and has no other effect.
type Tracer interface {
	// Start is called once a delivery is verified and named, or refused, and when a
	// worker or Replay begins an attempt. The handler's context derives from the one
	// that it returns. end is called once, with the outcome of the delivery or the
	// attempt; the Outcome is "" if no attempt was made, because another worker or an
	// earlier event came first. A nil context stands for ctx, and a nil end for
	// nothing to call.
	Start(ctx context.Context, s Span) (traced context.Context, end func(Observation))

	// Carrier returns the trace of a delivery as a text, a traceparent for example.
	// ctx is the one that Start returned. An inbox stores it with the event, for the [Span]
	// of each attempt. "" stores nothing.
	Carrier(ctx context.Context) string
}

// Span is a delivery or an attempt that begins.
type Span struct {
	Stage Stage
	Event Event     // zero when a delivery was refused
	Label string    // see [Observation]
	Begun time.Time // of a delivery, when its first byte came: a little before Start

	// Carrier is that of the delivery that stored the event, in attempts at events
	// of an [Inbox]. That may be days ago: make it a link, not the parent.
	Carrier string
}
