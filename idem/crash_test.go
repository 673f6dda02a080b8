package idem_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
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

// Three receivers share a database, and are killed in turn while deliverers
// send each event to two of them at once, and again until one has acknowledged.
func TestReceiversThatAreKilledUnderLoadNeitherLoseNorDouble(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	s := openShop(t, openPool(t, url, func(*poolConfig) {}))
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
				var twins sync.WaitGroup
				for _, r := range []*receiver{receivers[i%3], receivers[(i+1)%3]} {
					twins.Go(func() { r.deliverUntilAcknowledged(paid(fmt.Sprint(i))) })
				}
				twins.Wait()
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

// receiver is a server in a process of its own, which can be killed.
type receiver struct {
	*testing.T
	url string // of the database

	mu      sync.Mutex
	address string
	process *exec.Cmd
}

func (r *receiver) start() {
	child := exec.Command(os.Args[0], "-test.run=^TestChildThatReceives$")
	child.Env = append(os.Environ(), "IDEM_TEST_RECEIVER="+r.url)
	address, err := startChild(child)
	if err != nil {
		r.Error(err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.address, r.process = address, child
}

// startChild starts a process and returns the first line that it prints.
func startChild(child *exec.Cmd) (line string, err error) {
	if _, err := child.StdinPipe(); err != nil { // ours until the child is waited for, or we end
		return "", err
	}
	out, err := child.StdoutPipe()
	if err != nil {
		return "", err
	}
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		return "", err
	}
	line, err = bufio.NewReader(out).ReadString('\n')
	return strings.TrimSpace(line), err
}

// endWithParent ends a child's process once its parent's end of the pipe is
// closed, however the parent ends.
func endWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

func (r *receiver) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.process.Process.Kill(); err != nil {
		r.Error(err)
	}
	_ = r.process.Wait() // killed
}

func (r *receiver) deliverUntilAcknowledged(body string) {
	for {
		r.mu.Lock()
		address := r.address
		r.mu.Unlock()
		req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, address, strings.NewReader(body))
		if err != nil {
			r.Error(err)
			return
		}
		req.Header.Set("token", "right")
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		if r.Context().Err() != nil {
			return
		}
		runtime.Gosched()
	}
}

// TestChildThatReceives is the process of a receiver.
func TestChildThatReceives(t *testing.T) {
	url := os.Getenv("IDEM_TEST_RECEIVER")
	if url == "" {
		return
	}
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	source := &notes{}
	idem.Handle(&source.Routes, "paid", pay)
	processor := idem.NewProcessor(pool, source)
	processor.Logger = nil
	server := httptest.NewServer(processor)
	fmt.Println(server.URL)
	endWithParent()
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
		endWithParent()
		return nil
	})
	_, err = idem.NewProcessor(pool, source).Accept(t.Context(), identify([]byte(paid("e1"))))
	t.Fatal("the handler returned: ", err)
}
