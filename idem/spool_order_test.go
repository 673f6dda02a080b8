package idem_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
)

// deliverUntil has deliverers send the events of an entity each, one after the
// other and without the provider's time, and again what was not acknowledged, until
// stop. It returns how many there are.
func (s *spoolApp) deliverUntil(ctx context.Context, entities int) (wait func() int) {
	var deliverers sync.WaitGroup
	var events atomic.Int64
	for k := range entities {
		deliverers.Go(func() {
			for n := k; ctx.Err() == nil; n += entities {
				e := identify(fmt.Appendf(nil, `{"id":"%d","type":"paid","order":"o%d"}`, n, k))
				for o := idem.Retrying; !o.Acknowledged(); {
					o, _ = s.inbox.Accept(s.Context(), e)
				}
				events.Add(1)
			}
		})
	}
	return func() int {
		deliverers.Wait()
		return int(events.Load())
	}
}

// outage has Postgres go, and come back once so many events are spooled, while
// they arrive; and waits until they go to Postgres again.
func (s *spoolApp) outage(events int) {
	s.Helper()
	s.down.Store(true)
	for s.spool.Spooled() < events {
		pause()
	}
	s.down.Store(false)
	if !s.spool.UntilDrained(patience) {
		for line := range strings.SplitSeq(s.logged(), "\n") {
			if strings.Contains(line, "spool") && !strings.Contains(line, "webhook spooled") {
				s.Log(line)
			}
		}
		s.Fatalf("the spool has %d events", s.spool.Spooled())
	}
}

// The workers go on meanwhile: an event that passed an earlier one would be done
// before it.
func TestOrderIsKeptWhilePostgresGoesAndComesBack(t *testing.T) {
	t.Parallel()
	s := openSpoolApp(t, func(c *pgxpool.Config) { c.MaxConns = 8 })
	s.start(s.inbox)
	ctx, stop := context.WithCancel(t.Context())
	events := s.deliverUntil(ctx, 4)
	for range 4 {
		s.outage(50)
	}
	stop()
	want := events()
	s.untilDrained()
	s.until(`select not exists (select from idem_payloads)`)
	s.wantEffects(want)
	wantEachOnceInOrder(s.app)
}

// Events that keep arriving do not keep the spool from getting empty.
func TestSpoolGetsEmptyWhileEventsArrive(t *testing.T) {
	t.Parallel()
	s := openSpoolApp(t, func(c *pgxpool.Config) { c.MaxConns = 8 })
	ctx, stop := context.WithCancel(t.Context())
	events := s.deliverUntil(ctx, 32)
	s.outage(1100)
	stop()
	want := events()
	s.untilDrained()
	if n := queryOne[int](s.app, `select count(*) from idem_events`); n != want {
		t.Errorf("%d events are stored, want %d", n, want)
	}
}

func TestSpoolTakesEventsForWhateverReasonPostgresDoesNot(t *testing.T) {
	t.Parallel()
	var readOnly atomic.Bool // what new connections are, too: the pool replaces one that cannot write
	for name, c := range map[string]struct {
		reason   string
		set      func(*pgxpool.Config)
		from, to func(*spoolApp)
	}{
		"read-only": {
			"a replica, or a primary during a failover",
			func(c *pgxpool.Config) {
				c.MaxConns = 1
				c.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
					if readOnly.Load() {
						c.RuntimeParams["default_transaction_read_only"] = "on"
					}
					return nil
				}
			},
			func(s *spoolApp) { readOnly.Store(true); s.pool.Reset() },
			func(*spoolApp) { readOnly.Store(false) },
		},
		"no tables": {
			"a migration that did not run", asUsual,
			func(s *spoolApp) { s.exec(`alter table idem_events rename to elsewhere`) },
			func(s *spoolApp) { s.exec(`alter table elsewhere rename to idem_events`) },
		},
		"an error of the application's own": {
			"a trigger that fails", asUsual,
			func(s *spoolApp) {
				s.exec(`create function fail() returns trigger language plpgsql as $$ begin raise 'not now'; end $$;
					create trigger fail before insert on idem_payloads for each row execute function fail()`)
			},
			func(s *spoolApp) { s.exec(`drop trigger fail on idem_payloads`) },
		},
		"pool exhausted": {
			"the application uses all connections", func(c *pgxpool.Config) { c.MaxConns = 1 },
			func(s *spoolApp) { s.busy = s.acquire() },
			func(s *spoolApp) { s.busy.Release() },
		},
		"hanging": {
			"a lock, or a network that swallows packets", asUsual,
			func(s *spoolApp) { s.release = s.hold() },
			func(s *spoolApp) { s.release() },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openSpoolApp(t, c.set)
			s.accept(idem.Pending, letter("1", "o1", 0))
			c.from(s)
			start := time.Now()
			s.accept(idem.Spooled, letter("2", "o1", 0))
			first := time.Since(start)
			start = time.Now()
			s.accept(idem.Spooled, letter("3", "o1", 0), letter("4", "o2", 0), letter("2", "o1", 0))
			const wait = 5 * time.Second // for Postgres
			if rest := time.Since(start); first >= 2*wait || rest >= wait {
				t.Errorf("%s: the first was answered after %s, three more after %s: only one may wait for Postgres", c.reason, first, rest)
			}
			c.to(s)
			s.untilDrained()
			s.accept(idem.Pending, letter("5", "o1", 0))
			s.inbox.Workers = 1
			s.drain()
			s.wantEffects(5)
			wantEachOnceInOrder(s.app)
		})
	}
}

func (s *spoolApp) acquire() *pgxpool.Conn {
	s.Helper()
	conn, err := s.pool.Acquire(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return conn
}

// A network forgets the connections: nothing is answered, and nobody is told.
func TestSpoolTakesEventsWhenTheNetworkForgetsEveryConnection(t *testing.T) {
	t.Parallel()
	proxy := new(pgproxy.Proxy)
	s := openSpoolApp(t, proxy.Through)
	s.accept(idem.Pending, letter("1", "o1", 0))
	proxy.Forget()
	var deliveries sync.WaitGroup
	for n := range 20 {
		deliveries.Go(func() { s.wantAnswer(fmt.Sprintf(`{"id":"%d","type":"paid","order":"o%d"}`, n+2, n), http.StatusOK) })
	}
	deliveries.Wait()
	s.untilDrained()
	s.drain()
	s.wantEffects(21)
}

// Once Postgres is back but not everything is drained, a full spool is no reason to
// refuse an event, unless it would pass an earlier one of its entity.
func TestFullSpoolKeepsTheOrderOfAnEntityOnly(t *testing.T) {
	t.Parallel()
	s := newSpoolApp(t)
	s.exec(`create function fail() returns trigger language plpgsql as $$ begin
			if new.event = 'notes//1' then raise 'not now'; end if; return new; end $$;
		create trigger fail before insert on idem_events for each row execute function fail()`)
	s.accept(idem.Spooled, letter("1", "o1", 0))
	s.spool.MaxBytes = 1
	s.accept(idem.Pending, letter("2", "o2", 0), letter("3", "o2", 0))
	s.accept(idem.Retrying, letter("4", "o1", 0))
	s.exec(`drop trigger fail on idem_events`)
	s.untilDrained()
	s.accept(idem.Pending, letter("4", "o1", 0))
	s.drain()
	s.wantEffects(4)
	wantEachOnceInOrder(s.app)
}
