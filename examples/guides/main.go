// Guides delivers events to the schemes that guides and articles show for idempotent
// webhooks, and to this module, with the same faults, and prints the state of the
// payments: the table of docs/from-the-guides.md.
//
//	go run ./examples/guides
//
// It needs no set-up: without IDEMTEST_DATABASE_URL it starts a Postgres of its own. The
// schemes (schemes.go) are written anew, in Go and without their mistakes of detail: they
// lose by their order of steps. Each fault (faults.go) happens once, at a chosen step, so that each run
// prints the same.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		log.Fatal("guides: ", err)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	server, err := idemtest.Start(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	pool, err := pgxpool.New(ctx, server.URL())
	if err != nil {
		return err
	}
	defer pool.Close()
	return compare(ctx, pool, out)
}

const tables = `
create table ledger (event text not null, part int not null); -- the effect, of two parts: money that is booked, and an order that is paid
create table queue (event text primary key, done bool not null default false);
create table seen (event text primary key);
create table keys (event text primary key, status int);  -- no status: it is being processed`

// compare prints the effect of each fault on each scheme.
func compare(ctx context.Context, pool *pgxpool.Pool, out io.Writer) error {
	if err := idem.Migrate(ctx, pool); err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, tables); err != nil {
		return err
	}
	fmt.Fprintln(out, "| Scheme | twice at once | killed, at each step | the handler fails once | the sender leaves |")
	fmt.Fprintln(out, "|---|---|---|---|---|")
	for _, s := range schemes(pool) {
		cells := []string{s.name}
		for _, try := range []func(context.Context, *trial) error{atOnce, killed, failing, leaving} {
			t := &trial{scheme: s, pool: pool}
			if err := try(ctx, t); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			cells = append(cells, t.String())
		}
		fmt.Fprintln(out, "| "+strings.Join(cells, " | ")+" |")
	}
	return nil
}
