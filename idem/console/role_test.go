package console_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// Since Postgres 15 an ordinary role may not create tables.
func TestPageWorksForARoleThatMayOnlyReadAndWrite(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	owner := openPool(t, url, "")
	if err := idem.Migrate(t.Context(), owner); err != nil {
		t.Fatal(err)
	}
	var role string
	if err := owner.QueryRow(t.Context(), `select current_schema()`).Scan(&role); err != nil {
		t.Fatal(err)
	}
	schema := role
	role += "_app"
	for _, sql := range []string{
		`create role ` + role, `grant usage on schema ` + schema + ` to ` + role,
		`grant select, insert, update, delete on all tables in schema ` + schema + ` to ` + role,
	} {
		if _, err := owner.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if _, err := owner.Exec(context.Background(), `drop owned by `+role+`; drop role `+role); err != nil {
			t.Error(err)
		}
	})
	pool := openPool(t, url, role)
	if _, err := pool.Exec(t.Context(), `create table mine ()`); err == nil {
		t.Fatal("the role may create tables: this proves nothing")
	}
	a := openApp(t, pool)
	a.letters("e1", "e2", "e3")
	a.get("").want(200, "3 parked")
	a.fix()
	a.post("reveal", map[string][]string{"source": {"letters"}, "id": {"e1"}}).want(200, "cpf")
	for _, action := range []string{"dry-run", "replay"} {
		a.confirm("confirm?source=letters&id=e1&action="+action, "").want(303)
	}
	a.confirm("confirm?source=letters&id=e2&action=requeue", "").want(303)
	a.confirm("confirm?source=letters&id=e3&action=discard", "x").want(303)
	a.wantState("letters", "e1", idem.StateDone)
	a.wantState("letters", "e2", idem.StatePending)
	a.wantState("letters", "e3", idem.StateDiscarded)
	a.get("trail?source=letters").want(200, "reveal", "dry replay", "replay", "requeue", "discard")
}

func openPool(t *testing.T, url, role string) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	if role != "" {
		config.ConnConfig.RuntimeParams["role"] = role
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
