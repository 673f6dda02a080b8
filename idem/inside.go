package idem

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/inside"
)

// Package inside leads the other packages of this project here: to what they need of a receiver, and no program
// does.
func init() {
	inside.Open = func(receiver any) any {
		switch r := receiver.(type) {
		case *Routes:
			return insideRoutes{r}
		case interface{ self() *Inbox }:
			return insideInbox{insideCommon{&r.self().Common}, r.self()}
		case *Processor:
			return insideProcessor{insideCommon{&r.Common}, r}
		case interface{ common() *Common }:
			return insideCommon{r.common()}
		case interface{ endpoint() *Endpoint }:
			return insideEndpoint{r.endpoint()}
		}
		return nil
	}
}

// insideRoutes is for package provider.
type insideRoutes struct{ r *Routes }

// Alias makes other another name of eventType.
func (in insideRoutes) Alias(other, eventType string) { in.r.alias(other, eventType) }

func (ep *Endpoint) endpoint() *Endpoint { return ep }

// insideEndpoint is for package relay.
type insideEndpoint struct{ ep *Endpoint }

// Init makes a zero endpoint that of source, with its settings at their defaults.
func (in insideEndpoint) Init(source Source) { *in.ep = newEndpoint(source) }

// Serve serves a delivery: see [Endpoint.serve] and [Endpoint.receive].
func (in insideEndpoint) Serve(w http.ResponseWriter, r *http.Request, limit time.Duration, process, dryRun func(context.Context, Event) (Outcome, error)) {
	accept := func(ctx context.Context, d delivery) (Outcome, error) { return in.accept(ctx, d, limit, process) }
	in.ep.serve(w, r, accept, dryRun)
}

// Accept accepts an event without HTTP: see [Endpoint.receive].
func (in insideEndpoint) Accept(ctx context.Context, e Event, limit time.Duration, process func(context.Context, Event) (Outcome, error)) (Outcome, error) {
	return in.accept(ctx, delivery{event: e}, limit, process)
}

func (in insideEndpoint) accept(ctx context.Context, d delivery, limit time.Duration, process func(context.Context, Event) (Outcome, error)) (Outcome, error) {
	return in.ep.receive(ctx, d, limit, func(ctx context.Context, e Event) result {
		outcome, err := process(ctx, e)
		return result{outcome: outcome, err: err}
	})
}

// insideCommon is for packages health, canary, operator and relay.
type insideCommon struct{ c *Common }

func (in insideCommon) Common() *Common     { return in.c }
func (in insideCommon) Pool() *pgxpool.Pool { return in.c.pool }
func (in insideCommon) AlwaysScoped() bool  { return in.c.alwaysScoped() }

func (in insideCommon) Choose(ctx context.Context, f Filter) (Filter, error) {
	return in.c.choose(ctx, f)
}

func (in insideCommon) Replay(ctx context.Context, f Filter, ran func(sum Replayed, e Event, failure error)) (Replayed, error) {
	return in.c.replayAll(ctx, f, ran)
}

func (in insideCommon) DryReplay(ctx context.Context, f Filter, ran func(sum Replayed, e Event, failure error)) (Replayed, error) {
	return in.c.dryReplayAll(ctx, f, ran)
}

func (in insideCommon) Discard(ctx context.Context, f Filter, reason string, changed func(ctx context.Context, tx pgx.Tx, events []string) error) (int64, error) {
	return in.c.discard(ctx, f, reason, changed)
}

// WarnOfScopes is what Serve calls at the start.
func (in insideCommon) WarnOfScopes(ctx context.Context) { in.c.warnOfScopes(ctx) }

func (in insideCommon) DryPrune(ctx context.Context) (int64, error) { return in.c.dryPrune(ctx) }

func (in insideCommon) SetAside(ctx context.Context, body []byte, cause error) error {
	return in.c.setAside(ctx, body, cause)
}

func (in insideCommon) NoteCanary(ctx context.Context) error { return in.c.noteCanary(ctx) }

func (in insideCommon) LastCanary(ctx context.Context) (time.Time, error) {
	return in.c.lastCanary(ctx)
}

// insideProcessor is for package promises.
type insideProcessor struct {
	insideCommon
	p *Processor
}

// GoingOn reports whether events that waited are processed beside deliveries.
func (in insideProcessor) GoingOn() bool { return in.p.going.Load() > 0 }

// insideInbox is for packages operator and outbox.
type insideInbox struct {
	insideCommon
	i *Inbox
}

func (in insideInbox) Requeue(ctx context.Context, f Filter, changed func(ctx context.Context, tx pgx.Tx, events []string) error) (int64, error) {
	return in.i.requeue(ctx, f, changed)
}

// Waiting returns the number of deliveries that wait to be stored.
func (in insideInbox) Waiting() int { return in.i.writer.Waiting() }

func (in insideInbox) Wake() { in.i.wakeAll() }

// Carrier returns the Tracer's Carrier, to store it with an event; "" without a Tracer.
func (in insideInbox) Carrier(ctx context.Context, e Event) string { return in.i.carrier(ctx, e) }
