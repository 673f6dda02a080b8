// Zeltapay receives the webhooks of Zelta Pay, and marks the orders that are paid. docs/first-event-zeltapay.md runs it step by step.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/zeltapay"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	must(err)
	must(idem.Migrate(ctx, pool)) // the tables of idem
	events := zeltapay.NewDispatcher(os.Getenv("ZELTAPAY_WEBHOOK_SECRET"))
	events.OnPaymentSuccess(paid)
	inbox := idem.NewInbox(pool, events)
	http.Handle("POST /webhooks/zeltapay", inbox)
	http.Handle("GET /health/webhooks", health.New(inbox))
	must(idem.Serve(ctx, &http.Server{Addr: ":8080"}, inbox)) // until Ctrl-C or SIGTERM; prunes daily
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// paid finds the order by the id that your program put into the metadata of the payment link.
func paid(ctx context.Context, tx pgx.Tx, e *zeltapay.PaymentEvent) error {
	order, ok := e.LinkMetadata().String("orderId")
	if !ok {
		return idem.NoRetry(fmt.Errorf("link %s names no order", e.LinkID())) // made in the dashboard: parked, and somebody is told
	}
	updated, err := tx.Exec(ctx, `update orders set paid_at = coalesce(paid_at, $1, now()) where id = $2`, e.PaidAt(), order)
	if err == nil && updated.RowsAffected() == 0 {
		err = fmt.Errorf("the order of link %s is not stored", e.LinkID()) // tried again, then parked, and health turns red
	}
	return err
}
