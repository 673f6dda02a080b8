package idem_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

// reader begins a transaction that reads the tables, as pg_dump does, until its connection is closed.
func (s *app) reader() (conn *pgx.Conn, pid uint32) {
	s.Helper()
	conn, err := pgx.ConnectConfig(s.Context(), s.pool.Config().ConnConfig)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close(context.Background()) })
	for _, sql := range []string{`begin`, `select count(*) from idem_events`, `select count(*) from idem_audit`} {
		if _, err := conn.Exec(s.Context(), sql); err != nil {
			s.Fatal(err)
		}
	}
	return conn, conn.PgConn().PID()
}

// A migration of tables that a long transaction reads does not keep the process before it from storing events.
func TestMigrationBehindALongTransactionHoldsUpNoDelivery(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.exec(`delete from idem_migrations where version > 1`)
	reader, _ := s.reader()
	migrated := make(chan error, 1)
	go func() { migrated <- idem.Migrate(t.Context(), s.pool) }()
	const waits = `select exists (select from pg_locks where not granted and relation in ('idem_events'::regclass, 'idem_audit'::regclass))`
	for n := range 3 { // tries of the migration, each of which events wait for a moment
		s.until(waits)
		begun := time.Now()
		if o, err := s.inbox.Accept(t.Context(), letter(strconv.Itoa(n), "o1", 0)); o != idem.Pending || err != nil {
			t.Errorf("Accept behind the migration = %s, %v after %s, want pending", o, err, time.Since(begun))
		}
		s.until(`select not (` + waits[len("select "):] + `)`)
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
	s.exec(`delete from idem_migrations where version > 1`)
	_, pid := s.reader()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	err := idem.Migrate(ctx, s.pool)
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
	reader := &app{T: t, pool: owner}
	_, pid := reader.reader()
	err := idem.MigrateFilesWithin(t.Context(), role, later(`alter table idem_events add column region text`), 0)
	if want := "pg_terminate_backend(" + strconv.Itoa(int(pid)) + ")"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Migrate = %v, want an error with %s", err, want)
	}
}

// The time in which it tries to get locks does not limit what it does once it has them: an index of a large table, say.
func TestMigrationThatHasItsLocksIsNotCutOff(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	if err := idem.MigrateFilesWithin(t.Context(), s.pool, later(`alter table idem_events add column region text; select pg_sleep(0.1)`), time.Nanosecond); err != nil {
		t.Error(err)
	}
}
