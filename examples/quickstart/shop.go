package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/zeltapay"
)

// Everybody can read these. An application takes its own from the environment:
// os.Getenv("ASAAS_WEBHOOK_TOKEN"), os.Getenv("ZELTAPAY_WEBHOOK_SECRET").
const (
	asaasToken     = "quickstart-asaas-token"
	zeltapaySecret = "quickstart-zeltapay-secret"
)

const (
	asaasPath    = "/webhooks/asaas"
	zeltapayPath = "/webhooks/zeltapay"
)

// shop is the application.
type shop struct {
	pool            *pgxpool.Pool
	asaas, zeltapay *idem.Inbox
	outcomes        tally // an application has metrics here
}

//go:embed shop.sql
var tables string

// newShop makes the tables, and brings events, handlers and database together.
func newShop(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) (*shop, error) {
	if err := idem.Migrate(ctx, pool); err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, tables); err != nil {
		return nil, fmt.Errorf("making the shop's tables: %w", err)
	}
	s := &shop{
		pool:     pool,
		asaas:    idem.NewInbox(pool, asaasEvents()),
		zeltapay: idem.NewInbox(pool, zeltapayEvents(log)),
	}
	for _, i := range []*idem.Inbox{s.asaas, s.zeltapay} {
		i.Logger = log
		i.Observe = s.outcomes.observe
		i.Backoff = func(int) time.Duration { return time.Minute } // the day takes a moment: nothing is tried again in between
	}
	return s, nil
}

// whileWorking runs the workers of the inboxes until do returns. In an application
// idem.Serve does that, and serves.
func (s *shop) whileWorking(ctx context.Context, do func(context.Context) error) error {
	workers, stop := context.WithCancel(context.WithoutCancel(ctx)) // they stop after the server
	defer stop()
	stopped := make(chan error, 2)
	for _, i := range []*idem.Inbox{s.asaas, s.zeltapay} {
		go func() { stopped <- i.Run(workers) }()
	}
	err := do(ctx)
	stop()
	return errors.Join(err, <-stopped, <-stopped)
}

// asaasEvents registers the shop's handlers of Asaas's events. Those that it does
// not name are acknowledged and kept, for the day when there is a handler.
func asaasEvents() *asaas.Dispatcher {
	events := asaas.NewDispatcher(asaasToken)
	events.OnPaymentCreated(charged)
	events.OnPaymentConfirmed(confirmed)
	events.OnPaymentReceived(received)
	events.OnPaymentOverdue(overdue)
	events.OnPaymentRefunded(refunded)
	events.Ignore(asaas.EventPaymentBankSlipViewed)
	return events
}

// zeltapayEvents is the same for Zelta Pay's. Test payments are not among them.
func zeltapayEvents(log *slog.Logger) *zeltapay.Dispatcher {
	events := zeltapay.NewDispatcher(zeltapaySecret)
	events.Logger = log
	events.OnPaymentSuccess(succeeded)
	return events
}

func (s *shop) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST "+asaasPath, s.asaas)
	mux.Handle("POST "+zeltapayPath, s.zeltapay)
	mux.HandleFunc("GET /orders", s.showOrders)
	mux.Handle("GET /health/webhooks", health.New(s.asaas, s.zeltapay))
	return mux
}

func (s *shop) showOrders(w http.ResponseWriter, r *http.Request) {
	held, err := s.read(r.Context())
	if err != nil {
		http.Error(w, "the orders cannot be read now", http.StatusServiceUnavailable)
		return
	}
	held.print(w)
}
