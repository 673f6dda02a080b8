package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Sources lists the sources with stored events. It goes from source to source in the primary key, and reads a
// row of each.
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

// Schemas returns the first existing schema of the connection's search_path, or "", and the schemas of the
// path that have a table idem_events, in the order of the path.
func Schemas(ctx context.Context, db DB) (first string, having []string, err error) {
	const schemas = `
select coalesce(current_schema(), ''), array(
	select n.nspname::text
	from unnest(current_schemas(false)) with ordinality as path (name, place)
	join pg_namespace n on n.nspname = path.name
	join pg_class c on c.relnamespace = n.oid and c.relname = 'idem_events'
	order by place)`
	err = db.QueryRow(ctx, schemas).Scan(&first, &having)
	return first, having, err
}
