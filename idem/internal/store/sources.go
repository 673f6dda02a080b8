package store

import (
	"context"
	"time"

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

// Redelivery is the time in which a provider may deliver an event again.
const Redelivery = 31 * 24 * time.Hour

// FindHidden returns a schema of the search_path in which events of a source have been stored lately, and whose
// tables are hidden by those of an earlier schema: what is done there runs again when it is delivered again. It looks
// at 100,000 of them, and returns "" if there is none, or none that the role may read.
func FindHidden(ctx context.Context, db DB, source string) (schema string, err error) {
	const hidden = `
select n.nspname, has_schema_privilege(n.oid, 'usage') and has_table_privilege(c.oid, 'select')
from unnest(current_schemas(false)) with ordinality as path (name, place)
join pg_namespace n on n.nspname = path.name join pg_class c on c.relnamespace = n.oid and c.relname = 'idem_events'
order by place offset 1`
	type set struct {
		Schema   string
		Readable bool
	}
	rows, _ := db.Query(ctx, hidden)
	sets, err := pgx.CollectRows(rows, pgx.RowToStructByPos[set])
	for _, s := range sets {
		if !s.Readable {
			continue
		}
		var has bool
		err = db.QueryRow(ctx, `select exists (select from (select received_at from `+pgx.Identifier{s.Schema, "idem_events"}.Sanitize()+`
			where event >= $1 || '/' and event < $1 || '0' limit 100000) lately where received_at > now() - $2::interval)`, source, Redelivery).Scan(&has)
		if err != nil || has {
			return s.Schema, err
		}
	}
	return "", err
}
