// Year is a merchant's year, with all that goes wrong in one: events that come before
// their orders, again after newer ones, or never; a queue that stands still for 15 days; a
// token that is changed on one side; a second account; handlers that fail for a weekend. It
// prints the merchant's view, and compares the end with the provider's books:
//
//	go run ./examples/year
//
// The shop's handlers are those of the README, with a ledger. They, the inbox and the
// Postgres are real; without IDEMTEST_DATABASE_URL it starts a Postgres of its own. Asaas
// is package asaastest's, and in its time a day passes in milliseconds. The part that an application
// of yours has is in shop.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/idemtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		log.Fatal("year: ", err)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	postgres, err := idemtest.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, postgres.Close()) }()
	pool, err := pgxpool.New(ctx, postgres.URL())
	if err != nil {
		return err
	}
	defer pool.Close()
	fmt.Fprintf(out, "%s, and an Asaas in virtual time, that of Brasília\n\n", postgres.Origin())
	start := time.Now()
	y, err := newYear(ctx, pool, out)
	if err != nil {
		return err
	}
	defer y.end()
	for _, chapter := range story {
		if err := chapter(y, ctx); err != nil {
			return err
		}
	}
	if err := y.check(ctx); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\nOrders, ledger and report are right. The year took %d ms.\n", time.Since(start).Milliseconds())
	return err
}
