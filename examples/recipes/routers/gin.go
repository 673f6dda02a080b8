package routers

import (
	"context"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
)

// Gin serves an inbox under gin, until ctx ends.
func Gin(ctx context.Context, addr string, inbox *idem.Inbox) error {
	router := gin.New()
	router.POST("/webhooks/asaas", gin.WrapH(inbox))
	router.GET("/health/webhooks", gin.WrapH(health.New(inbox)))
	// Instead of router.Run.
	return idem.Serve(ctx, &http.Server{Addr: addr, Handler: router}, inbox)
}
