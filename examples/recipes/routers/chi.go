package routers

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
)

// Chi serves an inbox under chi, until ctx ends.
func Chi(ctx context.Context, addr string, inbox *idem.Inbox) error {
	router := chi.NewRouter()
	router.Method(http.MethodPost, "/webhooks/asaas", inbox)
	router.Method(http.MethodGet, "/health/webhooks", health.New(inbox))
	return idem.Serve(ctx, &http.Server{Addr: addr, Handler: router}, inbox)
}
