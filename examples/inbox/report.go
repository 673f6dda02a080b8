package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// report describes the burst.
type report struct {
	acknowledged, worked time.Duration   // from its start
	answers              []time.Duration // how long each took, sorted
}

// receive has the burst sent, and waits until all of it is worked on.
func (a *app) receive(ctx context.Context, b *burst, seen *tally, p progress) (r report, err error) {
	stop := make(chan struct{})
	var shown sync.WaitGroup
	shown.Go(func() { p.show(seen, stop) })
	defer shown.Wait()
	defer close(stop)
	start := time.Now()
	if r.answers, err = b.send(ctx); err != nil {
		return r, err
	}
	r.acknowledged = time.Since(start)
	slices.Sort(r.answers)
	select {
	case <-seen.finished:
		r.worked = time.Since(start)
		return r, nil
	case <-ctx.Done():
		return r, fmt.Errorf("stopped with the work half done (%s): %w", seen, ctx.Err())
	}
}

func (r report) print(out io.Writer) {
	fmt.Fprintf(out, `
%d deliveries were acknowledged within %s, and worked on within %s.
Half of the answers came within %s, 99 %% within %s.
`, len(r.answers), r.acknowledged.Round(time.Millisecond), r.worked.Round(time.Millisecond), r.within(50), r.within(99))
}

// within is the time in which so many percent of the answers came.
func (r report) within(percent int) time.Duration {
	return r.answers[(len(r.answers)-1)*percent/100].Round(10 * time.Microsecond)
}

// checkLedger returns an error that names each fault of the application's tables.
func checkLedger(ctx context.Context, pool *pgxpool.Pool, payments int) error {
	history := make([]string, len(steps))
	for i, step := range steps {
		history[i] = string(step)
	}
	var wrong []error
	for _, check := range []struct {
		what, query string
		args        []any
	}{
		{"payments are missing", `select $1 - count(*) from payments`, []any{payments}},
		{"payments have events that are missing, doubled or out of order", `select count(*) from payments where history <> $1`, []any{history}},
		{"payments are not booked once", `
select count(*) from payments where (select count(*) from ledger where payment = id) <> 1`, nil},
		{"bookings have the wrong amount, or belong to no payment", `
select count(*) from ledger where payment <> 'pay_1_a1B2c3D4' || to_char((amount - 10) * 100, 'FM000000')`, nil},
		{"events are not done", `select count(*) from idem_events where state <> 'done'`, nil},
	} {
		var n int
		if err := pool.QueryRow(ctx, check.query, check.args...).Scan(&n); err != nil {
			return fmt.Errorf("reading the ledger: %w", err)
		}
		if n != 0 {
			wrong = append(wrong, fmt.Errorf("%d %s", n, check.what))
		}
	}
	return errors.Join(wrong...)
}
