// Package migrate applies numbered SQL files to a schema, each once, all of them in one transaction. It
// records applied files in idem_migrations. It refuses to make a second set of the tables of package idem
// along a search_path. While a migration waits for the lock of a table, all other transactions wait behind
// it: so it waits for moments only, again and again.
package migrate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/internal/schema"
)

// Beginner is a connection, a pool or a transaction.
type Beginner interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

// Apply applies the files that are not recorded, all or none, in the schema of that name; "" is the first of
// the search_path. Apply tries for patience to get the locks of tables in use.
func Apply(ctx context.Context, db Beginner, schema string, files fs.FS, patience time.Duration) error {
	all, missing, err := findMissing(ctx, db, schema, files)
	if err != nil || len(missing) == 0 {
		return err
	}
	end := time.Now().Add(patience)
	return inSchema(ctx, db, schema, func(tx pgx.Tx) error {
		if err := lockMigrations(ctx, tx); err != nil {
			return err
		}
		if missing, err = missingOf(ctx, tx, all); err != nil { // another process may have applied some by now
			return err
		}
		return untilLocked(ctx, tx, end, func(tx pgx.Tx) error {
			for _, m := range missing {
				if err := m.apply(ctx, tx, files); err != nil {
					return fmt.Errorf("%s: %w", m.file, err)
				}
			}
			return nil
		})
	})
}

// Missing returns the names of the files that Apply would apply now.
func Missing(ctx context.Context, db Beginner, schema string, files fs.FS) (names []string, err error) {
	_, missing, err := findMissing(ctx, db, schema, files)
	for _, m := range missing {
		names = append(names, m.file)
	}
	return names, err
}

// findMissing returns all migrations, and those that are not recorded.
func findMissing(ctx context.Context, db Beginner, schema string, files fs.FS) (all, missing []migration, err error) {
	if all, err = migrationsOf(files); err != nil {
		return nil, nil, err
	}
	err = inSchema(ctx, db, schema, func(tx pgx.Tx) (err error) {
		missing, err = missingOf(ctx, tx, all)
		return err
	})
	return all, missing, err
}

// inSchema calls f with a transaction that has the schema as its search_path; "" leaves the search_path as it
// is.
func inSchema(ctx context.Context, db Beginner, schema string, f func(pgx.Tx) error) error {
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

// missingOf returns the migrations that are not recorded in the first schema: all of them if the schema has
// no tables. It returns an error if a later schema of the search_path has the tables.
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
			"put %[1]q first in the search_path; idem doctor says where it is set", having[0], first)
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
	if done[1] {
		if err := checkFirst(ctx, tx, first); err != nil {
			return nil, err
		}
	}
	for _, m := range all {
		if !done[m.version] {
			missing = append(missing, m)
		}
	}
	return missing, nil
}

// checkFirst returns an error for tables of a version that was not released: its files have the numbers of
// others today.
func checkFirst(ctx context.Context, tx pgx.Tx, schema string) error {
	const old = `select exists (select from pg_attribute where attrelid = to_regclass(quote_ident($1) || '.idem_audit')
		and attname = 'id' and attidentity <> '')`
	var is bool
	if err := tx.QueryRow(ctx, old, schema).Scan(&is); err != nil || !is {
		return err
	}
	return fmt.Errorf("the tables in schema %q are of a version before v0.1.0, which this one does not continue: migrate a new schema, "+
		"or drop the view idem_event_log and all tables whose names begin with idem_, where their events may be done again", schema)
}

// lockMigrations makes other processes that migrate the same schema wait:
// concurrent "create … if not exists" statements can fail in Postgres.
func lockMigrations(ctx context.Context, tx pgx.Tx) error {
	// At a stricter level, rows that were committed during the wait would not be seen.
	if _, err := tx.Exec(ctx, `set transaction isolation level read committed`); err != nil {
		return err
	}
	if err := schema.MayCreate(ctx, tx); err != nil { // its snapshot ends before the lock: read committed
		return err
	}
	const lock = `select pg_advisory_xact_lock(hashtextextended('idem.Migrate ' || coalesce(current_schema(), ''), 0))`
	err := withLockTimeout(ctx, tx, migrationTime, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, lock)
		return err
	})
	if pgtx.SQLState(err) == lockNotAvailable {
		return fmt.Errorf("another process has been migrating for %s: see what it waits for in pg_stat_activity, or end it, and migrate again: %w", migrationTime, err)
	}
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `create table if not exists idem_migrations (
		version    integer     primary key,
		applied_at timestamptz not null default now())`)
	return err
}

