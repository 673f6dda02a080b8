package idemtest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/idemtest"
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
