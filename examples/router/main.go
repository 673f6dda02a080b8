// Router is an application with its own mux, pool and table (orders.sql) that has several accounts at Asaas, with a URL each.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, database string) error {
	if database == "" {
		return errors.New("set DATABASE_URL")
	}
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := idem.Migrate(ctx, pool); err != nil {
		return err
	}
	if err := charges.Migrate(ctx, pool); err != nil {
		return err
	}
	// The account that was there before the others keeps having no scope.
	events := asaas.NewDispatcher(os.Getenv("ASAAS_WEBHOOK_TOKEN"))
	events.Accounts = func(r *http.Request) ([]idem.Credentials, error) {
		account := r.PathValue("account")
		token := os.Getenv("ASAAS_TOKEN_" + account)
		if account == "" || token == "" {
			return nil, nil // the first account's path, or no account of ours
		}
		return []idem.Credentials{{Scope: account, Secrets: []string{token}}}, nil
	}
	events.OnPayment(charges.Handler(changed))
	inbox := idem.NewInbox(pool, events)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /up", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("POST /webhooks/asaas", inbox)
	mux.Handle("POST /webhooks/asaas/{account}", inbox)
	return idem.Serve(ctx, &http.Server{Addr: cmp.Or(os.Getenv("ADDR"), "127.0.0.1:8080"), Handler: mux}, inbox)
}

// changed adds what is paid of a charge to the order of its account.
func changed(ctx context.Context, tx pgx.Tx, c charges.Change) error {
	reference := c.After.ExternalReference.Or("")
	if reference == "" || c.Paid().IsZero() {
		return nil // money that names no order stays in asaas_charges
	}
	updated, err := tx.Exec(ctx, `update orders set paid = paid + $1 where account = $2 and id = $3`, c.Paid(), c.After.Scope, reference)
	if err == nil && updated.RowsAffected() == 0 {
		err = fmt.Errorf("the order of charge %s of account %q is not stored", c.After.ID, c.After.Scope)
	}
	return err
}
