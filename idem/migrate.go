package idem

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
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
// before is skipped, and any number of processes may call it at once. db is a
// *pgxpool.Pool or a *pgx.Conn.
func Migrate(ctx context.Context, db interface {
	Begin(ctx context.Context) (pgx.Tx, error)
},
) error {
	err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		if err := lockMigrations(ctx, tx); err != nil {
			return err
		}
		files, err := fs.Glob(Migrations, "migrations/*.sql") // sorted by number
		if err != nil {
			return err
		}
		for _, file := range files {
			if err := migrateFile(ctx, tx, file); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("idem: migrating the tables: %w", err)
	}
	return nil
}

// lockMigrations makes other processes that migrate the same schema wait:
// concurrent "create … if not exists" statements can fail in Postgres.
func lockMigrations(ctx context.Context, tx pgx.Tx) error {
	const lock = `select pg_advisory_xact_lock(hashtextextended('idem.Migrate ' || coalesce(current_schema(), ''), 0))`
	if _, err := tx.Exec(ctx, lock); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `create table if not exists idem_migrations (
		version    integer     primary key,
		applied_at timestamptz not null default now())`)
	return err
}

func migrateFile(ctx context.Context, tx pgx.Tx, file string) error {
	number, _, _ := strings.Cut(strings.TrimPrefix(file, "migrations/"), "_")
	version, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	claim, err := tx.Exec(ctx, `insert into idem_migrations (version) values ($1) on conflict do nothing`, version)
	if err != nil || claim.RowsAffected() == 0 {
		return err
	}
	statements, err := Migrations.ReadFile(file)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, string(statements))
	return err
}
