package idem

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/inside"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Package inside leads the other packages of this project here: to what they need of a receiver, and no program
// does.
func init() {
	inside.Open = func(receiver any) any {
		switch r := receiver.(type) {
		case *Routes:
			return insideRoutes{r}
		case interface{ self() *Inbox }:
			return insideInbox{r.self()}
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

// insideInbox is for packages health, canary, operator, relay and outbox.
type insideInbox struct{ i *Inbox }

func (in insideInbox) Inbox() *Inbox       { return in.i }
func (in insideInbox) Pool() *pgxpool.Pool { return in.i.pool }
func (in insideInbox) AlwaysScoped() bool  { return in.i.alwaysScoped() }

// Rows returns f as a filter of the source's rows.
func (in insideInbox) Rows(f Filter) store.Filter { return f.of(in.i.source.Name()) }

// Stored returns a row as an event.
func (in insideInbox) Stored(r store.Row) StoredEvent { return storedEvent(r) }

// Stats returns the numbers of [Inbox.Stats].
func (in insideInbox) Stats(s store.Snapshot) Stats { return statsOf(s) }

// Choose returns f with its Events set to the events that f chooses now: an operator.Plan names those that a person
// has seen.
func (in insideInbox) Choose(ctx context.Context, f Filter) (Filter, error) {
	keys, err := in.i.find(ctx, f)
	if err != nil {
		return Filter{}, fmt.Errorf("idem: choosing events: %w", store.Explain(err))
	}
	f.Events = append([]string{}, keys...)
	return f, nil
}

// Replay is [Inbox.Replay], or [Inbox.DryReplay] if dry is set, with a report: after each event it calls ran,
// which may be nil, with the sum so far, and with the event's error if the event failed.
func (in insideInbox) Replay(ctx context.Context, f Filter, dry bool, ran func(sum Replayed, e Event, failure error)) (Replayed, error) {
	if dry {
		return in.i.dryReplay(ctx, f, ran)
	}
	return in.i.replay(ctx, f, ran)
}

// Rerun runs the handler of a done event once more: see [Inbox.rerun].
func (in insideInbox) Rerun(ctx context.Context, e Event) (Outcome, error) { return in.i.rerun(ctx, e) }

// Discard is [Inbox.Discard] for a caller that records the events: see [Inbox.discard].
func (in insideInbox) Discard(ctx context.Context, f Filter, reason string, record recorder) (int64, error) {
	return in.i.discard(ctx, f, reason, record)
}

// DryPrune counts the events that [Inbox.Prune] would forget now. Like Prune it reads all of idem_events.
func (in insideInbox) DryPrune(ctx context.Context) (int64, error) {
	p, err := in.i.planPrune(ctx)
	if err != nil {
		return 0, err
	}
	return p.Events, nil
}

// SetAside stores a body that must reach no handler: see [Inbox.setAside].
func (in insideInbox) SetAside(ctx context.Context, body []byte, cause error) error {
	return in.i.setAside(ctx, body, cause)
}

// Requeue is [Inbox.Requeue] for a caller that records the events: see [Inbox.requeue].
func (in insideInbox) Requeue(ctx context.Context, f Filter, record recorder) (int64, error) {
	return in.i.requeue(ctx, f, record)
}

// Waiting returns the number of deliveries that wait to be stored.
func (in insideInbox) Waiting() int { return in.i.writer.Waiting() }

func (in insideInbox) Wake() { in.i.wakeAll() }

// Carrier returns the Tracer's Carrier, to store it with an event; "" without a Tracer.
func (in insideInbox) Carrier(ctx context.Context, e Event) string { return in.i.carrier(ctx, e) }
