// Package testkit holds the parts that tests of several packages share: a shop, the two sizes of a test, a wait for
// the next value of a channel, and ports for servers that tests start, and start again.
package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// Note is the one event of the shop's provider.
type Note struct {
	ID    string `json:"id"`
	Type  string `json:"type"`
	Order string `json:"order"`
}

// Source is the provider. Its token is "right", and its account is in the header account.
type Source struct {
	idem.Routes
	name string
}

// NewSource returns a provider of that name.
func NewSource(name string) *Source { return &Source{name: name} }

// Name returns the name of [NewSource].
func (s *Source) Name() string { return s.name }

// Open returns the event of a delivery.
func (s *Source) Open(r *http.Request) (idem.Event, error) {
	if r.Header.Get("token") != "right" {
		return idem.Event{}, &idem.Refusal{Source: s.name, Reason: "wrong_token", Hint: "send the right token"}
	}
	body, err := idem.ReadBody(r)
	n := new(Note)
	e := idem.Event{Source: s.name, Scope: r.Header.Get("account"), Payload: body}
	if json.Unmarshal(body, n) == nil {
		e.ID, e.Type, e.Key = n.ID, n.Type, n.Order
	}
	return e, err
}

// Open returns a pool on the tables of package idem, in a schema of the test's own.
func Open(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	return pool
}

// Exec executes SQL, even while the test ends.
func Exec(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(context.Background(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// KeepAlive gives each source a worker that does nothing, and shows signs of life until the end of the test.
func KeepAlive(t testing.TB, pool *pgxpool.Pool, sources ...string) {
	t.Helper()
	const ahead = `now() + interval '0.9 seconds'` // the next sign comes in a second: each is less than a second away until then
	Exec(t, pool, `
insert into idem_workers select abs(hashtext(source)), source, 'shop-1', 7, now(), `+ahead+` from unnest($1::text[]) source
on conflict (id) do update set seen_at = excluded.seen_at`, sources)
	if _, signs := signing.LoadOrStore(pool, true); signs {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	var signs sync.WaitGroup
	signs.Go(func() {
		for every := time.Tick(time.Second); ctx.Err() == nil; {
			select {
			case <-every: // a test may have deleted the rows, or have closed the pool
				_, _ = pool.Exec(ctx, `update idem_workers set seen_at = `+ahead+` where host = 'shop-1' and seen_at > now() - interval '12 seconds'`)
			case <-ctx.Done():
			}
		}
	})
	t.Cleanup(func() {
		stop()
		signs.Wait()
		signing.Delete(pool)
	})
}

// signing holds the pools over which workers show signs of life.
var signing sync.Map

// patience is much longer than anything takes, even on a busy machine: only a failure waits so long.
const patience = time.Minute

// Next returns the next value of a channel, or the zero T once the channel is closed. A test that waits for
// more than a minute fails.
func Next[T any](t testing.TB, values <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-values:
	case <-time.After(patience):
		t.Fatal("waited in vain")
	}
	return v
}

// FreeAddress returns the address of a [FreePort].
func FreeAddress(t testing.TB) string {
	t.Helper()
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("127.0.0.1:", port)
}

// Operating systems take the ports of outgoing connections, and of listeners on port 0,
// from above these: 32768 on Linux, 49152 on others.
const firstPort, ports = 12000, 20000

// Processes begin at different ports, and try each once.
var (
	begin = rand.Uint32N(ports)
	tried atomic.Uint32
)

// FreePort returns a port of 127.0.0.1 without a listener. No connection that a program
// opens takes it, as one could take a port that was found by listening on port 0,
// and no other call in this process returns it.
func FreePort() (port int, err error) {
	for range 100 {
		port = firstPort + int(begin+tried.Add(1))%ports
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("testkit: a hundred ports between %d and %d are taken: %w", firstPort, firstPort+ports, err)
}
