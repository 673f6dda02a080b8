package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// serve receives events and works on them until play returns. Then no more are
// received, and deliveries in flight are finished.
func (a *app) serve(ctx context.Context, listener net.Listener, play func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	mux := http.NewServeMux()
	mux.Handle("POST "+path, a.inbox)
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      15 * time.Second,
		IdleTimeout:       time.Minute,
	}
	served, worked := make(chan error, 1), make(chan error, 1)
	go func() {
		defer cancel()
		served <- server.Serve(listener)
	}()
	workers, stop := context.WithCancel(context.WithoutCancel(ctx)) // they stop after the server
	defer stop()
	go func() { worked <- a.inbox.Run(workers) }()

	err := play(ctx)
	err = errors.Join(err, shutDown(ctx, server), unlessClosed(<-served))
	stop()
	return errors.Join(err, <-worked)
}

func shutDown(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		return fmt.Errorf("deliveries were cut off, Asaas will repeat them: %w", err)
	}
	return nil
}

func unlessClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
