package idem

import (
	"context"
	"errors"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
)

func (in *Endpoint) endpoint() *Endpoint { return in }

func (i *Inbox) self() *Inbox { return i }

// prepare is called by [Serve] before any part runs: it says in the log that a source has
// nothing to verify with, and leaves a connection of each pool to deliveries.
func prepare[P any](ctx context.Context, parts []P) {
	var inboxes []*Inbox
	for _, p := range parts {
		if e, ok := any(p).(interface{ endpoint() *Endpoint }); ok {
			e.endpoint().warnOfNoSecret(ctx)
		}
		if i, ok := any(p).(interface{ self() *Inbox }); ok {
			inboxes = append(inboxes, i.self())
		}
	}
	for len(inboxes) > 0 {
		var same, others []*Inbox
		for _, i := range inboxes {
			if i.pool == inboxes[0].pool {
				same = append(same, i)
			} else {
				others = append(others, i)
			}
		}
		sharePool(ctx, same[0].pool, same)
		inboxes = others
	}
}

// warnOfNoSecret logs that every delivery will be answered 503, and why.
func (in *Endpoint) warnOfNoSecret(ctx context.Context) {
	s, ok := in.source.(interface{ Configured() error })
	if !ok {
		return
	}
	err := s.Configured()
	if err == nil {
		return
	}
	cause := err.Error()
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		cause = refusal.Hint
	}
	in.logAttrs(ctx, slog.LevelWarn, "webhook deliveries cannot be verified, and all are answered 503: "+cause,
		[]slog.Attr{slog.String("source", in.source.Name())})
}

// sharePool lowers the Workers of inboxes where the application has not set it, until a connection of
// their pool is left for deliveries, and logs where that is not enough.
func sharePool(ctx context.Context, pool *pgxpool.Pool, inboxes []*Inbox) {
	connections, workers := int(pool.Config().MaxConns), 0
	for _, i := range inboxes {
		workers += i.Workers
	}
	for ; workers >= connections; workers-- {
		i := busiest(inboxes)
		if i == nil {
			break
		}
		i.Workers, i.defaultWorkers = i.Workers-1, i.defaultWorkers-1
	}
	if workers < connections {
		return
	}
	inboxes[0].logAttrs(ctx, slog.LevelWarn, "webhook workers can hold all connections of their pool, and deliveries wait for one then: set pool_max_conns higher than workers, or lower Workers",
		[]slog.Attr{slog.Int("workers", workers), slog.Int("connections", connections)})
}

// busiest returns the inbox with the most workers of those that may have fewer, or nil.
func busiest(inboxes []*Inbox) (most *Inbox) {
	for _, i := range inboxes {
		if i.Workers == i.defaultWorkers && i.Workers > 1 && (most == nil || i.Workers > most.Workers) {
			most = i
		}
	}
	return most
}
