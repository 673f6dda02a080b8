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

// A replica, such as the former primary after a failover, answers reads.
func TestAnActionWherePostgresTakesNoWritesSaysSo(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	writing := openPool(t, url, "")
	if err := idem.Migrate(t.Context(), writing); err != nil {
		t.Fatal(err)
	}
	openApp(t, writing).letters("e1")
	config := writing.Config()
	config.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	a := openApp(t, pool)
	a.get("").want(200, "1 parked")
	form := a.get("confirm?source=letters&action=replay").form("act")
	const says = "Postgres takes no writes: it is a replica"
	a.post("act", form).want(503, says)
	a.post("reveal", map[string][]string{"source": {"letters"}, "id": {"e1"}}).want(503, says)
	a.get("event?source=letters&id=e1").want(200, "State parked")
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
