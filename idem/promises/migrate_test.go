package promises_test

import (
	"context"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/migrate"
	"github.com/paghooks/paghooks/idem/oncall/doctor"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestTenProcessesMayMigrateAtOnceAndAgain(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	pools := make([]*pgxpool.Pool, 10)
	for n := range pools {
		pools[n] = openPool(t, url, func(c *pgxpool.Config) { c.MaxConns = 1 })
		if err := pools[n].Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var definition []string
	for range 2 {
		start := make(chan struct{})
		var starts sync.WaitGroup
		for _, pool := range pools {
			starts.Go(func() {
				<-start
				if err := idem.Migrate(t.Context(), pool); err != nil {
					t.Error(err)
				}
			})
		}
		close(start)
		starts.Wait()
		s := overPool(t, pools[0])
		if definition == nil {
			definition = s.definition()
		}
		if diff := cmp.Diff(definition, s.definition()); diff != "" {
			t.Error("tables after the second time (-want +got):\n" + diff)
		}
		s.wantVersions(1)
	}
	s := openApp(t, pools[0])
	s.On(pay)
	s.WantAnswer(paid("e1"), http.StatusOK)
}

// A process that waited for another one sees what that has migrated.
func TestProcessThatWaitsForAMigrationIsDoneWithItAtEveryDefaultIsolation(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			s := overPool(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
				c.ConnConfig.RuntimeParams["default_transaction_isolation"] = level
			}))
			first, err := s.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
			if err != nil {
				t.Fatal(err)
			}
			defer first.Rollback(context.Background())
			if err := idem.Migrate(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			second := make(chan error, 1)
			go func() { second <- idem.Migrate(context.Background(), s.Pool) }()
			s.Until(blocked)
			if err := first.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-second; err != nil {
				t.Error(err)
			}
		})
	}
}

// goose, tern and atlas run the files as they are; Migrate may follow, and so
// may the files again.
func TestMigrationsArePlainSQLThatMayRunAgain(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	files, err := fs.Glob(idem.Migrations, "migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for range 2 {
		for _, file := range files {
			statements, err := idem.Migrations.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(statements), "-- +goose Up\n") {
				t.Errorf("%s does not begin as goose wants it", file)
			}
			if _, err := pool.Exec(t.Context(), string(statements)); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
	s := openApp(t, pool)
	s.On(pay)
	s.WantAnswer(paid("e1"), http.StatusOK)
}

func TestMigrateWithoutSchemaHasTheStatementThatMakesOne(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), `set search_path = nowhere`); err != nil {
		t.Fatal(err)
	}
	err = idem.Migrate(t.Context(), conn)
	for _, want := range []string{"idem: migrating the tables: the search_path, nowhere, has no schema", "create schema webhooks authorization "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Migrate = %v, want %q", err, want)
		}
	}
	if _, err := conn.Exec(t.Context(), `reset search_path`); err != nil {
		t.Fatal(err)
	}
}