func (m migration) apply(ctx context.Context, tx pgx.Tx, files fs.FS) error {
	statements, err := fs.ReadFile(files, m.file)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, string(statements))
	if pgtx.SQLState(err) == insufficientPrivilege {
		return fmt.Errorf("migrate with the role that owns the tables, or a member of it: %w", err)
	}
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `insert into idem_migrations (version) values ($1) on conflict do nothing`, m.version)
	return err
}

const (
	// firstWait is the time of the first wait for a lock. Each later wait is twice as long, so that running
	// handlers can end, up to longestWait: a delivery that waits behind the migration is given up after five
	// seconds.
	firstWait   = 500 * time.Millisecond
	longestWait = 3 * time.Second

	// migrationTime is longer than any migration of another process takes.
	migrationTime = 10 * time.Minute

	lockNotAvailable      = "55P03"
	deadlockDetected      = "40P01"
	insufficientPrivilege = "42501"
)

// untilLocked calls f until f gets its locks. After each failed wait untilLocked undoes what f did, and
// pauses for as long as the wait: transactions that waited behind it go on.
func untilLocked(ctx context.Context, tx pgx.Tx, end time.Time, f func(pgx.Tx) error) error {
	var front store.LockHolder
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		err := withLockTimeout(ctx, tx, wait, f)
		switch state := pgtx.SQLState(err); {
		case ctx.Err() != nil && front.PID != 0:
			return inFront(front, err)
		case state != lockNotAvailable && state != deadlockDetected:
			return err
		}
		found, finding := store.FindLockHolder(ctx, tx)
		switch {
		case finding != nil:
			return errors.Join(err, finding)
		case found.PID != front.PID:
			logWait(ctx, found)
		}
		if front = found; !time.Now().Before(end) {
			return inFront(front, err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return inFront(front, errors.Join(ctx.Err(), err))
		}
	}
}

// withLockTimeout calls f in a transaction within tx, in which each wait for a lock has an end.
func withLockTimeout(ctx context.Context, tx pgx.Tx, d time.Duration, f func(pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
		var before string
		if err := tx.QueryRow(ctx, `show lock_timeout`).Scan(&before); err != nil {
			return err
		}
		if err := setLockTimeout(ctx, tx, strconv.FormatInt(d.Milliseconds(), 10)); err != nil {
			return err
		}
		if err := f(tx); err != nil {
			return err
		}
		return setLockTimeout(ctx, tx, before) // the transaction around this one goes on
	})
}

func setLockTimeout(ctx context.Context, tx pgx.Tx, value string) error {
	_, err := tx.Exec(ctx, `set local lock_timeout = '`+value+`'`) // it takes no snapshot
	return err
}

// inFront returns the error of a migration that did not get its locks.
func inFront(front store.LockHolder, err error) error {
	if front.PID == 0 {
		return fmt.Errorf("tables are in use, by transactions that had ended when they were looked for; nothing was changed: "+
			"migrate again, at a time when fewer events are processed: %w", err)
	}
	return fmt.Errorf("%s uses %s, and its transaction does not end; nothing was changed, and events go on being processed: "+
		"migrate again when it has ended, or end it with select pg_terminate_backend(%d): %w", front, front.Table, front.PID, err)
}

// logWait logs the session in front, to slog.Default: Migrate has no Logger.
func logWait(ctx context.Context, front store.LockHolder) {
	if front.PID == 0 {
		return
	}
	_ = pgtx.Protect(func() error {
		slog.WarnContext(ctx, "a migration of the webhook tables waits for a transaction; events go on being processed, and it tries again: end that transaction if it does not end by itself",
			slog.Int("pid", int(front.PID)), slog.String("table", front.Table), slog.String("role", front.Role),
			slog.String("application", front.Application), slog.Duration("open_for", front.OpenFor))
		return nil
	})
}
