package idem

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/migrate"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// Migrations holds the tables of this package as numbered SQL files in the
// folder migrations, for teams that run goose, tern, atlas or another tool
// instead of [Migrate]. Each file may be run again without harm, so that one
// can change from one way to the other.
//
// Their numbers begin at 1. Give goose a table of versions for them alone, with
// goose -table idem_goose_version or goose.SetTableName: in a table that has the
// first versions of the application's own, goose takes these for applied, makes no tables, and
// reports no error. Deliveries are then answered 503, with an error in the log that says
// that the tables are missing. Other tools that number their files need the same.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// lockPatience is the time in which Migrate tries to lock tables that are in use.
const lockPatience = time.Minute

// Migrate creates or updates the tables of this package, in the first schema
// of the connection's search_path. Call it at every start: a migration that was made
// before is skipped, and any number of processes may call it at once. Where all
// was done it only reads one table, so that the application's role needs no
// right to create any. db is a *pgxpool.Pool or a *pgx.Conn.
//
// Where the first schema has no tables, and a later one of the search_path has, it
// changes nothing and returns an error: a schema that has appeared before the one in
// use (a role's own, say) would get a second set of tables, without the events that are
// done. [MigrateSchema] makes them on purpose.
//
// A change of tables that are in use has to wait for every transaction that uses them, a
// handler's or a pg_dump's, and deliveries wait behind it. So it waits for three seconds at most,
// by a lock_timeout of its own, lets what waits behind it go on, and tries again; slog.Default
// gets a line with the process of Postgres that is in front. After a minute it returns an error
// that names that process. It changes all or nothing, so call it again.
func Migrate(ctx context.Context, db interface {
	Begin(ctx context.Context) (pgx.Tx, error)
},
) error {
	if err := migrate.Apply(ctx, db, "", Migrations, lockPatience); err != nil {
		return fmt.Errorf("idem: migrating the tables: %w", err)
	}
	return nil
}

// MigrateSchema is [Migrate] for the schema of that name, which must exist, for any
// search_path: for a schema per tenant, with connections that have the search_path
// tenant, public, where public has tables of this package as well.
func MigrateSchema(ctx context.Context, db interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}, schema string,
) error {
	if schema == "" {
		return errors.New("idem: migrating the tables: the name of the schema is empty: call Migrate for the first one of the search_path")
	}
	if err := migrate.Apply(ctx, db, schema, Migrations, lockPatience); err != nil {
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
	if files, err = migrate.Missing(ctx, db, "", Migrations); err != nil {
		return nil, fmt.Errorf("idem: looking for migrations: %w", err)
	}
	return files, nil
}

// WatchCommits has a pool notice commits after a wait for the synchronous replica that was
// canceled by somebody else, with pg_cancel_backend. Postgres reports success for them
// all the same, though a promoted replica may lack them. With it they are [Unknown], and
// are not acknowledged:
//
//	config, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
//	…
//	idem.WatchCommits(config)
//	pool, err := pgxpool.NewWithConfig(ctx, config)
//
// It chains the AfterConnect and OnNotice of config.ConnConfig: set your own before. A
// pool needs it only where synchronous_standby_names is set.
//
// See https://www.postgresql.org/docs/current/warm-standby.html#SYNCHRONOUS-REPLICATION.
func WatchCommits(config *pgxpool.Config) { pgtx.WatchCommits(config) }