func TestMissingMigrationsAreNamedUntilTheyAreApplied(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	all, err := fs.Glob(idem.Migrations, "migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	missing, err := doctor.MissingMigrations(t.Context(), pool)
	if diff := cmp.Diff(all, missing); diff != "" || err != nil {
		t.Errorf("of an empty schema: %v (-want +got):\n%s", err, diff)
	}
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if missing, err := doctor.MissingMigrations(t.Context(), pool); len(missing) != 0 || err != nil {
		t.Errorf("after Migrate: %v, %v", missing, err)
	}
}

func TestLaterVersionUpgradesWithEventsInEveryState(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.EveryState()
	want := queryOne[[]string](s, knownRows)
	files := later(`-- +goose Up
		alter table idem_events add column region text not null default 'br';
		update idem_events set region = 'ca' where key = 'o1';
		create index later on idem_events (region)`)
	var starts sync.WaitGroup
	for range 4 { // processes of the later version
		starts.Go(func() {
			if err := migrateFiles(t.Context(), s.Pool, files, time.Minute); err != nil {
				t.Error(err)
			}
		})
	}
	starts.Wait()
	if diff := cmp.Diff(want, queryOne[[]string](s, knownRows)); diff != "" {
		t.Error("rows (-want +got):\n" + diff)
	}
	s.wantVersions(1, 2)

	// Processes of this version go on until they are replaced, and may start again.
	if err := idem.Migrate(t.Context(), s.Pool); err != nil {
		t.Error(err)
	}
	s.Deploy(func(n *notes) {
		idem.Handle(&n.Routes, "paid", pay)
		idem.Handle(&n.Routes, "new", pay)
	})
	s.openInbox()
	for _, id := range []string{"done", "kept", "discarded"} {
		if outcome, err := s.Inbox.Accept(t.Context(), letter(id, "o1", 0)); outcome != idem.Duplicate || err != nil {
			t.Errorf("Accept of %s = %s, %v, want duplicate", id, outcome, err)
		}
	}
	s.wantRequeued(idem.Filter{IDs: []string{"unhandled", "bad-head"}}, 2)
	s.WantReplayed(idem.Filter{}, idem.Replayed{Done: 1}) // bad-parked
	s.Drain(6)
	if n := queryOne[int](s, `select count(*) from idem_events where state not in ('done', 'discarded')`); n != 0 {
		t.Errorf("%d events are not done", n)
	}
	s.WantEffects(2 + 7)
}

func TestMigrationThatFailsChangesNothingAndNamesItsFile(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.EveryState()
	want, definition := s.Contents(), s.definition()
	err := migrateFiles(t.Context(), s.Pool, later(`drop table idem_archive; alter table idem_events drop column nothing`), time.Minute)
	if err == nil || !strings.HasPrefix(err.Error(), "migrations/00002_later.sql: ") {
		t.Errorf("Migrate = %v, want an error of the second file", err)
	}
	s.WantContents(want)
	s.wantVersions(1)
	if diff := cmp.Diff(definition, s.definition()); diff != "" {
		t.Error("tables (-want +got):\n" + diff)
	}
}

func TestMigratingAgainByHandChangesNothing(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.EveryState()
	definition, contents := s.definition(), s.Contents()
	for range 2 {
		s.runMigrations()
	}
	if diff := cmp.Diff(definition, s.definition()); diff != "" {
		t.Error("tables (-want +got):\n" + diff)
	}
	s.WantContents(contents)

	byHand := overPool(t, idemtest.Pool(t)) // without Migrate at all
	byHand.runMigrations()
	if diff := cmp.Diff(definition, byHand.definition()); diff != "" {
		t.Error("tables made by hand (-want +got):\n" + diff)
	}
}

// A vacuum that waits for a fifth of ten million rows comes once a month.
func TestTablesAreVacuumedInTime(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	for table, want := range map[string][]string{
		"idem_events": {
			"autovacuum_analyze_scale_factor=0.02", "autovacuum_vacuum_insert_scale_factor=0.02",
			"autovacuum_vacuum_scale_factor=0.02", "fillfactor=90",
		},
		"idem_payloads": {"autovacuum_vacuum_scale_factor=0.02", "fillfactor=50"},
	} {
		got := queryOne[[]string](s, `select reloptions from pg_class where oid = $1::text::regclass`, table)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s has the settings %q, want %q", table, got, want)
		}
	}
}

// A pending event changes state three times. None of them may touch an index
// of the table: that is what the room in its pages is for.
func TestStatesChangeWithoutTouchingAnIndex(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	const indexed = `select array_agg(distinct attname::text order by attname::text) from pg_attribute a join pg_index i on i.indrelid = a.attrelid
		where a.attrelid = 'idem_events'::regclass and a.attnum = any (i.indkey)`
	if diff := cmp.Diff([]string{"event"}, queryOne[[]string](s, indexed)); diff != "" {
		t.Error("indexed columns (-want +got):\n" + diff)
	}
}

// A migration of tables that a long transaction reads does not keep the process before it from storing events.
func TestMigrationBehindALongTransactionHoldsUpNoDelivery(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	reader, _ := s.reader()
	migrated := make(chan error, 1)
	go func() { migrated <- migrateFiles(t.Context(), s.Pool, later(addColumn), time.Minute) }()
	for n := range testkit.Size(1, 3) { // tries of the migration, each of which events wait for a moment
		s.Until(waitsForTables)
		begun := time.Now()
		if o, err := s.Inbox.Accept(t.Context(), letter(strconv.Itoa(n), "o1", 0)); o != idem.Pending || err != nil {
			t.Errorf("Accept behind the migration = %s, %v after %s, want pending", o, err, time.Since(begun))
		}
		s.Until(`select not (` + strings.TrimPrefix(waitsForTables, "select ") + `)`)
	}
	select {
	case err := <-migrated:
		t.Errorf("Migrate = %v while the tables are being read", err)
	default:
	}
	if _, err := reader.Exec(t.Context(), `commit`); err != nil {
		t.Fatal(err)
	}
	if err := <-migrated; err != nil {
		t.Errorf("Migrate = %v after the reader has ended", err)
	}
}

func TestMigrationThatGetsNoLockNamesTheSessionInFront(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	_, pid := s.reader()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	migrated := make(chan error, 1)
	go func() { migrated <- migrateFiles(ctx, s.Pool, later(addColumn), time.Minute) }()
	s.Until(waitsForTables)
	s.Until(`select not (` + strings.TrimPrefix(waitsForTables, "select ") + `)`)
	s.Until(waitsForTables) // again: it has seen who is in front
	cancel()
	err := <-migrated
	if want := "pg_terminate_backend(" + strconv.Itoa(int(pid)) + ")"; err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("Migrate = %v, want an error with %s", err, want)
	}
	if n := queryOne[int](s, `select count(*) from idem_migrations`); n != 1 {
		t.Errorf("%d migrations are recorded, want 1", n)
	}
}

