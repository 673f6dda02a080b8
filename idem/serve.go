package idem

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Receiver is a [*Processor] or an [*Inbox].
type Receiver interface {
	http.Handler
	Prune(ctx context.Context) (int64, error)

	work(ctx context.Context) error // until ctx ends
}

func (p *Processor) work(ctx context.Context) error { <-ctx.Done(); return nil }
func (i *Inbox) work(ctx context.Context) error     { return i.Run(ctx) }

// Serve is what a program does that receives webhooks: it serves HTTP, has the
// workers of inboxes process events, and prunes daily, until ctx ends. Then it
// stops in the right order: no new deliveries, those in flight are answered,
// workers finish, and Serve returns nil.
//
//	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
//	defer stop()
//	err := idem.Serve(ctx, &http.Server{Addr: ":8080"}, processor)
//
// It returns an error if the server cannot listen, if a setting of an inbox makes
// no sense, or if deliveries or handlers did not end in time. What server leaves
// at zero has a default: ReadHeaderTimeout is 5 seconds, IdleTimeout 2 minutes.
// It serves TLS if server.TLSConfig is set.
func Serve(ctx context.Context, server *http.Server, receivers ...Receiver) error {
	setDefaults(server)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", server.Addr)
	if err != nil {
		return fmt.Errorf("idem: the server cannot listen: %w", err)
	}
	slog.InfoContext(ctx, "receiving webhooks", slog.String("address", listener.Addr().String()))

	working, stopWorking := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWorking()
	ended := make(chan error, 1+len(receivers))
	go func() { ended <- serveUntilShutdown(server, listener) }()
	for _, r := range receivers {
		go pruneDaily(working, r)
		go func() { ended <- r.work(working) }()
	}

	running := cap(ended)
	select {
	case err = <-ended: // which only a failure does by itself
		running--
	case <-ctx.Done():
	}
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
	for wait := time.Minute; ; wait = 24 * time.Hour {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		if _, err := r.Prune(ctx); err != nil && ctx.Err() == nil {
			slog.ErrorContext(ctx, "webhook events could not be pruned", slog.String("error", err.Error()))
		}
	}
}
