package idem

import (
	"context"
	"log/slog"
	"sync/atomic"
)

// Receiving is what [Processor], [Inbox] and [Relay] have in common: how deliveries
// are received. Use it through them.
//
// The exported fields are settings: change them before the first event.
type Receiving struct {
	// MaxBody is how many bytes of a body are read; a larger one is answered
	// with 413. Default: 1 MiB.
	MaxBody int64

	// Logger gets a line per delivery and attempt, without bodies or secrets:
	// failures as errors, refusals as warnings, the rest below; nil logs
	// nothing. Default: slog.Default().
	Logger *slog.Logger

	// Observe, when set, is called after each delivery, and after each attempt of an
	// inbox's workers or of Replay, for metrics. It is called from many goroutines,
	// and delays the answer or the worker. Default: nil.
	Observe func(context.Context, Observation)

	// Tracer, when set, makes spans of the same. Default: nil.
	Tracer Tracer

	source   Source
	failures atomic.Int64 // deliveries that were not acknowledged, in a row: see Health
}

func newReceiving(source Source) Receiving {
	checkSource(source)
	return Receiving{MaxBody: 1 << 20, Logger: slog.Default(), source: source}
}

// SourceName returns the name of the source whose events these are.
func (c *Receiving) SourceName() string { return c.source.Name() }
