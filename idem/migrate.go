package idem

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Migrations holds the tables of this package as numbered SQL files in the
// folder migrations, for teams that run goose, tern, atlas or another tool
// instead of [Migrate]. Each file may be run again without harm, so that one
// can change from one way to the other.
//
// Their numbers begin at 1. Give goose a table of versions for them alone, with
// goose -table idem_goose_version or goose.SetTableName: in a table that has versions
// 1 and 2 of the application's own, goose takes these for applied, makes no tables, and
// reports no error. Deliveries are then answered 503, with an error in the log that says
// that the tables are missing. Other tools that number their files need the same.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Migrate creates or updates the tables of this package, in the first schema
// of the connection's search_path. Call it at every start: what was done
// before is skipped, and any number of processes may call it at once. Where all
// was done it only reads one table, so that the application's role needs no
// right to create any. db is a *pgxpool.Pool or a *pgx.Conn.
//
// Where the first schema has no tables, and a later one of the search_path has, it
// changes nothing and returns an error: a schema that has appeared before the one in
// use (a role's own, say) would get a second set of tables, without the events that are
// done. [MigrateSchema] makes them on purpose.
//
// A change of tables that are in use waits for the handlers that are running, and
// deliveries wait behind it. Where handlers take longer than a delivery may, give db a
// lock_timeout, and call Migrate again after an error: it changes all or nothing.
func Migrate(ctx context.Context, db interface {
	Begin(ctx context.Context) (pgx.Tx, error)
},
) error {
	if err := migrate(ctx, db, "", Migrations); err != nil {
		return fmt.Errorf("idem: migrating the tables: %w", err)
	}
	return nil
}

// MigrateSchema is [Migrate] for the schema of that name, which must exist, whatever
// the search_path is: for a schema per tenant, whose connections have the search_path
// tenant, public, where public has tables of this package as well.
func MigrateSchema(ctx context.Context, db interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}, schema string,
) error {
	if schema == "" {
		return errors.New("idem: migrating the tables: the name of the schema is empty: call Migrate for the first one of the search_path")
	}
	if err := migrate(ctx, db, schema, Migrations); err != nil {
		return fmt.Errorf("idem: migrating the tables of schema %q: %w", schema, err)
	}
	return nil
}

// MissingMigrations returns the files of [Migrations] that [Migrate] would apply
// now, without applying any. Those that another tool has applied are among them,
// unless that recorded them in idem_migrations. Where Migrate would refuse, it
// returns the same error.
func MissingMigrations(ctx context.Context, db interface {
	Begin(ctx context.Context) (pgx.Tx, error)
},
) (files []string, err error) {
	_, missing, err := findMissing(ctx, db, "", Migrations)
	if err != nil {
		return nil, fmt.Errorf("idem: looking for migrations: %w", err)
	}
	for _, m := range missing {
		files = append(files, m.file)
	}
	return files, nil
}

type beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

func migrate(ctx context.Context, db beginner, schema string, files fs.FS) error {
	all, missing, err := findMissing(ctx, db, schema, files)
	if err != nil || len(missing) == 0 {
		return err
	}
	return inSchema(ctx, db, schema, func(tx pgx.Tx) error {
		if err := lockMigrations(ctx, tx); err != nil {
			return err
		}
		if missing, err = missingOf(ctx, tx, all); err != nil { // of those another process made meanwhile
			return err
		}
		for _, m := range missing {
			if err := m.apply(ctx, tx, files); err != nil {
				return fmt.Errorf("%s: %w", m.file, err)
			}
		}
		return nil
	})
}

// findMissing returns all migrations, and those that are not recorded.
func findMissing(ctx context.Context, db beginner, schema string, files fs.FS) (all, missing []migration, err error) {
	if all, err = migrationsOf(files); err != nil {
		return nil, nil, err
	}
	err = inSchema(ctx, db, schema, func(tx pgx.Tx) (err error) {
		missing, err = missingOf(ctx, tx, all)
		return err
	})
	return all, missing, err
}

