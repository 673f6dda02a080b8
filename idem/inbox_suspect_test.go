package idem_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// dieWith leaves an event as a worker does whose process dies: claimed, and free
// again by now.
func (m *mailroom) dieWith(id string) {
	m.exec(`insert into idem_claims select event, now() - interval '50 seconds' from idem_events where event like '%/` + id + `'`)
}

func TestEventThatAProcessDiedWithIsWorkedAlone(t *testing.T) {
	t.Parallel()
	m := openMailroom(t, poolOf(t, 6))
	m.inbox.Workers = 4
	var running atomic.Int32
	entered, release := make(chan string, 10), make(chan struct{})
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		alone := running.Add(1) == 1
		defer running.Add(-1)
		if n.ID != "suspect" {
			entered <- n.ID
			<-release
			return pay(ctx, tx, n)
		}
		m.store(letter("late", "late", 0)) // wakes the workers
		for range 50 {
			alone = queryOne[bool](m.shop, `select true`) && running.Load() == 1 && alone
		}
		if !alone {
			t.Error("other events are worked on at the same time")
		}
		return pay(ctx, tx, n)
	})
	for _, id := range []string{"a", "b", "suspect", "t", "u"} { // in the order that workers find them
		m.store(letter(id, id, 0))
	}
	m.dieWith("suspect")
	m.start(m.inbox)
	for range 3 { // of four, as suspect is one of the first four
		if id := <-entered; id > "t" {
			t.Errorf("%s was taken, and there is a suspect", id)
		}
	}
	m.wantRow("suspect", `(state, claimed <= now() - interval '50 seconds', crashes)`, `(pending,t,)`)
	close(release)
	for range 6 {
		m.wantWorked(idem.Done)
	}
	m.wantRow("suspect", `(state, attempts, crashes)`, `(done,0,1)`)
	m.wantRow("a", `(state, attempts, crashes)`, `(done,0,)`)
	m.wantEffects(6)
}

func TestEventThatKilledManyProcessesIsKeptUntried(t *testing.T) {
	t.Parallel()
	m := newMailroom(t)
	m.inbox.MaxCrashes = 3
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "deadly" {
			t.Error("it runs once more")
		}
		return pay(ctx, tx, n)
	})
	m.store(letter("deadly", "o1", 1), letter("after", "o1", 2), letter("suspect", "o2", 1))
	m.exec(`update idem_events set crashes = 2 where event like '%deadly'`)
	m.exec(`update idem_events set crashes = 1 where event like '%suspect'`)
	m.dieWith("deadly")
	m.dieWith("suspect")
	m.start(m.inbox)
	m.wantWorked(idem.Parked, idem.Done)
	m.wantRow("deadly", `(state, crashes, claimed, last_error like '%3 processes died%')`, `(failed,3,,t)`)
	m.wantPayload("deadly", string(letter("deadly", "o1", 1).Payload))
	m.wantRow("suspect", `(state, crashes)`, `(done,2)`)
	m.wantState("after", idem.StatePending) // its key is held
}

// A payload that is mended is tried like a new one.
func TestRequeueForgetsCrashes(t *testing.T) {
	t.Parallel()
	m := newMailroom(t)
	m.inbox.MaxCrashes = 1
	m.on(pay)
	m.store(letter("e1", "o1", 1))
	m.dieWith("e1")
	m.start(m.inbox)
	m.wantWorked(idem.Parked)
	if n, err := m.inbox.Requeue(t.Context(), m.pool, idem.Filter{}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	m.wantWorked(idem.Done)
	m.wantRow("e1", `(state, crashes)`, `(done,)`)
}

func TestSuspectThatFailsIsAnEventThatFailed(t *testing.T) {
	t.Parallel()
	m := newMailroom(t)
	runs := 0
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if runs++; runs < 3 {
			return errors.New("no such order")
		}
		return pay(ctx, tx, n)
	})
	m.store(letter("e1", "o1", 1))
	m.dieWith("e1")
	m.start(m.inbox)
	m.wantWorked(idem.Retrying, idem.Retrying, idem.Done)
	m.wantRow("e1", `(state, attempts, crashes)`, `(done,2,1)`)
}

func TestClaimOfALivingWorkerIsLeftAlone(t *testing.T) {
	t.Parallel()
	m := newMailroom(t)
	m.on(pay)
	m.store(letter("a1", "a", 1), letter("a2", "a", 2))
	m.exec(`insert into idem_claims select event, now() + interval '1 hour' from idem_events where event like '%a1'`)
	m.start(m.inbox)
	m.store(letter("b1", "b", 1)) // workers that find it have passed a's
	m.wantWorked(idem.Done)
	m.wantRow("a1", `(state, claimed is null, crashes)`, `(pending,f,)`)
	m.wantState("a2", idem.StatePending)
}

// Postgres goes away while a handler runs. The process is not to blame; whether
// the event is, nobody knows: that is an attempt.
func TestConnectionLostUnderAWorkerIsNoCrash(t *testing.T) {
	t.Parallel()
	var network *network
	m := openMailroom(t, openPool(t, idemtest.URL(t), func(c *poolConfig) { network = newNetwork(c) }))
	m.inbox.PollOnly = true
	broken, runs := make(chan struct{}), 0
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if runs++; runs > 1 {
			return pay(ctx, tx, n)
		}
		defer close(broken)
		network.down.Store(true)
		return pay(ctx, tx, n)
	})
	m.store(letter("e1", "o1", 1))
	m.start(m.inbox)
	<-broken
	network.down.Store(false)
	m.wantWorked(idem.Retrying, idem.Done)
	m.wantEffects(1)
	m.wantRow("e1", `(state, attempts, crashes)`, `(done,1,)`)
}

// The answer to a worker's COMMIT is lost: what is done is not done again.
func TestConnectionCutAtAWorkersCommitNeitherLosesNorDoubles(t *testing.T) {
	t.Parallel()
	for f, want := range map[fault][]idem.Outcome{
		cutBeforeCommit: {idem.Retrying, idem.Done},
		cutDuringCommit: {idem.Done},
		cutAfterCommit:  {idem.Done},
	} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			m := openMailroom(t, openPool(t, idemtest.URL(t), func(c *poolConfig) { newNetwork(c) }))
			m.inbox.PollOnly = true
			runs := 0
			m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				err := pay(ctx, tx, n)
				if runs++; runs == 1 {
					tx.Conn().PgConn().Conn().(*wire).fault = f // COMMIT is next
				}
				return err
			})
			m.store(letter("e1", "o1", 1), letter("e2", "o1", 2))
			m.start(m.inbox)
			m.wantWorked(append(want, idem.Done)...)
			m.wantEffects(2)
			m.wantRow("e1", `(state, attempts, crashes)`, `(done,0,)`)
		})
	}
}
