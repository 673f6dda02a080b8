package idem_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/idemtest"
)

// lateAnswer is a connection on which the answer to a claim is late: committed
// is called before it is read.
type lateAnswer struct {
	net.Conn
	committed func()
	asked     bool
	expired   chan struct{} // closed once nobody waits for the answer any more
	once      sync.Once
}

func (c *lateAnswer) Write(p []byte) (int, error) {
	c.asked = c.asked || bytes.Contains(p, []byte("with recursive ring"))
	return c.Conn.Write(p)
}

func (c *lateAnswer) SetDeadline(t time.Time) error {
	if !t.IsZero() {
		c.once.Do(func() { close(c.expired) })
	}
	return c.Conn.SetDeadline(t)
}

func (c *lateAnswer) Read(p []byte) (int, error) {
	if c.asked {
		c.asked = false
		c.committed()
		select {
		case <-c.expired:
		case <-time.After(100 * time.Millisecond): // it is waited for, as it should be
		}
	}
	return c.Conn.Read(p)
}

// Workers are stopped when Postgres has committed a claim, and they do not know
// it yet. Nobody has died.
func TestRunThatIsStoppedWhileItClaimsGivesBack(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	m := openMailroom(t, openPool(t, url, func(*poolConfig) {}))
	m.on(pay)
	m.store(letter("e1", "o1", 1))
	ctx, stop := context.WithCancel(t.Context())
	pool := openPool(t, url, func(c *poolConfig) {
		c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // the statement is sent when it is executed
		c.ConnConfig.TLSConfig, c.ConnConfig.Fallbacks = nil, nil // and readable
		dial := c.ConnConfig.DialFunc
		c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			return &lateAnswer{Conn: conn, expired: make(chan struct{}), committed: func() {
				m.until(`select claimed_at is not null from idem_events`)
				stop()
			}}, err
		}
	})
	worker := m.newInbox(pool)
	worker.PollOnly = true
	if err := worker.Run(ctx); err != nil {
		t.Errorf("Run = %v", err)
	}
	m.wantRow("e1", `(state, claimed_at)`, `(pending,)`) // not begun, and given back
	m.start(m.inbox)
	m.until(`select state = 'done' from idem_events`)
	m.wantRow("e1", `(attempts, crashes)`, `(0,)`)
	m.wantEffects(1)
}
