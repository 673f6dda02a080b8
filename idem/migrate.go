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

// Migrations holds the tables of this package as numbered SQL files in the folder migrations, for teams that
// run goose, tern, atlas or another tool instead of [Migrate]. Each file may be run again without harm, so
// that a team can change from one tool to another.
//
// The numbers of the files begin at 1. Give goose a separate table of versions, with goose -table
// idem_goose_version or goose.SetTableName: in the application's own table of versions goose would take these
// files for applied, make no tables, and report no error. Deliveries are then answered 503, with an error in
// the log that says that the tables are missing. Other tools that number their files need a separate table as
// well.
//
//go:embed migrations/*.sql
var Migrations embed.FS

// lockPatience is the time in which Migrate tries to lock tables that are in use.
const lockPatience = time.Minute

// Migrate creates or updates the tables of this package, in the first schema of the connection's search_path.
// Call Migrate at every start: an applied migration is skipped, and any number of processes may call Migrate
// at once. If all migrations are applied, Migrate only reads one table, so that the application's role needs
// no right to create tables. If it needs that right and has it not, the error has the statements of an
// administrator. db is a *pgxpool.Pool or a *pgx.Conn.
//
// If the first schema has no tables of this package, and a later schema of the search_path has, Migrate
// changes nothing and returns an error: a schema that has appeared before the one in use (a role's own, say)
// would get a second set of tables, without the done events. [MigrateSchema] makes a second set on purpose.
//
// A change of tables that are in use has to wait for every transaction that uses them, a handler's or a
// pg_dump's, and deliveries wait behind it. So Migrate waits for three seconds at most, by a lock_timeout of
// its own, lets the deliveries behind it go on, and tries again; slog.Default gets a line with the process of
// Postgres in front. After a minute Migrate returns an error that names that process. Migrate changes all or
// nothing: call it again.
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

// WatchCommits has a pool notice commits whose wait for the synchronous replica was canceled, with
// pg_cancel_backend for example. Postgres reports success for such a commit, though a promoted replica may
// lack it. With WatchCommits the event is not done then, and the delivery is not acknowledged, unless its row says so
// after another wait:
//
//	config, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
//	…
//	idem.WatchCommits(config)
//	pool, err := pgxpool.NewWithConfig(ctx, config)
//
// WatchCommits chains the AfterConnect and OnNotice of config.ConnConfig: set your own before. A pool needs
// WatchCommits only where synchronous_standby_names is set.
//
// See https://www.postgresql.org/docs/current/warm-standby.html#SYNCHRONOUS-REPLICATION.
func WatchCommits(config *pgxpool.Config) { pgtx.WatchCommits(config) }
