package idem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Part is a part of a program that [Serve] runs: an [*Inbox], an
// outbox, a relay, a canary, or a worker of the application's own. Run returns
// nil soon after ctx has ended, and an error if the part cannot go on.
type Part interface {
	Run(ctx context.Context) error
}

// Receiver is an [*Inbox] or an outbox, which store events in Postgres. A relay is a [Part], and no Receiver.
type Receiver interface {
	Part
	http.Handler
	Accept(ctx context.Context, e Event) (Outcome, error)

	self() *Inbox
}

// Serve serves HTTP, runs the parts of a program, and prunes daily, until ctx ends. It
// does not route: mount the receivers on server.Handler, or on http.DefaultServeMux if
// that is nil.
//
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	defer stop()
//	http.Handle("GET /health/webhooks", health.New(inbox))
//	err := idem.Serve(ctx, &http.Server{Addr: ":8080"}, inbox)
//
// When ctx ends, or a part or the server fails, Serve stops everything in this order,
// for any order of the arguments:
//
//  1. The parts that have a method StopsFirst() bool, and return true. It is for parts
//     that send requests to this server, as a canary does.
//  2. The server: it takes no new deliveries, and answers those in flight, for 15
//     seconds at most.
//  3. All other parts, at the same time: workers finish their handlers. A part that
//     handlers give work to may get some while it ends.
//
// Then Serve returns nil. It returns an error if the server cannot listen, if a part's Run returns one or
// panics, if deliveries did not end in time, or if a part of the application's own has not returned 15
// seconds after its context ended: Serve does not wait for that part any longer. If a part returns nil before
// it is stopped, its work is done, and the others go on; context.Canceled is no error of a stopped part.
//
// Serve returns an error immediately if this program has introduced a scope, and the events that were stored
// without one were not moved: see operator.Operator.PlanRescope. If another program may still store events
// without a scope, or this program has run before, Serve starts, and health is red.
//
// At the start Serve logs a warning if a source has no token or secret to verify with, and if workers can
// hold all connections of a pool: deliveries would wait for a connection. If it is enough, Serve lowers the
// Workers that have their default.
//
// A field that server leaves at zero has a default: ReadHeaderTimeout is 5 seconds, IdleTimeout 2
// minutes. It serves TLS if server.TLSConfig is set.
func Serve(ctx context.Context, server *http.Server, parts ...Part) error {
	server.ReadHeaderTimeout = cmp.Or(server.ReadHeaderTimeout, 5*time.Second)
	server.IdleTimeout = cmp.Or(server.IdleTimeout, 2*time.Minute)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", server.Addr)
	if err != nil {
		return fmt.Errorf("idem: the server cannot listen: %w", err)
	}
	if err := prepare(ctx, parts); err != nil {
		return errors.Join(err, listener.Close())
	}
	slog.InfoContext(ctx, "receiving webhooks", slog.String("address", listener.Addr().String()))

	first, others := newRunning(ctx), newRunning(ctx)
	defer first.stop()
	defer others.stop()
	ctx, fail := context.WithCancel(ctx) // the first failure stops everything
	defer fail()
	served := make(chan error, 1)
	go func() {
		err := serveUntilShutdown(server, listener)
		if err != nil {
			fail()
		}
		served <- err
	}()
	for _, p := range parts {
		if r, ok := p.(Receiver); ok {
			go pruneDaily(others.ctx, r)
			go r.self().warnOfScopes(others.ctx)
		}
		group := others
		if s, ok := p.(interface{ StopsFirst() bool }); ok && s.StopsFirst() {
			group = first
		}
		group.start(p, fail)
	}

	<-ctx.Done()
	return errors.Join(first.end(), shutDown(server), <-served, others.end()) // in this order
}

// prepare is called by [Serve] before any part runs. It returns an error if the program would process stored
// events again, logs that a source has nothing to verify with, and leaves a connection of each pool to
// deliveries.
func prepare(ctx context.Context, parts []Part) error {
	inboxes := make(map[*pgxpool.Pool][]*Inbox)
	for _, p := range parts {
		if r, ok := p.(Receiver); ok {
			if err := r.self().checkScopes(ctx); err != nil {
				return err
			}
			inboxes[r.self().pool] = append(inboxes[r.self().pool], r.self())
		}
		if e, ok := p.(interface{ warnOfNoSecret(context.Context) }); ok {
			e.warnOfNoSecret(ctx)
		}
	}
	for pool, same := range inboxes {
		sharePool(ctx, pool, same)
	}
	return nil
}

func (i *Inbox) self() *Inbox { return i }

// warnOfNoSecret logs that every delivery will be answered 503, if the source is not configured.
func (ep *Endpoint) warnOfNoSecret(ctx context.Context) {
	var err error
	if s, ok := ep.source.(interface{ Configured() error }); ok {
		err = s.Configured()
	}
	if err == nil {
		return
	}
	cause := err.Error()
	if refusal, ok := errors.AsType[*Refusal](err); ok {
		cause = refusal.Hint
	}
	ep.logAttrs(ctx, slog.LevelWarn, "webhook deliveries cannot be verified, and all are answered 503: "+cause)
}

