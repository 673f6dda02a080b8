package idem

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/batch"
	"github.com/paghooks/paghooks/idem/internal/notify"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// NewInbox returns an inbox for the events of source, with its settings at
// their defaults. The tables must exist: see [Migrate].
//
// It panics if the source's name cannot be used: see [Source].
func NewInbox(pool *pgxpool.Pool, source Source) *Inbox {
	i := &Inbox{
		Common:      newCommon(pool, source, 30*time.Second),
		Workers:     max(1, int(pool.Config().MaxConns)*3/4),
		StopTimeout: 10 * time.Second,
		MaxAttempts: 20,
		MaxCrashes:  3,
		Backoff:     DefaultBackoff,
		Poll:        time.Second,
		sender:      notify.NewSender(pool, channel),
		wake:        make(chan struct{}, 1),
	}
	i.defaultWorkers = i.Workers
	size := func(e store.Incoming) int { return len(e.Payload) }
	i.writer, i.locked = batch.NewWriter(i.storeAll, size), batch.NewWriter(i.storeAll, size)
	return i
}

// ServeHTTP receives one delivery as [Processor.ServeHTTP] does, and answers
// 200 once the event is on disk.
func (i *Inbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d, ok := i.Open(w, r)
	if !ok {
		return
	}
	accept := i.accept
	if d.DryRun {
		accept = i.dryDelivery
	}
	outcome, err := accept(r.Context(), d)
	i.Answer(w, r, d, outcome, err)
}

// Accept stores one verified event without HTTP, as [Processor.Accept] processes
// it: a nil error means that the event need not come again. After an error it may be
// stored nevertheless, a little later: leave e.Payload as it is.
func (i *Inbox) Accept(ctx context.Context, e Event) (Outcome, error) {
	return i.accept(ctx, Delivery{Event: e})
}

// accept is Accept of a delivery.
func (i *Inbox) accept(ctx context.Context, d Delivery) (Outcome, error) {
	return i.receive(ctx, d, storeTime, func(ctx context.Context, e Event) result {
		return i.store(ctx, store.Incoming{Event: e.row(), Trace: i.Carrier(ctx, e)})
	})
}
