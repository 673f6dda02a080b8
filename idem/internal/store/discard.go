package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Discard gives events up, those that are in one of states and not being
// processed. It returns their row keys, and the lane of each for [PromoteHeld].
func Discard(ctx context.Context, tx pgx.Tx, keys, states []string, reason *string, archive bool) (discarded, lanes []string, err error) {
	const discard = `
with chosen as (
	select event from idem_events where event = any ($1) and state = any ($2) order by event for update skip locked
), gone as (
	update idem_events e set state = 'discarded', last_error = $3, claimed_at = null, claimed_by = null from chosen where e.event = chosen.event
	returning e.event
), bodies as (
	delete from idem_payloads p using gone where p.event = gone.event returning p.*
), kept as (
	insert into idem_archive (event, occurred_at, received_at, body) select event, occurred_at, received_at, body from bodies where $4
	on conflict do nothing
)
select event, coalesce(lane, '') from bodies`
	rows, _ := tx.Query(ctx, discard, keys, states, reason, archive)
	var event, lane string
	_, err = pgx.ForEachRow(rows, []any{&event, &lane}, func() error {
		discarded, lanes = append(discarded, event), append(lanes, lane)
		return nil
	})
	return discarded, lanes, err
}
