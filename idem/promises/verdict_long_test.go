//go:build long

package promises_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

// Postgres crashes under a handler again and again, which counts as a failure at most: no event is parked
// by that, and each is done in the end.
func TestPostgresThatCrashesAgainAndAgainParksNobody(t *testing.T) {
	t.Parallel()
	const crashes = 5
	cluster := startCluster(t)
	m := openApp(t, openPool(t, cluster.URL(), asUsual))
	m.inbox = m.newInbox(m.pool)
	running, goOn := make(chan bool), make(chan bool)
	done := false
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if !done {
			running <- true
			<-goOn
		}
		return pay(ctx, tx, n)
	})
	crash := func() {
		t.Helper()
		if err := errors.Join(cluster.Crash(t.Context()), cluster.Start(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	answers := make(chan int)
	for range crashes {
		go func() {
			status, _ := m.deliver(paid("e1"))
			answers <- status
		}()
		<-running
		crash()
		goOn <- true
		if status := <-answers; status != http.StatusServiceUnavailable {
			t.Errorf("a delivery under which Postgres has crashed is answered %d, want 503", status)
		}
	}
	m.store(letter("e2", "o2", 1))
	m.start(m.inbox)
	for range crashes {
		<-running
		crash()
		goOn <- true
		m.wantWorked(idem.Retrying)
	}
	<-running
	done = true
	goOn <- true
	m.wantWorked(idem.Done)
	if status, answer := m.deliver(paid("e1")); status != http.StatusOK {
		t.Errorf("the last delivery is answered %d %s", status, answer)
	}
	m.wantEffects(2)
	if parked := queryOne[int](m, `select count(*) from idem_events where state <> 'done' or attempts > $1`, crashes); parked > 0 {
		t.Errorf("%d events are not done, or failed more often than Postgres has crashed", parked)
	}
}
