package idemcmd_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/oncall/idemcmd"
)

// The command as a program of its own: go run ./cmd/shop-idem replay -type PAYMENT_RECEIVED
func ExampleMain() {
	idemcmd.Main(func(pool *pgxpool.Pool) idem.Receiver { // the application serves it, too
		events := asaas.NewDispatcher()
		events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
			_, err := tx.Exec(ctx, `insert into payments (event_id, charge_id, amount) values ($1, $2, $3) on conflict do nothing`, e.ID, e.Payment.ID, e.Payment.Value)
			return err
		})
		return idem.NewInbox(pool, events)
	})
}

// A program with a main of its own has the command as one of its subcommands.
func ExampleCommand() {
	ctx := context.Background()
	server, err := idemtest.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	noOrder := errors.New("there is no order of this charge")
	receiver := func(pool *pgxpool.Pool) idem.Receiver {
		events := asaas.NewDispatcher("the-token-of-the-webhook")
		events.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return noOrder })
		inbox := idem.NewInbox(pool, events)
		inbox.MaxAttempts, inbox.Logger = 1, nil
		return inbox
	}
	run := func(line string) {
		fmt.Println("$ shop", line)
		c := idemcmd.Command{
			Args:   append(strings.Fields(line), "-database", server.URL()),
			Stdout: os.Stdout, Stderr: io.Discard,
			Receivers: []idemcmd.NewReceiver{receiver},
		}
		fmt.Println("exit status", c.Run(ctx))
	}
	run("migrate -json")
	deliver(ctx, server.URL(), receiver)
	run("replay -dry-run -json")
	noOrder = nil // the fix
	run("replay -yes -reason fixed")
	run("replay")
	// Output:
	// $ shop migrate -json
	// {"migration":"migrations/00001_idem.sql","dry_run":false}
	// exit status 0
	// $ shop replay -dry-run -json
	// {"source":"asaas","action":"replay","matched":1,"dry_run":true,"done":0,"failed":1,"unhandled":0}
	// exit status 1
	// $ shop replay -yes -reason fixed
	// 1 event of asaas: replayed: 1 done, 0 failed, 0 without a handler
	// exit status 0
	// $ shop replay
	// exit status 3
}

// deliver is a delivery of the provider's.
func deliver(ctx context.Context, url string, receiver idemcmd.NewReceiver) {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	body := asaastest.Event("PAYMENT_RECEIVED")
	inbox := receiver(pool).(*idem.Inbox)
	_, err = inbox.Accept(ctx, asaas.Identify(body))
	if err = errors.Join(err, inbox.Drain(ctx)); err != nil {
		log.Fatal(err)
	}
}
