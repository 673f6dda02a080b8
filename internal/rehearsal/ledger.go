package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// compare counts the fates of the events that were sent. An event that was acknowledged
// and has no effect is delivered again, as by a merchant that compares the provider's list with
// their own does, and counted then.
func (r *rehearsal) compare(ctx context.Context, p *provider, f *fleet) error {
	pool, err := pgxpool.New(ctx, r.pair.url)
	if err != nil {
		return err
	}
	defer pool.Close()
	missing, err := withoutEffect(ctx, pool, p.list())
	if err != nil {
		return err
	}
	r.result.missing = len(missing)
	if r.standby == "async" {
		for _, e := range missing {
			p.insist(ctx, e)
		}
		if err := r.drained(ctx); err != nil {
			return err
		}
		if missing, err = withoutEffect(ctx, pool, p.list()); err != nil {
			return err
		}
	}
	r.result.sent, r.result.lost = len(p.list()), len(missing)
	if want := r.payments * len(steps); r.result.sent != want {
		return fmt.Errorf("%d of %d events were acknowledged: %w", r.result.sent, want, context.Cause(ctx))
	}
	// Out of order is an effect after that of a later step.
	const count = `
select count(*), count(*) - count(distinct event), count(*) filter (where step < before) from (
	select event, step, max(step) over (partition by payment order by place rows between unbounded preceding and 1 preceding) as before
	from effects where starts_with(payment, 'pay_' || $1)) e`
	return pool.QueryRow(ctx, count, p.run).Scan(&r.result.effects, &r.result.doubled, &r.result.outOfOrder)
}

// withoutEffect are the events that have none.
func withoutEffect(ctx context.Context, pool *pgxpool.Pool, all []event) (missing []event, err error) {
	byID := make(map[string]event, len(all))
	var ids []string
	for _, e := range all {
		byID[e.id] = e
		ids = append(ids, e.id)
	}
	rows, err := pool.Query(ctx, `select id from unnest($1::text[]) id where not exists (select from effects where event = id)`, ids)
	if err != nil {
		return nil, err
	}
	without, err := pgx.CollectRows(rows, pgx.RowTo[string])
	for _, id := range without {
		missing = append(missing, byID[id])
	}
	return missing, err
}
