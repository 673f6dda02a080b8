//go:build long

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
	"github.com/paghooks/paghooks/internal/postgres"
)

// Postgres is stopped hard, twice, while eight deliverers send events and send
// again what was not acknowledged, as a provider does.
func TestPostgresThatCrashesUnderLoadNeitherLosesNorDoubles(t *testing.T) {
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
	s := openApp(t, openPool(t, cluster.URL(), func(c *pgxpool.Config) { c.MaxConns = 4 }))
	s.On(pay)
	const events = 400
	var next, acknowledged, refused atomic.Int64
	progress := make(chan int64, 2*events)
	var deliverers sync.WaitGroup
	for range 8 {
		deliverers.Go(func() {
			for i := next.Add(1); i <= events; i = next.Add(1) {
				for status := 0; status != http.StatusOK; {
					var err error
					if status, _, err = s.Post(t.Context(), paid(fmt.Sprint(i)), nil); err != nil {
						t.Error(err)
						return
					}
					if status != http.StatusOK {
						refused.Add(1)
						pause()
					}
				}
				progress <- acknowledged.Add(1)
			}
		})
	}
	for n := range progress {
		if n == events/4 || n == events/2 {
			if err := cluster.Crash(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := cluster.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if n == events {
			break
		}
	}
	deliverers.Wait()
	if refused.Load() == 0 {
		t.Error("no delivery met the crashes")
	}
	s.WantEffects(events)
	if n := queryOne[int](s, `select count(distinct event) from effects`); n != events {
		t.Errorf("%d events have an effect, want %d", n, events)
	}
}

// Three receivers share a database, and are killed in turn while deliverers
// send each event to two of them at once, and again until one has acknowledged.
func TestReceiversThatAreKilledUnderLoadNeitherLoseNorDouble(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	s := openApp(t, openPool(t, url, func(*pgxpool.Config) {}))
	receivers := make([]*receiver, 3)
	for i := range receivers {
		receivers[i] = &receiver{T: t, url: url}
		receivers[i].start()
	}
	const events, kills = 300, 6
	var next, acknowledged atomic.Int64
	progress := make(chan int64, events)
	var deliverers sync.WaitGroup
	for range 6 {
		deliverers.Go(func() {
			for i := next.Add(1); i <= events; i = next.Add(1) {
				var both sync.WaitGroup
				for _, r := range []*receiver{receivers[i%3], receivers[(i+1)%3]} {
					both.Go(func() { r.deliverUntilAcknowledged(paid(fmt.Sprint(i))) })
				}
				both.Wait()
				progress <- acknowledged.Add(1)
			}
		})
	}
	for n := range progress {
		if n%(events/kills) == 0 {
			r := receivers[n/(events/kills)%3]
			r.kill()
			r.start()
		}
		if n == events {
			break
		}
	}
	deliverers.Wait()
	for _, r := range receivers {
		r.kill()
	}
	s.WantEffects(events)
	if n := queryOne[int](s, `select count(distinct event) from effects`); n != events {
		t.Errorf("%d events have an effect, want %d", n, events)
	}
}

// Postgres crashes, with its default settings, while workers process and events
// arrive.
func TestOrderOfAnEntityOutlivesACrashOfPostgres(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t)
	openOrders(t, cluster.URL(), asUsual).outlives(400, func() error {
		return errors.Join(cluster.Crash(t.Context()), cluster.Start(t.Context()))
	})
}

// The primary is lost, and a replica is promoted that lacks what was last. What
// it has is processed in order.
func TestOrderOfAnEntityOutlivesThePromotionOfAReplica(t *testing.T) {
	t.Parallel()
	const events, keys = 400, 8
	primary := startCluster(t)
	s := openOrders(t, primary.URL(), asUsual)
	replica, err := primary.Replica(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, replica)
	s.Pool.Reset() // the replica's start has ended its connections
	stop := s.Start(s.Inbox)
	s.storeInOrder(events, keys).Wait()
	s.untilDone(events / 4)
	if err := errors.Join(primary.Crash(t.Context()), replica.Promote(t.Context())); err != nil {
		t.Fatal(err)
	}
	stop()
	s = openOrders(t, replica.URL(), asUsual)
	s.Start(s.Inbox)
	s.Until(nothingLeft)
	s.WantEffects(queryOne[int](s, `select count(*) from idem_events`))
	wantEachOnceInOrder(s)
}

// A firewall forgets every connection while handlers are in flight and events
// arrive. Nobody is told; new connections work.
func TestProcessingResumesAfterTheNetworkForgetsEveryConnection(t *testing.T) {
	t.Parallel()
	const events, keys, inFlight = 200, 20, 3
	proxy := new(pgproxy.Proxy)
	s := openOrders(t, idemtest.URL(t), proxy.Through)
	entered, forgotten := make(chan struct{}, 10*events), make(chan struct{})
	s.Deploy(func(n *notes) {
		idem.Handle(&n.Routes, "paid", func(ctx context.Context, tx pgx.Tx, n *note) error {
			entered <- struct{}{}
			<-forgotten
			_, err := tx.Exec(ctx, `insert into effects (event, queue) values ($1, $2)`, n.ID, n.Order)
			return err
		})
	})
	s.Inbox = s.NewInbox(s.Pool)
	s.Inbox.Workers, s.Inbox.Timeout = inFlight, 3*time.Second
	s.Start(s.Inbox)
	stored := s.storeInOrder(events, keys)
	for range inFlight {
		<-entered
	}
	proxy.Forget()
	close(forgotten)
	stored.Wait()
	looking := openPool(t, s.Pool.Config().ConnString(), asUsual)
	s.Pool = looking
	s.Until(nothingLeft)
	s.WantEffects(events)
	wantEachOnceInOrder(s)
	if n := queryOne[int](s, `select max(crashes) from idem_events`); n > 1 {
		t.Errorf("the network was counted as %d crashes of an event", n)
	}
}

func startCluster(t *testing.T) *postgres.Cluster {
	t.Helper()
	cluster := new(postgres.Cluster)
	if err := cluster.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, cluster)
	return cluster
}

func closeAtEnd(t *testing.T, c *postgres.Cluster) {
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}
