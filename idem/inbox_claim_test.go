package idem_test

import (
	"context"
	"testing"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

// Workers are stopped at each message that they send, or get the answer of: when
// Postgres has committed a claim, and they do not know it yet, for example.
// Nobody has died.
func TestRunThatIsStoppedAtAnyMomentLeavesNoClaim(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.on(pay)
	proxy := new(pgproxy.Proxy)
	worker := m.newInbox(openPool(t, m.pool.Config().ConnString(), proxy.Through))
	worker.Workers, worker.PollOnly = 1, true
	done := 0
	for step := 1; step <= 40; step++ { // prepare, claim, work, claim
		m.store(letter("e1", "o1", 1))
		ctx, stop := context.WithCancel(t.Context())
		proxy.Arm(pgproxy.Fault{Step: step, Point: pgproxy.BeforeAnswer, Do: func(uint32) { stop() }})
		ended := make(chan error, 1)
		go func() { ended <- worker.Run(ctx) }()
		if err := <-ended; err != nil {
			t.Errorf("stopped at message %d, Run = %v", step, err)
		}
		proxy.Disarm()
		stop()
		m.wantRow("e1", `(claimed_by, attempts, crashes)`, `(,0,0)`)
		if queryOne[bool](m, `select state = 'done' from idem_events`) {
			done++
		}
		m.exec(`truncate idem_events, idem_payloads`)
	}
	m.wantEffects(done)
	if done == 0 {
		t.Error("no event was done")
	}
}

// A lock that is over leaves its trace in the row: that is no lock.
func TestClaimPassesOverWhatIsLockedAndTakesWhatWas(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.on(pay)
	m.store(letter("e1", "o1", 1), letter("e2", "o2", 1))
	tx, err := m.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from idem_events where event like '%e1' for update`); err != nil {
		t.Fatal(err)
	}
	m.drain()
	m.wantState("e1", idem.StatePending)
	m.wantState("e2", idem.StateDone)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.drain()
	m.wantState("e1", idem.StateDone)
}
