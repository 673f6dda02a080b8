package doctor

import "context"

// order finds indexes of text that were made with another version of the system's library, as after a new base image or
// a physical copy. If the library's order has changed, queries miss rows, and a unique key accepts a row twice. order
// looks at the indexes of all tables of the database, because the application books by its own. The indexes of package
// idem are in the order of bytes, which never changes.
func (e *examination) order(ctx context.Context) ([]Finding, error) {
	version, err := one[int](ctx, e, `select current_setting('server_version_num')::int`)
	if err != nil {
		return nil, err
	}
	ofDatabase := databaseVersion
	if version < 150000 {
		ofDatabase = libraryVersion
	}
	return asked(`with versions (collation_id, name, recorded, actual, refresh) as (`+ofDatabase+collationVersions+`)`+changedOrder)(e, ctx)
}

// databaseVersion is that of the database's own order; other collations have an entry each.
const databaseVersion = `
	select '"default"'::regcollation::oid, 'the database', datcollversion, pg_database_collation_actual_version(oid),
		format('alter database %I refresh collation version', datname)
	from pg_database where datname = current_database()`

// libraryVersion is the version by the collation of the same name: Postgres 14 and older record none of the database.
const libraryVersion = `
	select '"default"'::regcollation::oid, 'the database', min(collversion), min(pg_collation_actual_version(c.oid)),
		string_agg(format('alter collation %s refresh version', c.oid::regcollation), '; ')
	from pg_database d join pg_collation c on collprovider = 'c' and collencoding in (-1, d.encoding)
		and replace(lower(collcollate), '-', '') = replace(lower(datcollate), '-', '')
	where datname = current_database()`

const collationVersions = `
	union all
	select oid, oid::regcollation::text, collversion, pg_collation_actual_version(oid), format('alter collation %s refresh version', oid::regcollation)
	from pg_collation where collversion is not null`

// The operator classes for patterns compare bytes, in any collation.
const changedOrder = `
, indexes as (
	select distinct v.*, c.oid::regclass::text as index, i.indisunique as is_unique
	from versions v join pg_index i on v.collation_id = any (i.indcollation::oid[])
	join pg_class c on c.oid = i.indexrelid and c.relkind = 'i' join pg_am m on m.oid = c.relam and m.amname in ('btree', 'brin')
	cross join lateral unnest(i.indcollation::oid[], i.indclass::oid[]) as k (collation_id, class) join pg_opclass o on o.oid = k.class
	where v.recorded <> v.actual and k.collation_id = v.collation_id and o.opcname not like '%pattern_ops'
)
select case when bool_or(is_unique) then 'error' else 'warning' end,
	'the order of text has changed under indexes: rows that are there are not found, and a unique key takes one twice',
	format('%s, in the order of %s: version %s, and version %s is installed', string_agg(index, ', ' order by not is_unique, index), name, recorded, actual),
	'stop the programs that write; if it says that a key is there twice, see to those rows first: an order may be booked twice',
	string_agg('reindex index ' || index, '; ' order by not is_unique, index) || '; ' || refresh
from indexes group by name, recorded, actual, refresh order by 1, 3`
