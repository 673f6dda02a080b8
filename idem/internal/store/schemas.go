package store

import "context"

// Schemas returns the first schema of the connection's search_path, "" if none of it
// exists, and those along the path that have a table idem_events, in its order.
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
