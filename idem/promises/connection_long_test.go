//go:build long

package promises_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/postgres"
)

// Nobody polls here, and nobody but this test notifies: its Postgres is its own.
func TestWorkersAreToldOfWhatAnotherProcessStores(t *testing.T) {
	t.Parallel()
	cluster := &postgres.Cluster{}
	if err := cluster.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	m := openInboxApp(t, openPool(t, cluster.URL(), func(*pgxpool.Config) {}))
	m.On(pay)
	other := openPool(t, cluster.URL(), func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["application_name"] = "other" })
	worker := m.NewInbox(other)
	worker.Poll = time.Hour
	m.Start(worker)
	next := 0
	storeElsewhere := func() {
		t.Helper()
		for range 5 {
			m.Store(letter(fmt.Sprint(next), fmt.Sprint(next), 0))
			next++
			m.WantWorked(idem.Done)
		}
	}
	storeElsewhere()

	for range 2 {
		lost := m.beside(other)
		m.Exec(fmt.Sprintf(`select pg_terminate_backend(%d)`, lost))
		for deadline := time.Now().Add(patience); m.beside(other) == lost; pause() {
			if time.Now().After(deadline) {
				t.Fatal("nothing listens again")
			}
		}
		storeElsewhere()
	}
}

func TestPollOnlyDoesWithoutListen(t *testing.T) {
	t.Parallel()
	heard := make(listens, 10)
	m := openInboxApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) { c.ConnConfig.Tracer = heard }))
	m.On(pay)
	m.Inbox.PollOnly = true
	m.Start(m.Inbox)
	other := m.NewInbox(m.Pool)
	other.PollOnly = true
	for n := range 3 {
		if o, err := other.Accept(t.Context(), letter(fmt.Sprint(n), "o1", 0)); o != idem.Pending {
			t.Fatal(o, err)
		}
		m.WantWorked(idem.Done)
	}
	m.WantEffects(3)
	m.Until(`select exists (select from idem_workers where seen_at > started_at + interval '1 second')`) // there is a connection for that
	if len(heard) > 0 {
		t.Error("a connection listens")
	}
}
