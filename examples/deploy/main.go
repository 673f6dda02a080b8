// Deploy is a shop as it is deployed: "shop migrate" is the release step, "shop" receives and works.
// docs/deploy.md explains it.
package main

import (
	"cmp"
	"context"
	"errors"
	"log"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	run := serve
	if len(os.Args) > 1 && os.Args[1] == "migrate" {
		run = migrate
	}
	if err := run(ctx, pool); err != nil {
		log.Fatal(err)
	}
}

// migrate is the release step. It needs the right to create tables, and serve does not.
func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	const own = `create table if not exists orders (
		id text primary key, paid numeric not null default 0)`
	_, err := pool.Exec(ctx, own)
	return errors.Join(idem.Migrate(ctx, pool), charges.Migrate(ctx, pool), err)
}

func serve(ctx context.Context, pool *pgxpool.Pool) error {
	events := asaas.NewDispatcher(os.Getenv("ASAAS_WEBHOOK_TOKEN"))
	events.OnPayment(charges.Orders(paid))
	inbox := idem.NewInbox(pool, events)

	http.Handle("POST /webhooks/asaas", inbox)
	http.Handle("GET /health/webhooks", health.New(inbox))                  // for the alert
	http.HandleFunc("GET /up", func(http.ResponseWriter, *http.Request) {}) // for the host's probes
	return idem.Serve(ctx, &http.Server{Addr: ":" + cmp.Or(os.Getenv("PORT"), "8080")}, inbox)
}

// paid sets the order to the sum of its charges.
func paid(ctx context.Context, tx pgx.Tx, o charges.Order) (int64, error) {
	set, err := tx.Exec(ctx, `update orders set paid = $1 where id = $2`, o.Paid, o.Reference)
	return set.RowsAffected(), err
}
