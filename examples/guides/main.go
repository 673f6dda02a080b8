// Guides delivers events to the schemes that guides and articles show for idempotent
// webhooks, and to this module, with the same faults, and prints the state of the
// payments: the tables of docs/from-the-guides.md.
//
//	go run ./examples/guides
//
// It needs no set-up: without IDEMTEST_DATABASE_URL it starts a Postgres of its own. The
// schemes are written anew, in Go and without their mistakes of detail: they
// lose by their order of steps. Each fault happens once, at a chosen step, so that each run
// prints the same.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/interrupt"
)

func main() {
	ctx, out := interrupt.Context(os.Stdout)
	if err := run(ctx, out); err != nil {
		fmt.Fprintln(os.Stderr, "guides:", interrupt.Explain(ctx, err))
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	server, err := idemtest.Start(ctx)
	if err != nil {
		return err
	}
	defer server.Close()
	pool, err := pgxpool.New(ctx, server.URL())
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := compare(ctx, pool, out); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return penalty(ctx, pool, out)
}

// compare prints the table.
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
		for _, f := range []func(context.Context, *trial) (verdict, error){atOnce, killed, failing, leaving} {
			v, err := f(ctx, &trial{scheme: s, pool: pool})
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			cells = append(cells, v.String())
		}
		fmt.Fprintln(out, "| "+strings.Join(cells, " | ")+" |")
	}
	return nil
}

const tables = `
create table ledger (event text not null, part int not null); -- the effect, of two parts: money that is booked, and an order that is paid
create table queue (event text primary key, done bool not null default false);
create table seen (event text primary key);
create table keys (event text primary key, status int);  -- no status: somebody works on it`
