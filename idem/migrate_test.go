package idem_test

import (
	"context"
	"io/fs"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

func TestManyProcessesMayMigrateAtOnceAndAgain(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	for range 2 {
		var starts sync.WaitGroup
		for range 8 {
			starts.Go(func() {
				if err := idem.Migrate(t.Context(), pool); err != nil {
					t.Error(err)
				}
			})
		}
		starts.Wait()
	}
	s := openApp(t, pool)
	s.on(pay)
	s.wantAnswer(paid("e1"), http.StatusOK)
}

// A process that waited for another one sees what that has migrated.
func TestProcessThatWaitsForAMigrationIsDoneWithItAtEveryDefaultIsolation(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			s := &app{T: t, pool: openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
				c.ConnConfig.RuntimeParams["default_transaction_isolation"] = level
			})}
			first, err := s.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
			if err != nil {
				t.Fatal(err)
			}
			defer first.Rollback(context.Background())
			if err := idem.Migrate(t.Context(), first); err != nil {
				t.Fatal(err)
			}
			second := make(chan error, 1)
			go func() { second <- idem.Migrate(context.Background(), s.pool) }()
			s.until(blocked)
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
	s.on(pay)
	s.wantAnswer(paid("e1"), http.StatusOK)
}

func TestMigrateWithoutSchemaSaysSo(t *testing.T) {
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
	if err := idem.Migrate(t.Context(), conn); err == nil || !strings.HasPrefix(err.Error(), "idem: migrating the tables: ") {
		t.Errorf("Migrate = %v", err)
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
	missing, err := idem.MissingMigrations(t.Context(), pool)
	if diff := cmp.Diff(all, missing); diff != "" || err != nil {
		t.Errorf("of an empty schema: %v (-want +got):\n%s", err, diff)
	}
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if missing, err := idem.MissingMigrations(t.Context(), pool); len(missing) != 0 || err != nil {
		t.Errorf("after Migrate: %v, %v", missing, err)
	}
}
