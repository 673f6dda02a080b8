package routers_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/go-chi/chi/v5"
	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

const token = "a token of the shop, 32 characters"

// receiver stores the scope of each event that it handles.
func receiver(t *testing.T) (*pgxpool.Pool, http.Handler) {
	t.Helper()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `create table received (scope text)`); err != nil {
		t.Fatal(err)
	}
	events := asaas.NewDispatcher()
	events.Accounts = func(r *http.Request) ([]idem.Credentials, error) {
		return []idem.Credentials{{Scope: r.PathValue("account"), Secrets: []string{token}}}, nil
	}
	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, _ *asaas.PaymentEvent) error {
		event, _ := idem.EventFrom(ctx)
		_, err := tx.Exec(ctx, `insert into received values ($1)`, event.Scope)
		return err
	})
	inbox := idem.NewInbox(pool, events)
	inbox.WorkFirst = true
	return pool, inbox
}

// router sends a request through a router to h.
type router func(t *testing.T, h http.Handler, r *http.Request) (status int)

func served(h http.Handler, r *http.Request) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func viaMux(_ *testing.T, h http.Handler, r *http.Request) int {
	mux := http.NewServeMux()
	mux.Handle("POST /webhooks/{account}", h)
	return served(mux, r)
}

func viaChi(_ *testing.T, h http.Handler, r *http.Request) int {
	mux := chi.NewRouter()
	mux.Method("POST", "/webhooks/{account}", h)
	return served(mux, r)
}

func viaGin(_ *testing.T, h http.Handler, r *http.Request) int {
	gin.SetMode(gin.ReleaseMode)
	mux := gin.New()
	mux.POST("/webhooks/:account", gin.WrapH(h))
	return served(mux, r)
}

func viaGinWithPathValue(_ *testing.T, h http.Handler, r *http.Request) int {
	gin.SetMode(gin.ReleaseMode)
	mux := gin.New()
	mux.POST("/webhooks/:account", func(c *gin.Context) {
		c.Request.SetPathValue("account", c.Param("account"))
		h.ServeHTTP(c.Writer, c.Request)
	})
	return served(mux, r)
}

func viaEcho(_ *testing.T, h http.Handler, r *http.Request) int {
	mux := echo.New()
	mux.POST("/webhooks/:account", echo.WrapHandler(h))
	return served(mux, r)
}

func viaEchoWithPathValue(_ *testing.T, h http.Handler, r *http.Request) int {
	mux := echo.New()
	mux.POST("/webhooks/:account", func(c echo.Context) error {
		c.Request().SetPathValue("account", c.Param("account"))
		h.ServeHTTP(c.Response(), c.Request())
		return nil
	})
	return served(mux, r)
}

func viaFiber(t *testing.T, h http.Handler, r *http.Request) int {
	mux := fiber.New()
	mux.Post("/webhooks/:account", adaptor.HTTPHandler(h))
	return tested(t, mux, r)
}

func viaFiberWithPathValue(t *testing.T, h http.Handler, r *http.Request) int {
	mux := fiber.New()
	mux.Post("/webhooks/:account", func(c *fiber.Ctx) error {
		account := c.Params("account")
		return adaptor.HTTPHandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.SetPathValue("account", account)
			h.ServeHTTP(w, r)
		})(c)
	})
	return tested(t, mux, r)
}

func tested(t *testing.T, app *fiber.App, r *http.Request) int {
	t.Helper()
	answer, err := app.Test(r, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// A dispatcher with a URL for each account works under routers other than the standard
// library's, or fails so that somebody notices.
func TestTheURLNamesTheAccountOrNothingIsStored(t *testing.T) {
	for _, tt := range []struct {
		name  string
		via   router
		works bool
	}{
		{"net/http", viaMux, true},
		{"chi", viaChi, true},
		{"gin", viaGin, false},
		{"gin with SetPathValue", viaGinWithPathValue, true},
		{"echo", viaEcho, false},
		{"echo with SetPathValue", viaEchoWithPathValue, true},
		{"fiber", viaFiber, false},
		{"fiber with SetPathValue", viaFiberWithPathValue, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pool, h := receiver(t)
			r := httptest.NewRequest("POST", "/webhooks/shop", bytes.NewReader(asaastest.Event("PAYMENT_RECEIVED")))
			r.Header.Set(asaas.TokenHeader, token)
			status := tt.via(t, h, r)
			var scopes []string
			var stored int
			err := pool.QueryRow(t.Context(), `select array(select scope from received), (select count(*) from idem_events)`).Scan(&scopes, &stored)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case tt.works && (status != http.StatusOK || len(scopes) != 1 || scopes[0] != "shop"):
				t.Errorf("answered %d, handled in the scopes %q, want 200 and shop", status, scopes)
			case !tt.works && (status != http.StatusServiceUnavailable || stored != 0):
				t.Errorf("answered %d with %d events stored, want 503 and none", status, stored)
			}
		})
	}
}
