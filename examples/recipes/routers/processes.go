package routers

import (
	"context"
	"net/http"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
)

// Receive stores deliveries until ctx ends. It runs no handler.
func Receive(ctx context.Context, addr string, inbox *idem.Inbox) error {
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks/asaas", inbox)
	mux.Handle("GET /health/webhooks", health.New(inbox))
	// No inbox: it has no workers.
	return idem.Serve(ctx, &http.Server{Addr: addr, Handler: mux})
}

// HandleOnly runs the handlers of what other processes receive, and prunes daily.
func HandleOnly(ctx context.Context, addr string, inbox *idem.Inbox) error {
	mux := http.NewServeMux()
	mux.Handle("GET /health/webhooks", health.New(inbox))
	return idem.Serve(ctx, &http.Server{Addr: addr, Handler: mux}, inbox)
}
