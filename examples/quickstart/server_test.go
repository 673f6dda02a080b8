package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"testing"
)

// listen returns a listener on a free port, and its URL.
func listen(t *testing.T) (net.Listener, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener, "http://" + listener.Addr().String()
}

func TestDeliveryInFlightIsAnsweredBeforeTheEnd(t *testing.T) {
	t.Parallel()
	listener, url := listen(t)
	inFlight, ending := make(chan struct{}), make(chan struct{})
	server := newServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(inFlight)
		<-ending
	}), slog.New(slog.DiscardHandler))
	server.RegisterOnShutdown(func() { close(ending) })

	answers := make(chan error, 1)
	err := serve(t.Context(), listener, server, func(context.Context) error {
		go func() {
			answer, err := http.Post(url, "", nil)
			if err == nil {
				err = answer.Body.Close()
			}
			answers <- err
		}()
		<-inFlight
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := <-answers; err != nil {
		t.Errorf("the delivery in flight was not answered: %v", err)
	}
}

func TestServerThatFailsEndsTheWork(t *testing.T) {
	t.Parallel()
	listener, _ := listen(t)
	listener.Close()
	err := serve(t.Context(), listener, newServer(nil, slog.New(slog.DiscardHandler)), func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	})
	if !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestErrorOfTheWorkIsKept(t *testing.T) {
	t.Parallel()
	listener, _ := listen(t)
	failure := errors.New("the day went wrong")
	err := serve(t.Context(), listener, newServer(nil, slog.New(slog.DiscardHandler)), func(context.Context) error {
		return failure
	})
	if !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
}
