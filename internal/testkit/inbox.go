package testkit

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
)

// NewInboxShop returns a shop whose deliveries go to an inbox with workers, which run once they are started.
func NewInboxShop(t testing.TB) *Shop {
	t.Helper()
	return OpenInboxShop(t, PoolOf(t, 4))
}

// OpenInboxShop is [NewInboxShop] on the database of a pool.
func OpenInboxShop(t testing.TB, pool *pgxpool.Pool) *Shop {
	t.Helper()
	s := OpenShop(t, pool)
	s.Inbox = s.NewInbox(pool)
	server := httptest.NewServer(s.Inbox)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// OpenInbox opens an inbox beside First, on the same database and handlers, whose workers try nothing twice by
// themselves. It returns the shop.
func (s *Shop) OpenInbox() *Shop {
	s.Inbox = s.NewInbox(s.Pool)
	s.Inbox.Backoff = func(int) time.Duration { return time.Hour }
	return s
}

// NewInbox returns another inbox with the same handlers: what another process would be. It tries again at once, and
// looks for events often.
func (s *Shop) NewInbox(pool *pgxpool.Pool) *idem.Inbox {
	i := idem.NewInbox(pool, s.Notes)
	i.Backoff = func(int) time.Duration { return 0 }
	i.Poll = Pace
	i.Observe, i.Logger = s.Observe, s.Logger()
	return i
}

// Start runs workers until stop, or until the test ends.
func (s *Shop) Start(i *idem.Inbox) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Errorf("Run = %v\n%s", err, s.Logged())
		}
	})
	s.Cleanup(stop)
	return stop
}

// Served runs [idem.Serve] with an inbox and other parts, and returns where it listens.
func (s *Shop) Served(ctx context.Context, i *idem.Inbox, more ...idem.Part) (url string, ended <-chan error) {
	s.Helper()
	address, end := make(chan string, 1), make(chan error, 1)
	mux := http.NewServeMux()
	mux.Handle("POST /", i)
	server := &http.Server{Addr: "127.0.0.1:0", Handler: mux, BaseContext: func(l net.Listener) context.Context {
		address <- l.Addr().String()
		return context.Background()
	}}
	go func() { end <- idem.Serve(ctx, server, append(more, i)...) }()
	select {
	case a := <-address:
		if server.IdleTimeout == 0 || server.ReadHeaderTimeout == 0 {
			s.Error("the server has no time-outs")
		}
		return "http://" + a, end
	case err := <-end:
		s.Fatal(err)
		panic("unreachable")
	}
}

// Drain has the inbox process what is due, and checks how many attempts that took, if it is told.
func (s *Shop) Drain(attempts ...int) {
	s.Helper()
	before := len(s.Worked)
	ctx, cancel := context.WithTimeout(s.Context(), Patience)
	defer cancel()
	if err := s.Inbox.Drain(ctx); err != nil {
		s.Fatalf("Drain = %v\n%s", err, s.Logged())
	}
	if got := len(s.Worked) - before; len(attempts) > 0 && got != attempts[0] {
		s.Errorf("the workers made %d attempts, want %d\n%s", got, attempts[0], s.Logged())
	}
}

// Next waits until a worker has ended an attempt.
func (s *Shop) Next() idem.Observation {
	s.Helper()
	select {
	case o := <-s.Worked:
		return o
	case <-time.After(Patience):
		s.Fatal("no worker has ended an attempt:\n" + s.Logged())
		panic("unreachable")
	}
}

// WantWorked waits for what workers' attempts come to next.
func (s *Shop) WantWorked(want ...idem.Outcome) {
	s.Helper()
	for n, outcome := range want {
		if o := s.Next(); o.Outcome != outcome {
			s.Fatalf("outcome %d is %s of %s (%v), want %s", n+1, o.Outcome, o.Event.ID, o.Err, outcome)
		}
	}
}

// Store has the inbox store events, one after the other.
func (s *Shop) Store(events ...idem.Event) {
	s.Helper()
	for _, e := range events {
		if o, err := s.Inbox.Accept(s.Context(), e); o != idem.Pending || err != nil {
			s.Fatalf("Accept(%s) = %s, %v, want pending", e.ID, o, err)
		}
	}
}

// ClaimElsewhere claims an event as living workers do. They are of another source: those of
// its own would hear no sign of theirs.
func (s *Shop) ClaimElsewhere(id string) {
	s.Helper()
	s.Exec(fmt.Sprintf(`insert into idem_workers values (1, 'elsewhere', 'shop-1', 7, now(), now()) on conflict do nothing;
		update idem_events set starts = 1, claimed_at = now(), claimed_by = 1 where event like '%%/%s'`, id))
}

// WorkersElsewhere has workers of the source be alive that do nothing.
func (s *Shop) WorkersElsewhere(source string) {
	s.Helper()
	KeepAlive(s, s.Pool, source)
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