// sharePool lowers the Workers of inboxes that have their default, until a connection of the pool is left for
// deliveries, and logs a warning if that is not enough.
func sharePool(ctx context.Context, pool *pgxpool.Pool, inboxes []*Inbox) {
	connections := int(pool.Config().MaxConns)
	spare, byDefault := connections-1, 0
	for _, i := range inboxes {
		if i.Workers == i.defaultWorkers {
			i.Workers = i.workers()
			i.defaultWorkers = i.Workers
			byDefault += i.Workers
		} else {
			spare -= i.Workers
		}
	}
	for _, i := range inboxes {
		if had := i.Workers; had == i.defaultWorkers {
			i.Workers = max(1, min(had, had*spare/byDefault))
			spare, byDefault = spare-i.Workers, byDefault-had
		}
	}
	if spare >= 0 {
		return
	}
	inboxes[0].logAttrs(ctx, slog.LevelWarn, "webhook workers can hold all connections of their pool, and deliveries wait for one then: set pool_max_conns higher than workers, or lower Workers",
		slog.Int("workers", connections-1-spare), slog.Int("connections", connections))
}

// running holds parts that stop at the same time.
type running struct {
	ctx   context.Context // the context of each part's Run
	stop  context.CancelFunc
	parts []runningPart
}

type runningPart struct {
	part  Part
	ended <-chan error
}

// newRunning returns a running without parts. The parts do not stop when ctx ends: end stops them.
func newRunning(ctx context.Context) *running {
	r := &running{}
	r.ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
	return r
}

// start runs a part, and calls fail if the part fails. The part's error goes to end.
func (r *running) start(p Part, fail func()) {
	ended := make(chan error, 1)
	r.parts = append(r.parts, runningPart{p, ended})
	run := pgtx.Start(func() error { return p.Run(r.ctx) }) // which may be the application's
	go func() {
		err := <-run
		if errors.Is(err, context.Canceled) && r.ctx.Err() != nil {
			err = nil
		}
		if err != nil {
			fail()
		}
		ended <- err
	}()
}

// end stops the parts, and waits until they have ended.
func (r *running) end() (err error) {
	r.stop()
	late, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	for _, p := range r.parts {
		if _, ok := p.part.(Receiver); ok { // a receiver ends its handlers after its own StopTimeout or Timeout
			err = errors.Join(err, <-p.ended)
			continue
		}
		select {
		case failure := <-p.ended:
			err = errors.Join(err, failure)
		case <-late.Done():
			err = errors.Join(err, fmt.Errorf("idem: a part of type %T has not ended in time: its Run must return soon after its context ends", p.part))
		}
	}
	return err
}

func serveUntilShutdown(server *http.Server, listener net.Listener) (err error) {
	if server.TLSConfig != nil {
		err = server.ServeTLS(listener, "", "")
	} else {
		err = server.Serve(listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("idem: the server stopped: %w", err)
}

// shutdownTime is longer than any delivery takes.
const shutdownTime = 15 * time.Second

func shutDown(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return fmt.Errorf("idem: deliveries were in flight when the server was stopped: %w", errors.Join(err, server.Close()))
	}
	return nil
}

// pruneDaily prunes a minute after the start, for programs that are restarted daily, and then every day.
func pruneDaily(ctx context.Context, r Receiver) {
	for wait := time.Minute; sleep(ctx, wait); wait = 24 * time.Hour {
		err := pgtx.Protect(func() error { _, err := r.self().Prune(ctx); return err }) // hooks of the pool are the application's
		if err != nil && ctx.Err() == nil {
			slog.ErrorContext(ctx, "webhook events could not be pruned", slog.String("error", err.Error()))
		}
	}
}

// checkScopes is called at the start of a program. It returns an error if all stored events have no scope,
// this program gives every event one, and no other program is running: each event that is delivered again
// would be processed again. If another program may still store such events, or this program has run before,
// stopping would cost more: checkScopes logs an error, and health is red.
func (i *Inbox) checkScopes(ctx context.Context) error {
	if !i.alwaysScoped() {
		return nil
	}
	remedy := fmt.Sprintf("one that comes again is a new event, and is done twice: stop every process of the source, "+
		"and move them with idem rescope -source %s -account \"\" -to-account THEIR-SCOPE", i.source.Name())
	if i.asksOfScopes(ctx, store.IsUnscoped) {
		return fmt.Errorf("idem: all events of %s are stored without a scope, and this program gives every event one: %s; "+
			"or leave the account without one, with its token or secret where it was", i.source.Name(), remedy)
	}
	if i.asksOfScopes(ctx, store.HasUnscoped) {
		i.logAttrs(ctx, slog.LevelError, "webhook events are stored without a scope, and this program gives every event one: "+remedy)
	}
	return nil
}

// warnOfScopes logs at the start of a program that a source has events with and without a scope, which is
// right only if one account has no scope on purpose.
func (i *Inbox) warnOfScopes(ctx context.Context) {
	if !i.alwaysScoped() && i.asksOfScopes(ctx, store.HasMixedScopes) { // checkScopes has logged it otherwise
		i.logAttrs(ctx, slog.LevelWarn, "webhook events are stored with and without a scope: unless one account has none on purpose, "+
			"those of before that come again are done twice: stop the program, and move them with idem rescope")
	}
}

// asksOfScopes asks Postgres a question. Without an answer the result is false: other checks find that the
// tables or Postgres are missing.
func (i *Inbox) asksOfScopes(ctx context.Context, question func(context.Context, store.DB, string) (bool, error)) bool {
	yes, _ := query(ctx, i.pool, func(ctx context.Context, db store.DB) (bool, error) { return question(ctx, db, i.source.Name()) })
	return yes
}
