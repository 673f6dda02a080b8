package pgtx_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// A connection breaks, and the rest of its statement is ended by the pid of its session. Where Postgres was
// restarted in a container, that is the pid of somebody else's by now.
func TestSessionThatHasThePIDOfAnEarlierOneIsLeftAlone(t *testing.T) {
	t.Parallel()
	for reason, c := range map[string]struct {
		used  time.Duration // the connection, before the session with its pid began
		ended bool
	}{
		"it is the connection's": {-time.Minute, true},
		"it began later":         {time.Minute, false},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			pool := idemtest.Pool(t)
			other, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
			if err != nil {
				t.Fatal(err)
			}
			defer other.Close(context.Background())
			if _, err := other.Exec(t.Context(), `begin; select 'idem_events'`); err != nil {
				t.Fatal(err)
			}
			const firstUsed = "github.com/paghooks/paghooks/idem: first used"
			released := make(chan bool, 3)
			config := pool.Config()
			config.AfterRelease = func(*pgx.Conn) bool { released <- true; return true }
			first := true
			config.ConnConfig.AfterNetConnect = func(_ context.Context, _ *pgconn.Config, server net.Conn) (net.Conn, error) {
				if !first {
					return server, nil
				}
				first = false
				return &namesake{server, other.PgConn().PID()}, nil
			}
			config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
				conn.PgConn().CustomData()[firstUsed] = time.Now().Add(-c.used)
				return nil
			}
			through, err := pgxpool.NewWithConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer through.Close()
			_ = pgtx.Ask(t.Context(), through, func(ctx context.Context, conn *pgxpool.Conn) error {
				return errors.Join(errors.New("it breaks"), conn.Conn().Close(ctx))
			})
			<-released // of the connection that ends the rest
			if err := other.Ping(t.Context()); (err != nil) != c.ended {
				t.Errorf("Ping = %v, want an error: %t", err, c.ended)
			}
		})
	}
}

// namesake is a connection that Postgres seems to have named after another session.
type namesake struct {
	net.Conn
	pid uint32
}

func (n *namesake) Read(p []byte) (int, error) {
	read, err := n.Conn.Read(p)
	if key := bytes.Index(p[:read], []byte{'K', 0, 0, 0, 12}); key >= 0 {
		binary.BigEndian.PutUint32(p[key+5:], n.pid)
	}
	return read, err
}
