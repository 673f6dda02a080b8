//go:build unix

package idem_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

const (
	heldLanes  = 100_000
	heldRounds = 120
	heldEvents = 200 // of a round
)

// BenchmarkHeld compares the mark of a new event, which looks for a parked event of its entity,
// with the same statement without that, beside as many events that are done as IDEM_BENCH_HELD
// says: BEGIN, the mark and ROLLBACK in one round trip of one connection, in alternating rounds.
// Run it with -benchtime=1x. Storing ten million events takes minutes, so it runs only when that
// is set.
func BenchmarkHeld(b *testing.B) {
	done, err := strconv.Atoi(os.Getenv("IDEM_BENCH_HELD"))
	if err != nil {
		b.Skip("set IDEM_BENCH_HELD to a number of events, such as 10000000")
	}
	pool := schemaPool(b, durable(b), "held")
	exec := func(statements ...string) {
		b.Helper()
		for _, sql := range statements {
			if _, err := pool.Exec(b.Context(), sql); err != nil {
				b.Fatal(err)
			}
		}
	}
	exec(`alter table idem_events drop constraint idem_events_pkey`, // made anew below, which is quicker
		fmt.Sprintf(`insert into idem_events (event, type, key, state, received_at, occurred_at)
			select 'notes//evt_' || md5(n::text) || '&' || n, 'paid', 'order-' || n / 3, 'done', now() - interval '1 day', now() - interval '1 day'
			from generate_series(1, %d) n`, done),
		`alter table idem_events add primary key (event)`, `vacuum analyze idem_events`, `vacuum analyze idem_payloads`, `checkpoint`)
	b.Run("nothing is held", func(b *testing.B) { compareMarks(b, pool, 1) })
	exec(fmt.Sprintf(`insert into idem_events (event, type, key, state)
			select 'notes//held-' || n, 'paid', 'held-order-' || n / 2, 'parked' from generate_series(2, %d) n`, 2*heldLanes+1),
		`insert into idem_payloads (event, source, lane, held, received_at, body)
			select event, 'notes', 'notes//' || key, right(event, 1)::int % 2 = 1, received_at + right(event, 1)::int % 2 * interval '1 second', '{"id":"held"}'
			from idem_events where state = 'parked'`,
		`vacuum analyze idem_events`, `vacuum analyze idem_payloads`, `checkpoint`)
	b.Run(fmt.Sprintf("%d lanes are held", heldLanes), func(b *testing.B) { compareMarks(b, pool, 2) })
	old, err := pool.BeginTx(b.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = old.Rollback(b.Context()) }()
	if _, err := old.Exec(b.Context(), `select count(*) from idem_payloads`); err != nil {
		b.Fatal(err)
	}
	exec(`delete from idem_payloads where source = 'notes'`, `update idem_events set state = 'done' where state = 'parked'`)
	b.Run("the same deleted, beside a snapshot that is older", func(b *testing.B) { compareMarks(b, pool, 3) })
}

// compareMarks reports the medians of the rounds, and the fastest ones.
func compareMarks(b *testing.B, pool *pgxpool.Pool, series int) {
	conn, err := pool.Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Release()
	const look, nothing = "where (select p.event from idem_payloads p", "where $5::text is not null\non conflict"
	without := func(sql string) string {
		before, after, ok := strings.Cut(sql, look)
		_, after, found := strings.Cut(after, "on conflict")
		if !ok || !found {
			b.Fatalf("the mark looks in another way: %s", sql)
		}
		return before + nothing + after
	}
	number := 0
	round := func(change func(string) string) time.Duration {
		start := time.Now()
		for range heldEvents {
			number++
			batch, s := &pgx.Batch{}, &pgtx.Session{}
			batch.Queue("begin")
			e := store.Event{Source: "notes", ID: fmt.Sprintf("new-%d-%d", series, number), Type: "paid", Key: fmt.Sprintf("new-order-%d", number), Payload: []byte("{}"), OccurredAt: start}
			store.Mark(batch, e, false, s)
			mark := batch.QueuedQueries[1]
			mark.SQL = change(mark.SQL)
			batch.Queue("rollback")
			if err := conn.SendBatch(b.Context(), batch).Close(); err != nil || s.StartedAt.IsZero() {
				b.Fatalf("the event is not marked: %v", err)
			}
		}
		return time.Since(start) / heldEvents
	}
	for b.Loop() {
		var took [2][]time.Duration
		for range heldRounds {
			took[0] = append(took[0], round(func(sql string) string { return sql }))
			took[1] = append(took[1], round(without))
		}
		for n, name := range []string{"with", "without"} {
			slices.Sort(took[n])
			b.ReportMetric(float64(took[n][heldRounds/2])/1e3, name+"-µs")
			b.ReportMetric(float64(took[n][0])/1e3, name+"-fastest-µs")
		}
	}
}
