package routers

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/adaptor"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
)

// InFiber serves an inbox in the application's Fiber, until ctx ends. Nothing of Serve runs
// there: it runs the workers, prunes daily, and stops the workers after the server.
func InFiber(ctx context.Context, addr string, inbox *idem.Inbox) error {
	app := fiber.New(fiber.Config{ReadTimeout: 15 * time.Second, IdleTimeout: 2 * time.Minute})
	app.Post("/webhooks/asaas", adaptor.HTTPHandler(inbox))
	app.Get("/health/webhooks", adaptor.HTTPHandler(health.New(inbox)))

	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(context.WithoutCancel(ctx)) // not by ctx: deliveries in flight come first
	defer stop()
	listening, worked := make(chan error, 1), make(chan error, 1)
	go func() { worked <- inbox.Run(working) }()
	go pruneDaily(working, inbox)
	go func() { listening <- app.Listener(listener, fiber.ListenConfig{DisableStartupMessage: true}) }()

	select {
	case <-ctx.Done():
	case err = <-listening:
		listening <- nil
	case err = <-worked: // a setting makes no sense
		worked <- nil
	}
	err = errors.Join(err, app.ShutdownWithTimeout(15*time.Second)) // it answers what is in flight
	_ = listener.Close()                                            // in case that it has not begun to serve
	stop()
	return errors.Join(err, <-listening, <-worked)
}

func pruneDaily(ctx context.Context, inbox *idem.Inbox) {
	for wait := time.Minute; ; wait = 24 * time.Hour {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
		if _, err := inbox.Prune(ctx); err != nil && ctx.Err() == nil {
			slog.ErrorContext(ctx, "webhook events could not be pruned", "error", err)
		}
	}
}
