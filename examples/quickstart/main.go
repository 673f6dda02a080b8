// Quickstart is a small shop that is paid through Asaas and Zelta Pay, and
// books each payment once. It answers at once, and its workers do the rest. It
// plays a day of webhooks against itself over HTTP, and prints each delivery,
// its answer, its outcome, and the content of its database in the end:
//
//	go run ./examples/quickstart
//
// It needs no set-up: without IDEMTEST_DATABASE_URL it starts a Postgres of its own. The part that
// an application of yours needs is in shop.go, handlers.go and server.go. To
// try it by hand, with curl lines to paste:
//
//	go run ./examples/quickstart -serve
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/interrupt"
)

type options struct {
	addr  string
	serve bool
	log   bool
	curl  string
}

func main() {
	var o options
	flag.StringVar(&o.addr, "addr", "127.0.0.1:0", "`address` to listen on; port 0 is any free one")
	flag.BoolVar(&o.serve, "serve", false, "keep serving after the day, until Ctrl-C")
	flag.BoolVar(&o.log, "log", false, "log every delivery of the day to stderr")
	flag.StringVar(&o.curl, "curl", "", "only print curl lines, freshly signed, for the quickstart that serves at this `URL`")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "quickstart: it takes flags only:")
		flag.Usage()
		os.Exit(2)
	}

	ctx, out := interrupt.Context(os.Stdout)
	if err := run(ctx, o, out); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", interrupt.Explain(ctx, err))
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) (err error) {
	if o.curl != "" {
		return printCurl(out, o.curl)
	}
	listener, err := net.Listen("tcp", o.addr)
	if err != nil {
		return fmt.Errorf("choose another -addr: %w", err)
	}
	defer listener.Close()
	postgres, err := idemtest.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, postgres.Close()) }()
	fmt.Fprintf(out, "%s, serving on http://%s\n\n", postgres.Origin(), listener.Addr())
	return open(ctx, o, out, listener, postgres.URL())
}

// open is the part that an application has, too: it opens the shop on a
// database.
func open(ctx context.Context, o options, out io.Writer, listener net.Listener, database string) error {
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return err
	}
	defer pool.Close()
	log, level := newLog(o.log)
	s, err := newShop(ctx, pool, log)
	if err != nil {
		return err
	}
	return s.whileWorking(ctx, func(ctx context.Context) error {
		return serve(ctx, listener, newServer(s.routes(), log), func(ctx context.Context) error {
			url := "http://" + listener.Addr().String()
			if err := s.play(ctx, out, url); err != nil || !o.serve {
				return err
			}
			level.Set(slog.LevelDebug)
			return stay(ctx, out, url)
		})
	})
}

// stay says how to deliver by hand, and waits for Ctrl-C.
func stay(ctx context.Context, out io.Writer, url string) error {
	fmt.Fprintf(out, "\nServing until Ctrl-C. Paste into another terminal:\n\n")
	if err := printCurl(out, url); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// newLog returns a log that is silent unless loud, and its level, which changes that.
func newLog(loud bool) (*slog.Logger, *slog.LevelVar) {
	level := new(slog.LevelVar)
	level.Set(slog.LevelError + 1) // the failures of the day are in its table
	if loud {
		level.Set(slog.LevelDebug)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})), level
}
