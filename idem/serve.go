package idem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// Part is what [Serve] runs and [Health] checks: a [*Processor], an [*Inbox], an
// outbox, a [*Relay] or a [*Canary].
type Part interface {
	work(ctx context.Context) error // until ctx ends
	examine(ctx context.Context, x *examination)
}

// Receiver is a [*Processor], an [*Inbox] or an outbox: what stores events in
// Postgres. A [*Relay] is a [Part], and no Receiver.
type Receiver interface {
	Part
	http.Handler
	Accept(ctx context.Context, e Event) (Outcome, error)
	Prune(ctx context.Context) (int64, error)

	common() *Common
}

var (
	_ Receiver = (*Processor)(nil)
	_ Receiver = (*Inbox)(nil)
	_ Part     = (*Relay)(nil)
	_ Part     = (*Canary)(nil)
)

func (c *Common) common() *Common { return c }

func (i *Inbox) work(ctx context.Context) error     { return i.Run(ctx) }
func (c *Canary) work(ctx context.Context) error    { return c.Run(ctx) }
func (p *Processor) work(ctx context.Context) error { return p.Run(ctx) }

func (r *Relay) work(ctx context.Context) error {
	return idle(ctx, checkSettings("relay", map[string]bool{"Timeout": r.Timeout > 0}))
}

// idle is the work of what has none, once its settings are checked.
func idle(ctx context.Context, err error) error {
	if err == nil {
		<-ctx.Done()
	}
	return err
}

// Serve serves HTTP, runs the workers of inboxes and the canaries, and prunes daily,
// until ctx ends. Then it stops in the right order: canaries end, no new deliveries
// are taken, those in flight are answered, workers finish, and Serve returns nil.
// It does not route: mount the receivers on server.Handler, or on
// http.DefaultServeMux if that is nil.
//
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	defer stop()
//	http.Handle("GET /healthz", idem.NewHealth(processor))
//	err := idem.Serve(ctx, &http.Server{Addr: ":8080"}, processor)
//
// It returns an error if the server cannot listen, if a setting of an inbox or a
// canary makes no sense, or if deliveries or handlers did not end in time. What
// server leaves at zero has a default: ReadHeaderTimeout is 5 seconds,
// IdleTimeout 2 minutes. It serves TLS if server.TLSConfig is set.
func Serve(ctx context.Context, server *http.Server, parts ...Part) error {
	setDefaults(server)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", server.Addr)
	if err != nil {
		return fmt.Errorf("idem: the server cannot listen: %w", err)
	}
	slog.InfoContext(ctx, "receiving webhooks", slog.String("address", listener.Addr().String()))

	working, stopWorking := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWorking()
	serving, stopServing := context.WithCancel(ctx)
	defer stopServing()
	running := 1 + len(parts)
	ended := make(chan error, running)
	go func() { ended <- serveUntilShutdown(server, listener) }()
	for _, p := range parts {
		until := serving // a canary would find the server stopped
		if r, ok := p.(Receiver); ok {
			until = working
			go pruneDaily(working, r)
			go warnOfScopes(working, r)
		}
		go func() { ended <- p.work(until) }()
	}

	select {
	case err = <-ended: // which only a failure does by itself
		running--
	case <-ctx.Done():
	}
	stopServing()
	err = errors.Join(err, shutDown(server))
	stopWorking()
	for range running {
		err = errors.Join(err, <-ended)
	}
	return err
}

func setDefaults(server *http.Server) {
	if server.ReadHeaderTimeout == 0 {
		server.ReadHeaderTimeout = 5 * time.Second
	}
	if server.IdleTimeout == 0 {
		server.IdleTimeout = 2 * time.Minute
	}
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

// shutdownTime is more than any delivery takes.
const shutdownTime = 15 * time.Second

func shutDown(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return fmt.Errorf("idem: deliveries were in flight when the server was stopped: %w", errors.Join(err, server.Close()))
	}
	return nil
}

// pruneDaily prunes a minute after the start, so that a program that is
// restarted daily does so, too, and then every day.
func pruneDaily(ctx context.Context, r Receiver) {
	for wait := time.Minute; sleep(ctx, wait); wait = 24 * time.Hour {
		err := pgtx.Protect(func() error { _, err := r.Prune(ctx); return err }) // hooks of the pool are the application's
		if err != nil && ctx.Err() == nil {
			slog.ErrorContext(ctx, "webhook events could not be pruned", slog.String("error", err.Error()))
		}
	}
}
