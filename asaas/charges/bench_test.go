package charges_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/asaas/charges"
)

// BenchmarkCopy compares a copy of a charge with a line in a ledger, in an open transaction: the time of a round trip, and
// what of it is processor time of Postgres's.
func BenchmarkCopy(b *testing.B) {
	p := asaastest.NewCharge(asaas.BillingTypeCreditCard, asaas.Cents(29900)).Payment
	p.Status = asaas.PaymentStatusPending
	at := time.Date(2026, 8, 8, 12, 0, 0, 0, time.UTC)
	read := func(ctx context.Context, tx pgx.Tx, id string, status asaas.PaymentStatus, at time.Time) error {
		p := p
		p.ID, p.Status = id, status
		_, err := charges.CopyRead(ctx, tx, "", &p, at)
		return err
	}
	for _, c := range []struct {
		name   string
		before bool // there is a row
		do     func(ctx context.Context, tx pgx.Tx, id string) error
	}{
		{"a line in a ledger", false, func(ctx context.Context, tx pgx.Tx, id string) error {
			_, err := tx.Exec(ctx, `insert into ledger (charge, paid, received) values ($1, $2, $3)`, id, p.Value, p.Value)
			return err
		}},
		{"of a new charge", false, func(ctx context.Context, tx pgx.Tx, id string) error { return read(ctx, tx, id, "PENDING", at) }},
		{"of the next event", true, func(ctx context.Context, tx pgx.Tx, id string) error {
			return read(ctx, tx, id, "RECEIVED", at.Add(time.Hour))
		}},
		{"of a late event", true, func(ctx context.Context, tx pgx.Tx, id string) error {
			return read(ctx, tx, id, "PENDING", at.Add(-time.Hour))
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			tx, err := newTables(b).Begin(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = tx.Rollback(context.WithoutCancel(b.Context())) }()
			each := func(do func(ctx context.Context, tx pgx.Tx, id string) error) {
				for n := range b.N {
					if err := do(b.Context(), tx, fmt.Sprintf("pay_%016d", n)); err != nil {
						b.Fatal(err)
					}
				}
			}
			if c.before {
				each(func(ctx context.Context, tx pgx.Tx, id string) error { return read(ctx, tx, id, "PENDING", at) })
			}
			pid := tx.Conn().PgConn().PID()
			before, known := processorTime(pid)
			b.ResetTimer()
			each(c.do)
			b.StopTimer()
			if after, ok := processorTime(pid); ok && known {
				b.ReportMetric(float64((after-before).Microseconds())/float64(b.N), "postgres-µs/op")
			}
			var bytes int64
			if err := tx.QueryRow(b.Context(), `select pg_total_relation_size('asaas_charges')`).Scan(&bytes); err != nil {
				b.Fatal(err)
			}
			if c.name == "of a new charge" {
				b.ReportMetric(float64(bytes)/float64(b.N), "bytes/row")
			}
		})
	}
}

// BenchmarkEvent compares the handlers of an event, in an open transaction, with the same statement of the
// application's.
func BenchmarkEvent(b *testing.B) {
	set := func(ctx context.Context, tx pgx.Tx, reference any, amount asaas.Money) (int64, error) {
		tag, err := tx.Exec(ctx, `update orders set paid = $1 where id = $2`, amount, reference)
		return tag.RowsAffected(), err
	}
	adds, sets := newEvents(func(ctx context.Context, tx pgx.Tx, c charges.Change) error {
		_, err := set(ctx, tx, c.After.ExternalReference, c.Paid())
		return err
	}), newSetting(func(ctx context.Context, tx pgx.Tx, o charges.Order) (int64, error) {
		return set(ctx, tx, o.Reference, o.Paid)
	})
	for _, c := range []struct {
		name   string
		events *asaas.Dispatcher
	}{{"Handler", adds}, {"Orders", sets}} {
		b.Run(c.name, func(b *testing.B) {
			pool := newTables(b)
			if _, err := pool.Exec(b.Context(), `create table orders (id text primary key, paid numeric) with (fillfactor = 50);
				insert into orders select 'order-' || n from generate_series(0, 999) n`); err != nil {
				b.Fatal(err)
			}
			var bodies [][]byte
			for n := range b.N {
				charge := newOf(fmt.Sprintf("order-%d", n%1000), asaas.BillingTypePix)
				charge.Created()
				bodies = append(bodies, charge.Received())
			}
			tx, err := pool.Begin(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = tx.Rollback(context.WithoutCancel(b.Context())) }()
			pid := tx.Conn().PgConn().PID()
			before, known := processorTime(pid)
			b.ResetTimer()
			for _, body := range bodies {
				if err := dispatch(b.Context(), tx, c.events, "", body); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			if after, ok := processorTime(pid); ok && known {
				b.ReportMetric(float64((after-before).Microseconds())/float64(b.N), "postgres-µs/op")
			}
		})
	}
}

// processorTime returns what a process on this machine has used, on Linux.
func processorTime(pid uint32) (used time.Duration, ok bool) {
	stat, err := os.ReadFile("/proc/" + strconv.FormatUint(uint64(pid), 10) + "/stat")
	if err != nil {
		return 0, false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest) // from the third on
	if len(fields) < 13 {
		return 0, false
	}
	for _, field := range fields[11:13] { // utime and stime, in hundredths of a second
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, false
		}
		used += time.Duration(n) * 10 * time.Millisecond
	}
	return used, true
}
