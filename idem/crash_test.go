package idem_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// Postgres is stopped hard, twice, while eight deliverers send events and send
// again what was not acknowledged, as a provider does.
func TestPostgresThatCrashesUnderLoadNeitherLosesNorDoubles(t *testing.T) {
	t.Parallel()
	cluster := &idemtest.Cluster{}
	if err := cluster.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	s := openShop(t, openPool(t, cluster.URL(), func(c *poolConfig) { c.MaxConns = 4 }))
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
						runtime.Gosched()
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

// The receiver is killed while its handler runs; another one gets the event
// when it is delivered again.
func TestReceiverThatIsKilledLeavesTheEventToTheNext(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	s := openShop(t, openPool(t, url, func(*poolConfig) {}))
	s.on(pay)
	child := exec.Command(os.Args[0], "-test.run=^TestChildThatHandlesForEver$")
	child.Env = append(os.Environ(), "IDEM_TEST_CHILD="+url)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "in the handler\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out)
	_ = child.Wait() // killed
	s.wantAnswer(paid("e1"), http.StatusOK)
	s.wantEffects(1)
}

// TestChildThatHandlesForEver is the process that is killed.
func TestChildThatHandlesForEver(t *testing.T) {
	url := os.Getenv("IDEM_TEST_CHILD")
	if url == "" {
		return
	}
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	source := &notes{}
	idem.Handle(&source.Routes, "paid", func(ctx context.Context, tx pgx.Tx, n *note) error {
		if err := pay(ctx, tx, n); err != nil {
			return err
		}
		fmt.Println("in the handler")
		select {}
	})
	_, err = idem.NewProcessor(pool, source).Accept(t.Context(), identify([]byte(paid("e1"))))
	t.Fatal("the handler returned: ", err)
}
