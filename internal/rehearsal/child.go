package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
)

const (
	path  = "/webhooks/asaas"
	token = "rehearsal-example-asaas-token"
)

// child is the process of a receiver or a worker. It ends when its stdin does.
func child(kind, database string) error {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return err
	}
	defer pool.Close()
	inbox := newInbox(pool)
	if kind == "worker" {
		fmt.Println("working")
		return inbox.Run(ctx)
	}
	return serve(ctx, receive(inbox))
}

// newInbox is the application.
func newInbox(pool *pgxpool.Pool) *idem.Inbox {
	events := asaas.NewDispatcher(token)
	for _, on := range []func(idem.Handler[*asaas.PaymentEvent]){
		events.OnPaymentCreated, events.OnPaymentUpdated, events.OnPaymentConfirmed, events.OnPaymentReceived,
	} {
		on(book)
	}
	inbox := idem.NewInbox(pool, events)
	inbox.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	inbox.Backoff = func(int) time.Duration { return 200 * time.Millisecond }
	inbox.MaxCrashes = 100          // the rehearsal kills them, no event does
	inbox.Timeout = 5 * time.Second // and wait so long, and ten seconds more, for the events that they had claimed
	return inbox
}

// book is one effect for each event.
func book(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
	_, err := tx.Exec(ctx, `insert into effects (event, payment, step) values ($1, $2, $3)`, e.ID, e.Payment.ID, step(e.Event))
	return err
}

// receive returns the receiver of deliveries: the inbox. To rehearse with a broker, return a
// relay here, and have its consumer call relay.To with the inbox.
func receive(inbox *idem.Inbox) http.Handler { return inbox }

// serve prints its address, and serves until ctx ends.
func serve(ctx context.Context, h http.Handler) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	fmt.Println(listener.Addr())
	<-ctx.Done()
	stopping, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := errors.Join(server.Shutdown(stopping), <-ended); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