// inSchema calls f with a transaction whose search_path is the schema; "" leaves it as
// it is.
func inSchema(ctx context.Context, db beginner, schema string, f func(pgx.Tx) error) error {
	if schema == "" {
		return pgx.BeginFunc(ctx, db, f)
	}
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		// Neither statement takes a snapshot, after which the isolation level is fixed.
		var path string
		if err := tx.QueryRow(ctx, `show search_path`).Scan(&path); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `set local search_path to `+pgx.Identifier{schema}.Sanitize()); err != nil {
			return err
		}
		if err := f(tx); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `select set_config('search_path', $1, true)`, path) // db may be a transaction, which goes on
		return err
	})
}

// migration is a file and its number.
type migration struct {
	file    string
	version int
}

func migrationsOf(files fs.FS) (all []migration, err error) {
	names, err := fs.Glob(files, "migrations/*.sql") // sorted by number
	if err != nil {
		return nil, err
	}
	for _, file := range names {
		number, _, _ := strings.Cut(strings.TrimPrefix(file, "migrations/"), "_")
		version, err := strconv.Atoi(number)
		if err != nil {
			return nil, err
		}
		all = append(all, migration{file, version})
	}
	return all, nil
}

// missingOf returns the migrations that are not recorded in the first schema, all
// where it has no tables. It is an error if those are in a later one of the search_path.
func missingOf(ctx context.Context, tx pgx.Tx, all []migration) (missing []migration, err error) {
	first, having, err := store.Schemas(ctx, tx)
	if err != nil {
		return nil, err
	}
	if len(having) == 0 {
		return all, nil
	}
	if having[0] != first {
		return nil, fmt.Errorf("the tables are in schema %q, and the first schema of the search_path is %q, which has none: "+
			"with tables of its own, events that were done would be done again, and those that wait would never be; "+
			"put %[1]q first in the search_path, or, if %[2]q is to have its own, call idem.MigrateSchema (idem migrate -schema) for it once", having[0], first)
	}
	var there bool
	const table = `select to_regclass(quote_ident(current_schema()) || '.idem_migrations') is not null`
	if err := tx.QueryRow(ctx, table).Scan(&there); err != nil {
		return nil, err
	}
	if !there {
		return all, nil
	}
	rows, err := tx.Query(ctx, `select version from idem_migrations`)
	if err != nil {
		return nil, err
	}
	done := make(map[int]bool)
	var version int
	if _, err := pgx.ForEachRow(rows, []any{&version}, func() error { done[version] = true; return nil }); err != nil {
		return nil, err
	}
	for _, m := range all {
		if !done[m.version] {
			missing = append(missing, m)
		}
	}
	return missing, nil
}

// lockMigrations makes other processes that migrate the same schema wait:
// concurrent "create … if not exists" statements can fail in Postgres.
func lockMigrations(ctx context.Context, tx pgx.Tx) error {
	// Whatever the default: at another level, what was committed while this waited would not be seen.
	if _, err := tx.Exec(ctx, `set transaction isolation level read committed`); err != nil {
		return err
	}
	const lock = `select pg_advisory_xact_lock(hashtextextended('idem.Migrate ' || coalesce(current_schema(), ''), 0))`
	if _, err := tx.Exec(ctx, lock); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `create table if not exists idem_migrations (
		version    integer     primary key,
		applied_at timestamptz not null default now())`)
	if pgtx.SQLState(err) == "42501" {
		return errors.Join(err, errors.New("the role may not create tables: run Migrate once with one that may, "+
			"or the files of idem.Migrations, and grant this role select, insert, update and delete on the tables"))
	}
	return err
}

func (m migration) apply(ctx context.Context, tx pgx.Tx, files fs.FS) error {
	statements, err := fs.ReadFile(files, m.file)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, string(statements)); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `insert into idem_migrations (version) values ($1) on conflict do nothing`, m.version)
	return err
}
