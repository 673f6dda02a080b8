package routers

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
)

// Echo serves an inbox under echo, until ctx ends.
func Echo(ctx context.Context, addr string, inbox *idem.Inbox) error {
	router := echo.New()
	router.POST("/webhooks/asaas", echo.WrapHandler(inbox))
	router.GET("/health/webhooks", echo.WrapHandler(health.New(inbox)))
	return idem.Serve(ctx, &http.Server{Addr: addr, Handler: router}, inbox) // instead of router.Start
}
