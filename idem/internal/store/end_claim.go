package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// End is the end of a claim on an event that is not done.
type End struct {
	State     string        // Pending, Parked or Unhandled
	Attempts  int           // to add
	LastError *string       // nil leaves the one before
	Wait      time.Duration // Pending: until it is due
	Free      bool          // the event leaves its lane: the events behind it go on
	Returned  bool          // the handler did, and so the event has not killed its processes
}

var endClaim = `
with settled as (
	update idem_events set state = $3, attempts = attempts + $4, last_error = coalesce($5, last_error),
		crashes = case when $8 then 0 else crashes end, claimed_at = null, claimed_by = null
	where event = $1 and state = 'pending' and starts = $2 and claimed_by is not null -- a repetition counts nothing
	returning event
), body as (
	update idem_payloads p set
		due_at = case when $3 = 'pending' then now() + $6::interval end,
		lane = case when $7 then null else p.lane end,
		failures = ` + failuresAnd("$5") + `
	from settled where p.event = settled.event
)
select count(*) = 1 from settled`

// EndClaim ends a claim. ended is false if it has ended already, or is another's.
func EndClaim(ctx context.Context, db DB, c Claim, end End) (ended bool, err error) {
	b := &pgx.Batch{}
	b.Queue(endClaim, c.RowKey(), c.Number, end.State, end.Attempts, end.LastError, end.Wait, end.Free, end.Returned).QueryRow(func(row pgx.Row) error {
		return row.Scan(&ended)
	})
	if end.Free {
		b.Queue(promoteHeld, c.Lane())
	}
	err = ReadCommitted(ctx, db, b)
	return ended, err
}
