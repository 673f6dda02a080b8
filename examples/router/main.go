// Router is an application with its own mux, pool and table (payments.sql) that has several accounts at Asaas, with a URL each.
package main

import (
	"cmp"
	"context"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
)

func main() {
	pool, err := pgxpool.New(context.Background(), os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	if err := idem.Migrate(context.Background(), pool); err != nil {
		log.Fatal(err)
	}
	events := asaas.NewDispatcher()
	events.Accounts = func(r *http.Request) ([]idem.Credentials, error) { // an account without a token is refused
		return []idem.Credentials{{Scope: r.PathValue("account"), Secrets: []string{os.Getenv("ASAAS_TOKEN_" + r.PathValue("account"))}}}, nil
	}
	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		event, _ := idem.EventFrom(ctx)
		_, err := tx.Exec(ctx, `insert into payments (account, id, amount) values ($1, $2, $3)`, event.Scope, e.Payment.ID, e.Payment.Value)
		return err
	})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("POST /webhooks/asaas/{account}", idem.NewProcessor(pool, events))
	log.Fatal((&http.Server{Addr: cmp.Or(os.Getenv("ADDR"), "127.0.0.1:8080"), Handler: mux, ReadHeaderTimeout: 5 * time.Second}).ListenAndServe())
}
