// Quickstart is a small shop that is paid through Asaas and Zelta Pay, and books each payment once. It
// receives a day of webhooks over HTTP, and prints each answer with its effect, and what the database holds
// at night. Then it stays, with a page on which an event waits for you:
//
//	go run ./examples/quickstart
//
// With -once it ends after the day. It needs no set-up: without IDEMTEST_DATABASE_URL it starts a Postgres of
// its own. shop.go is the application, to copy. day.go plays the providers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/oncall/console"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	slog.SetLogLoggerLevel(slog.LevelError + 1) // what fails is in the output
	once := flag.Bool("once", false, "end after the day")
	flag.Parse()
	if err := run(ctx, os.Stdout, *once); err != nil {
		log.Fatal("quickstart: ", err)
	}
}

func run(ctx context.Context, out io.Writer, once bool) (err error) {
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
	s, err := newShop(ctx, pool)
	if err != nil {
		return err
	}
	// Only here: your shop parks an event after 20 attempts in eight hours, and asks who somebody is.
	s.asaas.MaxAttempts = 1
	page := console.New(s.asaas, s.zeltapay)
	defer page.Close()
	page.Access = func(*http.Request) (string, console.Access) {
		return "you", console.Access{See: true, Reveal: true, Act: true}
	}
	mux := http.NewServeMux()
	mux.Handle("/ops/", page)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	listening := make(chan string, 1)
	server := &http.Server{Addr: "127.0.0.1:0", BaseContext: func(l net.Listener) context.Context { // any free port
		listening <- l.Addr().String()
		return context.Background()
	}}
	served := make(chan error, 1)
	go func() { served <- s.serve(ctx, server, mux) }()
	select {
	case err := <-served:
		return err
	case addr := <-listening:
		fmt.Fprintf(out, "%s, serving on http://%s\n\n", postgres.Origin(), addr)
		err = (&day{shop: s, pool: pool, url: "http://" + addr, out: out}).play(ctx)
		if err == nil && !once {
			fmt.Fprintf(out, stays, addr)
			<-ctx.Done()
		}
	}
	stop()
	return errors.Join(err, <-served)
}

const stays = `
The payment of A-1005 is parked: its order was stored too late. It is stored now.

  See what is wrong, and have the event run again:   http://%[1]s/ops/
  What a monitor sees:                               http://%[1]s/health/webhooks
  The shop, to copy:                                 examples/quickstart/shop.go
  Your own first event:                              docs/first-event.md

Ctrl-C ends it.
`
