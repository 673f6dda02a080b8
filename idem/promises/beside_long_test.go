//go:build long

package promises_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// As with the tokens of IAM: the address has no password, and Postgres asks for one.
func TestHealthNamesALockWhereOnlyAHookHasThePassword(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	owner := openApp(t, openPool(t, cluster.URL(), func(*pgxpool.Config) {}))
	owner.Exec(`set password_encryption = 'scram-sha-256'; create role shop superuser login password 'a token'`)
	if err := os.WriteFile(queryOne[string](owner, `show hba_file`), []byte("local all postgres trust\nlocal all all scram-sha-256\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	owner.Exec(`select pg_reload_conf()`)
	without := openPool(t, cluster.URL(), func(c *pgxpool.Config) { c.ConnConfig.User = "shop" })
	for deadline := time.Now().Add(patience); without.Ping(t.Context()) == nil; pause() { // until the settings are read
		without.Reset()
		if time.Now().After(deadline) {
			t.Fatal("Postgres asks for no password")
		}
	}
	s := openApp(t, openPool(t, cluster.URL(), func(c *pgxpool.Config) {
		c.ConnConfig.User = "shop"
		c.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error { c.Password = "a token"; return nil }
	}))
	pid := owner.Session(`begin; lock table idem_events in access exclusive mode`).PgConn().PID()
	h := s.NewHealth(s.First)
	h.Timeout = 5 * time.Second // in which Postgres says who that is
	s.WantHealth("a table is locked", h, "postgres", fmt.Sprintf("or end it: select pg_terminate_backend(%d)", pid))
}
