package charges

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/internal/schema"
)

// Migrations holds the tables of this package as numbered SQL files in the folder migrations, for teams
// that run goose, tern, atlas or another tool instead of [Migrate]. Each may be run again without harm. Their
// numbers begin at 1: give the tool a table of versions for them alone, as for those of package idem.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// DB is a *pgxpool.Pool, a *pgx.Conn or a [pgx.Tx].
type DB interface {
	Begin(ctx context.Context) (pgx.Tx, error)
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// Migrate creates or updates the tables of this package, in the first schema of the connection's
// search_path. Call it at every start, after idem.Migrate: what was done before is skipped, and any number of
// processes may call it at once.
//
// In a new shop the table is complete from the day on which it was made. For an account that joins later, or whose
// payments other handlers have booked so far, it is complete from the account's first charge here: see [Filled].
func Migrate(ctx context.Context, db DB) error {
	if err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error { return migrate(ctx, tx) }); err != nil {
		return fmt.Errorf("asaas/charges: migrating the tables: %w", err)
	}
	return nil
}

// MigrateSchema is [Migrate] for the schema of that name, which must exist, for any search_path.
func MigrateSchema(ctx context.Context, db DB, schema string) error {
	err := errors.New("its name is empty: call Migrate for the first one of the search_path")
	if schema != "" {
		err = pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
			// The events may stand in another schema, where the file does not see them.
			if _, err := tx.Exec(ctx, `select set_config('asaas_charges.events', coalesce(to_regclass('idem_events')::oid::text, ''), true)`); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `set local search_path to `+pgx.Identifier{schema}.Sanitize()); err != nil {
				return err
			}
			return migrate(ctx, tx)
		})
	}
	if err != nil {
		return fmt.Errorf("asaas/charges: migrating the tables of schema %q: %w", schema, err)
	}
	return nil
}

func migrate(ctx context.Context, tx pgx.Tx) error {
	files, err := fs.Glob(Migrations, "migrations/*.sql") // in the order of their numbers
	if err != nil {
		return err
	}
	if done, err := applied(ctx, tx); err != nil || done == len(files) {
		return err
	}
	if err := schema.MayCreate(ctx, tx); err != nil {
		return err
	}
	const wait = `select pg_advisory_xact_lock(hashtextextended('asaas/charges.Migrate ' || coalesce(current_schema(), ''), 0))`
	if _, err := tx.Exec(ctx, wait); err != nil {
		return err
	}
	done, err := applied(ctx, tx) // also by another process meanwhile
	if err != nil {
		return err
	}
	for _, file := range files[min(done, len(files)):] {
		statements, err := fs.ReadFile(Migrations, file)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, string(statements)); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// applied returns the number of migrations that the first schema has.
func applied(ctx context.Context, tx pgx.Tx) (n int, err error) {
	const where = `select coalesce((select nspname from pg_class c join pg_namespace n on n.oid = relnamespace
		where c.oid = to_regclass('asaas_charges_migrations')), ''), coalesce(current_schema(), '')`
	var having, first string
	if err := tx.QueryRow(ctx, where).Scan(&having, &first); err != nil || having == "" {
		return 0, err
	}
	if having != first {
		return 0, fmt.Errorf("they are in schema %q, and the first schema of the search_path is %q, which has none: another set would not know "+
			"what is booked; put %[1]q first in the search_path, or, if %[2]q is to have its own, call charges.MigrateSchema for it", having, first)
	}
	err = tx.QueryRow(ctx, `select count(complete) from asaas_charges_migrations`).Scan(&n)
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "42703" {
		err = fmt.Errorf("the tables in schema %q are of a version before v0.1.0, which this one does not continue: drop the view asaas_charge_sums and "+
			"the tables asaas_charges, asaas_charges_since, asaas_charges_runs and asaas_charges_migrations, and fill them anew: %w", first, err)
	}
	return n, err
}

// dayOf returns the day in Brasília; the zero time is the first day that there is.
func dayOf(at time.Time) string {
	if at.IsZero() {
		return "0001-01-01"
	}
	return at.In(asaas.Brasilia()).Format(time.DateOnly)
}

// Erase removes a customer's id, cus_…, from the charges, and returns their number. Their amounts, and your own
// external references, stay: a refund that comes later has to find them. An event that comes later does not bring the id back.
// Write no name and no CPF into external references.
func Erase(ctx context.Context, db DB, customer string) (int64, error) {
	if customer == "" {
		return 0, errors.New("asaas/charges: the customer to erase is empty: give the id, cus_…")
	}
	tag, err := db.Exec(ctx, `update asaas_charges set customer = '', erased = true where customer = $1`, customer)
	if err != nil {
		return 0, fmt.Errorf("asaas/charges: erasing a customer: %w", err)
	}
	return tag.RowsAffected(), nil
}
