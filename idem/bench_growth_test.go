//go:build unix

package idem_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// BenchmarkGrowth compares both modes beside as many events that are done as
// IDEM_BENCH_GROWTH says, ten million for a year or so of a busy merchant, with
// both on empty tables. ratio is the rate beside them to the one without. Storing
// them takes minutes, so it runs only when that is set.
func BenchmarkGrowth(b *testing.B) {
	done, err := strconv.Atoi(os.Getenv("IDEM_BENCH_GROWTH"))
	if err != nil {
		b.Skip("set IDEM_BENCH_GROWTH to a number of events, such as 10000000")
	}
	all := durable(b)
	empty, grown := schemaPool(b, all, "growth_empty"), schemaPool(b, all, "growth_grown")
	for _, sql := range []string{
		`alter table idem_events drop constraint idem_events_pkey`, // made anew below, which is quicker
		fmt.Sprintf(`insert into idem_events (event, type, key, state, received_at)
			select 'notes//evt_' || md5(n::text) || '&' || n, 'paid', 'order-' || n / 3, 'done', now() - interval '1 day' from generate_series(1, %d) n`, done),
		`alter table idem_events add primary key (event)`,
		`vacuum analyze idem_events`,
		`checkpoint`,
	} {
		if _, err := grown.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	first := 0
	for _, mode := range []struct {
		name string
		run  func(*pgxpool.Pool) *rival
	}{
		{"inline", func(pool *pgxpool.Pool) *rival { return serve(b, "", newBenchProcessor(pool, bookOrder)) }},
		{"inbox", func(pool *pgxpool.Pool) *rival { return work(b, newBenchInbox(pool)) }},
	} {
		without, beside := mode.run(empty), mode.run(grown)
		without.name, beside.name, beside.pool = "empty", "grown", grown
		b.Run(mode.name+"/at=16", func(b *testing.B) {
			first += 1_000_000_000 // the tables are the same as before
			without.first, beside.first = first, first
			race(b, empty, 16, without, beside)
		})
	}
}

// schemaPool is a shopPool in a schema of its own, which is removed in the end.
func schemaPool(b *testing.B, at, schema string) *pgxpool.Pool {
	b.Helper()
	admin, err := pgxpool.New(b.Context(), at)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(admin.Close)
	drop := `drop schema if exists ` + schema + ` cascade`
	if _, err := admin.Exec(b.Context(), drop+`; create schema `+schema); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if _, err := admin.Exec(context.WithoutCancel(b.Context()), drop); err != nil {
			b.Error(err)
		}
	})
	u, err := url.Parse(at)
	if err != nil {
		b.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", schema)
	u.RawQuery = q.Encode()
	return shopPool(b, u.String(), 0)
}
