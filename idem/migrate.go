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
)

// Migrations holds the tables of this package as numbered SQL files in the
// folder migrations, for teams that run goose, tern, atlas or another tool
// instead of [Migrate]. Each file may be run again without harm, so that one
// can change from one way to the other.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// Migrate creates or updates the tables of this package, in the first schema
// of the connection's search_path. Call it at every start: what was done
// before is skipped, and any number of processes may call it at once. Where all
// was done it only reads one table, so that the application's role needs no
// right to create any. db is a *pgxpool.Pool or a *pgx.Conn.
//
// A change of tables that are in use waits for the handlers that are running, and
// deliveries wait behind it. Where handlers take longer than a delivery may, give db a
// lock_timeout, and call Migrate again after an error: it changes all or nothing.
func Migrate(ctx context.Context, db interface {
	Begin(ctx context.Context) (pgx.Tx, error)
},
) error {
	if err := migrate(ctx, db, Migrations); err != nil {
		return fmt.Errorf("idem: migrating the tables: %w", err)
	}
	return nil
}

// MissingMigrations returns the files of [Migrations] that [Migrate] would apply
// now, without applying any. Those that another tool has applied are among them,
// unless that recorded them in idem_migrations.
func MissingMigrations(ctx context.Context, db interface {
	Begin(ctx context.Context) (pgx.Tx, error)
},
) (files []string, err error) {
	_, missing, err := findMissing(ctx, db, Migrations)
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

func migrate(ctx context.Context, db beginner, files fs.FS) error {
	all, missing, err := findMissing(ctx, db, files)
	if err != nil || len(missing) == 0 {
		return err
	}
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
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
func findMissing(ctx context.Context, db beginner, files fs.FS) (all, missing []migration, err error) {
	if all, err = migrationsOf(files); err != nil {
		return nil, nil, err
	}
	err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) (err error) {
		missing, err = missingOf(ctx, tx, all)
		return err
	})
	return all, missing, err
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

// missingOf returns the migrations that are not recorded. Where nothing is, a
// table of another schema may still be found: only the first schema counts.
func missingOf(ctx context.Context, tx pgx.Tx, all []migration) (missing []migration, err error) {
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
	_, err = tx.Exec(ctx, `insert into idem_migrations (version) values ($1)`, m.version)
	return err
}
