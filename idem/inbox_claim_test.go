package idem_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
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
				m.until(`select exists (select from idem_claims)`)
				stop()
			}}, err
		}
	})
	worker := m.newInbox(pool)
	worker.PollOnly = true
	if err := worker.Run(ctx); err != nil {
		t.Errorf("Run = %v", err)
	}
	m.wantRow("e1", `(state, claimed)`, `(pending,)`) // not begun, and given back
	m.start(m.inbox)
	m.until(`select state = 'done' from idem_events`)
	m.wantRow("e1", `(attempts, crashes)`, `(0,)`)
	m.wantEffects(1)
}

// A lock that is over leaves its trace in the row: that is no lock.
func TestClaimPassesOverWhatIsLockedAndTakesWhatWas(t *testing.T) {
	t.Parallel()
	m := newMailroom(t)
	m.store(letter("e1", "o1", 1), letter("e2", "o2", 1))
	tx, err := m.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.inbox.Discard(t.Context(), tx, idem.Filter{States: []idem.State{idem.StatePending}, IDs: []string{"e1"}}, "a mistake"); err != nil {
		t.Fatal(err)
	}
	m.wantClaimed("notes//o2")
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.wantClaimed("notes//o1")
	m.wantClaimed()
}

func (m *mailroom) wantClaimed(want ...string) {
	m.Helper()
	m.wantClaimedAfter("", want...)
}

// wantClaimedAfter takes events of the queues behind one.
func (m *mailroom) wantClaimedAfter(queue string, want ...string) {
	m.Helper()
	got, err := idem.ClaimHeads(m.Context(), m.inbox, queue, 10)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		m.Error("claimed queues (-want +got):\n"+diff, err)
	}
}

// Two claims find the same events: one is held up between its look at them and
// its insert. What the other has taken meanwhile it leaves alone.
func TestClaimsAtOnceTakeAnEventOnce(t *testing.T) {
	t.Parallel()
	m := newMailroom(t)
	m.store(letter("e1", "o1", 1), letter("e2", "o2", 1))
	m.exec(`create function hold() returns trigger language plpgsql set lock_timeout = 0 as $$ begin perform pg_advisory_xact_lock(1); return new; end $$`)
	m.exec(`create trigger hold before insert on idem_claims for each row when (new.event = 'notes//e1') execute function hold()`)
	tx, err := m.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select pg_advisory_xact_lock(1)`); err != nil {
		t.Fatal(err)
	}
	held := make(chan error, 1)
	go func() {
		_, err := idem.ClaimHeads(t.Context(), m.inbox, "", 10)
		held <- err
	}()
	m.until(`select exists (select from pg_locks where locktype = 'advisory' and not granted
		and database = (select oid from pg_database where datname = current_database()) and objid = 1)`)
	m.wantClaimedAfter("notes//o1", "notes//o2")
	const claims = `select array_agg(until::text order by event) from idem_events left join idem_claims using (event)`
	before := queryOne[[]*string](m.shop, claims)
	if before[0] != nil || before[1] == nil {
		t.Fatalf("claimed at %v, want e2 only", before)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	after := queryOne[[]*string](m.shop, claims)
	if after[0] == nil || *after[1] != *before[1] {
		t.Errorf("claimed at %v, and then at %v", before, after)
	}
}
