package store

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Whereabouts is an event with the cause for which it is not done.
type Whereabouts struct {
	Row
	Failures []Failure // the last ones, the oldest first
	Held     bool      // parked only because it waits
	First    string    // the row key of the first event of its lane; "" when it is in none
	Behind   int64     // events of its lane that come after it
	Claim    Claimed
	Now      time.Time
}

// FindWhereabouts reads an event and its place in its lane. Use it in a transaction that sees
// one state of the tables. The error is pgx.ErrNoRows if there is no such event.
func FindWhereabouts(ctx context.Context, tx DB, key string) (w Whereabouts, err error) {
	const place = `
select own.failures, own.held, coalesce((select p.event from idem_payloads p where p.lane = own.lane order by ` + order + ` limit 1), ''),
	(select count(*) from idem_payloads p where p.lane = own.lane
		and (` + order + `) > (coalesce(own.occurred_at, own.received_at), own.received_at, own.event)),
	now()
from idem_payloads own where own.event = $1`
	if w.Row, err = Get(ctx, tx, key); err != nil {
		return w, err
	}
	if w.Claim, err = FindClaim(ctx, tx, key); err != nil {
		return w, err
	}
	err = tx.QueryRow(ctx, place, key).Scan(&w.Failures, &w.Held, &w.First, &w.Behind, &w.Now)
	if errors.Is(err, pgx.ErrNoRows) { // it is done
		err = tx.QueryRow(ctx, `select now()`).Scan(&w.Now)
	}
	return w, err
}
