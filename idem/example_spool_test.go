package idem_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
)

// Postgres is unavailable when an event arrives. The process may even end before it is back:
// the next one finds the event on the disk.
func ExampleOpenSpool() {
	ctx := context.Background()
	volume, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(volume)
	events := asaas.NewDispatcher(token)
	events.OnPaymentReceived(payOrder)

	none, err := pgxpool.New(ctx, "postgres://127.0.0.1:1/shop")
	if err != nil {
		log.Fatal(err)
	}
	inbox := idem.NewInbox(none, events)
	inbox.Logger = nil
	if inbox.Spool, err = idem.OpenSpool(volume); err != nil {
		log.Fatal(err)
	}
	deliver(inbox, received)
	none.Close() // the process ends

	pool, end := database(ctx)
	defer end()
	inbox = idem.NewInbox(pool, events)
	if inbox.Spool, err = idem.OpenSpool(volume); err != nil {
		log.Fatal(err)
	}
	fmt.Println("Postgres is back")
	drain(ctx, inbox) // in a program: idem.Serve, or inbox.Run
	// Output:
	// 200 {"received":true}
	// Postgres is back
	// worker: PAYMENT_RECEIVED done
}
