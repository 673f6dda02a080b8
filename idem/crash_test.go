package idem_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/idemtest"
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
	s.on(pay)
	const events = 400
	var next, acknowledged, refused atomic.Int64
	progress := make(chan int64, 2*events)
	var deliverers sync.WaitGroup
	for range 8 {
		deliverers.Go(func() {
			for i := next.Add(1); i <= events; i = next.Add(1) {
				for status := 0; status != http.StatusOK; {
					var err error
					if status, _, err = s.post(t.Context(), paid(fmt.Sprint(i)), nil); err != nil {
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
	s.wantEffects(events)
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
	s.wantEffects(events)
	if n := queryOne[int](s, `select count(distinct event) from effects`); n != events {
		t.Errorf("%d events have an effect, want %d", n, events)
	}
}

// The receiver is killed while its handler runs; another one gets the event
// when it is delivered again.
func TestReceiverThatIsKilledLeavesTheEventToTheNext(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	s := openApp(t, openPool(t, url, func(*pgxpool.Config) {}))
	s.on(pay)
	child := exec.Command(os.Args[0], "-test.run=^TestChildThatHandlesForever$")
	child.Env = append(os.Environ(), "IDEM_TEST_CHILD="+url)
	if said, err := startChild(child); err != nil || said != "in the handler" {
		t.Fatalf("the child said %q, %v", said, err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // killed
	s.wantAnswer(paid("e1"), http.StatusOK)
	s.wantEffects(1)
}
