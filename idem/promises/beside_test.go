package promises_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/idemtest"
)

// The password of a hosted Postgres is a token that BeforeConnect fetches; AfterConnect sets the role or the
// search_path. A connection without them reaches nothing, or other tables.
func TestConnectionsBesideThePoolHaveItsHooks(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	plain := openInboxApp(t, openPool(t, url, func(*pgxpool.Config) {}))
	s := openInboxApp(t, openPool(t, url, func(c *pgxpool.Config) { hookOnly(t, c) }))

	// The one that listens: without it, these workers would look for events in an hour.
	s.Inbox.Poll = time.Hour
	s.On(pay)
	s.Start(s.Inbox)
	s.Until(`select count(*) = 1 from idem_workers`)
	plain.Store(identify([]byte(paid("e1"))))
	s.Until(nothingLeft)

	// The one on which health asks who keeps the tables locked.
	pid := plain.Session(`begin; lock table idem_events in access exclusive mode`).PgConn().PID()
	h := s.NewHealth(s.First)
	h.Timeout = 5 * time.Second // in which Postgres says who that is
	s.WantHealth("a table is locked", h, "postgres", fmt.Sprintf("or end it: select pg_terminate_backend(%d)", pid))
}

// hookOnly leaves everything that a connection needs to the hooks of a pool.
func hookOnly(t *testing.T, c *pgxpool.Config) {
	dial, schema := c.ConnConfig.DialFunc, c.ConnConfig.RuntimeParams["application_name"] // of idemtest
	c.ConnConfig.DialFunc = func(context.Context, string, string) (net.Conn, error) {
		t.Error("a connection is made without BeforeConnect")
		return nil, errors.New("no token")
	}
	delete(c.ConnConfig.RuntimeParams, "options")
	c.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error { c.DialFunc = dial; return nil }
	c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `select set_config('search_path', $1, false)`, schema)
		return err
	}
}
