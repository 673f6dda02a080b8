// Inbox is an application that answers Asaas at once and works afterwards. It
// sends itself a burst of 5,000 events over HTTP, 64 at once and many of them
// twice, while its workers book them, and checks in the end that each payment
// is booked once, with its events in order:
//
//	go run ./examples/inbox
//
// It needs no set-up: without IDEMTEST_DATABASE_URL it starts a Postgres of its own. The part that
// an application of yours needs is in app.go and serve.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/interrupt"
)

// longest is the time that all may take; a burst of 5,000 events takes seconds.
const longest = 5 * time.Minute

func main() {
	events := flag.Int("events", 5000, "how many `events` the burst has, four for each payment")
	flag.Parse()
	if flag.NArg() > 0 || *events < len(steps) {
		fmt.Fprintf(os.Stderr, "inbox: it takes flags only, and %d events at least:\n", len(steps))
		flag.Usage()
		os.Exit(2)
	}
	ctx, out := interrupt.Context(os.Stdout)
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	if err := run(ctx, *events/len(steps), out, isTerminal(os.Stdout)); err != nil {
		fmt.Fprintln(os.Stderr, "inbox:", interrupt.Explain(ctx, err))
		os.Exit(1)
	}
}

func run(ctx context.Context, payments int, out io.Writer, redraw bool) (err error) {
	postgres, err := idemtest.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, postgres.Close()) }()
	fmt.Fprintf(out, "%s\n\n", postgres.Origin())
	return play(ctx, postgres.URL(), payments, out, redraw)
}

// play has the application receive a burst, and checks the result.
func play(ctx context.Context, database string, payments int, out io.Writer, redraw bool) error {
	pool, err := openPool(ctx, database)
	if err != nil {
		return err
	}
	defer pool.Close()
	a, err := newApp(ctx, pool)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	seen := newTally(payments * len(steps))
	a.inbox.Observe = seen.observe
	return a.serve(ctx, listener, func(ctx context.Context) error {
		url := "http://" + listener.Addr().String() + path
		r, err := a.receive(ctx, newBurst(url, payments), seen, progress{out, redraw})
		if err != nil {
			return err
		}
		r.print(out)
		if err := checkLedger(ctx, pool, payments); err != nil {
			return err
		}
		_, err = fmt.Fprintf(out, "\nEach of the %d payments is booked once, with its %d events in order.\n", payments, len(steps))
		return err
	})
}

// openPool opens a pool of 16 connections: half of them are for the workers.
func openPool(ctx context.Context, database string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(database)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 16
	return pgxpool.NewWithConfig(ctx, config)
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
