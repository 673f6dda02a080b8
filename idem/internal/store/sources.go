package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Sources lists the sources of which events are stored. It goes from one to the
// next in the primary key, and reads a row of each.
func Sources(ctx context.Context, db DB) ([]string, error) {
	const list = `
with recursive sources as (
	select split_part(min(event), '/', 1) as source from idem_events
	union all
	-- '0' follows '/': after all events of the source
	select split_part((select min(event) from idem_events e where e.event >= sources.source || '0' collate "C"), '/', 1)
	from sources where sources.source is not null
)
select source from sources where source is not null order by source collate "C"`
	rows, _ := db.Query(ctx, list)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
