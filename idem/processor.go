package idem

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Processor receives the events of one source and does their work before it
// answers: each event once, in one transaction with the record that it was
// done. It is an [http.Handler]; [Processor.Accept] does the same without HTTP.
//
// The exported fields are settings: change them before the first event. Any
// number of processors, in any number of processes, may share a database.
type Processor struct {
	// MaxBody is how many bytes of a body are read; a larger one is answered
	// with 413. Default: 1 MiB.
	MaxBody int64

	// Timeout is how long a delivery may take until its handler is given up.
	// The answer follows within 1.5 seconds of it, so keep it that much below
	// the provider's patience (Asaas: 10 s). Default: 8 seconds.
	Timeout time.Duration

	// ParkAfter is the number of failed deliveries after which an event is
	// kept as failed and acknowledged, so that one bad event cannot make the
	// provider stop them all: Asaas pauses its queue after 15. Default: 10.
	ParkAfter int

	// HandToInbox has events that failed ParkAfter times wait for the workers of
	// an [Inbox] on the same database, instead of being kept as failed. Have one
	// run, here or in another process. Default: false.
	HandToInbox bool

	// KeepPayloads keeps the bodies of events that are done. They hold personal
	// data. Default: false, only events that are not done keep theirs.
	KeepPayloads bool

	// Retention is the age from which [Processor.Prune] forgets an event. A
	// provider can send an event again after 31 days (Zelta Pay, replayed by
	// hand): a shorter retention would run it twice. Default: 45 days.
	Retention time.Duration

	// ParkedRetention is the age from which [Processor.Prune] forgets failed
	// events, too. Default: 0, never: somebody's money is in them.
	ParkedRetention time.Duration

	// PayloadRetention is the age from which [Processor.Prune] deletes the bodies
	// of events that are done, where KeepPayloads kept them. Default: 0, together
	// with their events.
	PayloadRetention time.Duration

	// Logger gets a line per delivery, without bodies or secrets: failures as
	// errors, refusals as warnings, the rest below; nil logs nothing.
	// Default: slog.Default().
	Logger *slog.Logger

	// Observe, when set, is told of each delivery, for metrics. It is called
	// from many goroutines and holds up the answer, and an inbox's worker, whose
	// connection may be in the next event's transaction by then: it must not
	// wait for a connection of the same pool.
	Observe func(context.Context, Observation)

	pool    *pgxpool.Pool
	source  Source
	flights flights
}

// NewProcessor returns a processor for the events of source, with its settings
// at their defaults. The tables must exist: see [Migrate].
func NewProcessor(pool *pgxpool.Pool, source Source) *Processor {
	return &Processor{
		MaxBody:   1 << 20,
		Timeout:   8 * time.Second,
		ParkAfter: 10,
		Retention: 45 * 24 * time.Hour,
		Logger:    slog.Default(),
		pool:      pool,
		source:    source,
	}
}

// How long what comes after the handler may take, beyond Timeout.
const (
	handlerGrace = 500 * time.Millisecond // for a handler to return once its context has ended
	finishGrace  = time.Second            // for all of COMMIT, ROLLBACK and counting a failure
)

// finishing is a context for what must be finished although ctx is over, or
// nearly. However many steps that takes, they share one end, so that the answer
// comes when Timeout says. ctx has a deadline.
func finishing(ctx context.Context) (context.Context, context.CancelFunc) {
	end, _ := ctx.Deadline()
	switch {
	case errors.Is(ctx.Err(), context.Canceled): // before its time: the workers are stopped
		end = time.Now()
	case time.Until(end) > finishGrace:
		return ctx, func() {}
	}
	return context.WithDeadline(context.WithoutCancel(ctx), end.Add(handlerGrace+finishGrace))
}