// A backup is another role's, of whose sessions an application may see the process and little else.
func TestMigrationThatGetsNoLockNamesTheSessionOfAnotherRole(t *testing.T) {
	t.Parallel()
	owner, role, name := asRole(t)
	execAll(t, owner, `grant create on schema `+strings.TrimSuffix(name, "_app")+` to `+name)
	if err := idem.Migrate(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	reader := overPool(t, owner)
	_, pid := reader.reader()
	err := migrateFiles(t.Context(), role, later(addColumn), 0)
	if want := "pg_terminate_backend(" + strconv.Itoa(int(pid)) + ")"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Migrate = %v, want an error with %s", err, want)
	}
}

// The time in which it tries to get locks does not limit what it does once it has them: an index of a large table, say.
func TestMigrationThatHasItsLocksIsNotCutOff(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	if err := migrateFiles(t.Context(), s.Pool, later(`alter table idem_events add column region text; select pg_sleep(0.1)`), time.Nanosecond); err != nil {
		t.Error(err)
	}
}

// Columns that this version knows: a later one may have more.
const knownRows = `select array_agg(line order by line) from (
	select concat_ws('|', event, type, key, state, received_at, attempts, last_error, body_hash, conflict_at, starts, crashes, claimed_at, claimed_by, done_at) as line
	from idem_events union all
	select concat_ws('|', event, source, lane, due_at, occurred_at, received_at, body, failures) from idem_payloads union all
	select concat_ws('|', event, occurred_at, received_at, body) from idem_archive) lines`

// later returns the migrations of a later version of this package: the file of this one,
// which must not run again, and another.
func later(second string) fstest.MapFS {
	return fstest.MapFS{
		"migrations/00001_idem.sql":  {Data: []byte(`select 'this file ran before' / 0`)},
		"migrations/00002_later.sql": {Data: []byte(second)},
	}
}

func (s *app) wantVersions(want ...int32) {
	s.Helper()
	if diff := cmp.Diff(want, queryOne[[]int32](s, `select array_agg(version order by version) from idem_migrations`)); diff != "" {
		s.Error("versions (-want +got):\n" + diff)
	}
}

// definition describes the tables as the database knows them: columns, indexes,
// constraints and storage.
func (s *app) definition() []string {
	s.Helper()
	return queryOne[[]string](s, `select array_agg(line order by line) from (
		select format('%s.%s %s %s %s', attrelid::regclass, attname, format_type(atttypid, atttypmod), attcollation::regcollation,
			attnotnull) as line from pg_attribute
		where attrelid in ('idem_events'::regclass, 'idem_payloads'::regclass, 'idem_archive'::regclass, 'idem_event_log'::regclass) and attnum > 0 and not attisdropped
		union all select regexp_replace(pg_get_indexdef(indexrelid), ' ON \S+\.', ' ON ') from pg_index
		where indrelid in ('idem_events'::regclass, 'idem_payloads'::regclass, 'idem_archive'::regclass, 'idem_event_log'::regclass)
		union all select format('%s with %s', oid::regclass, reloptions) from pg_class
		where oid in ('idem_events'::regclass, 'idem_payloads'::regclass, 'idem_archive'::regclass, 'idem_event_log'::regclass)) lines`)
}

// runMigrations runs the files as another tool does.
func (s *app) runMigrations() {
	s.Helper()
	files, err := fs.Glob(idem.Migrations, "migrations/*.sql")
	if err != nil || len(files) == 0 {
		s.Fatal(files, err)
	}
	for _, file := range files {
		statements, err := idem.Migrations.ReadFile(file)
		if err != nil {
			s.Fatal(err)
		}
		s.Exec(string(statements))
	}
}

// waitsForTables asks whether a migration waits for a table that a reader uses.
const waitsForTables = `select exists (select from pg_locks where not granted and relation in ('idem_events'::regclass, 'idem_audit'::regclass))`

// reader begins a transaction that reads the tables, as pg_dump does, until its connection is closed.
func (s *app) reader() (conn *pgx.Conn, pid uint32) {
	s.Helper()
	conn = s.Session(`begin; select count(*) from idem_events; select count(*) from idem_audit`)
	return conn, conn.PgConn().PID()
}

// addColumn is a migration that needs the lock of a table in use.
const addColumn = `alter table idem_events add column region text`

// migrateFiles is Migrate with the files of another version.
func migrateFiles(ctx context.Context, db migrate.Beginner, files fs.FS, patience time.Duration) error {
	return migrate.Apply(ctx, db, "", files, patience)
}
