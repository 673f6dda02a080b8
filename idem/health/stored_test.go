package health_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/port"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestAnEventThatFailsForLongMakesHealthRed(t *testing.T) {
	t.Parallel()
	s := testkit.NewInboxShop(t)
	s.On(func(context.Context, pgx.Tx, *testkit.Note) error { return errors.New("a mistake") })
	s.Inbox.Backoff = func(int) time.Duration { return 24 * time.Hour }
	s.Inbox.MaxAttempts = 2
	s.WantAnswer(testkit.NewBody, http.StatusOK) // unhandled, and of no age
	s.Store(testkit.Letter("failing", "o2", 0))
	s.Drain()
	age := func(minutes int) {
		s.Exec(fmt.Sprintf(`update idem_payloads set received_at = now() - interval '%d minutes'`, minutes))
	}
	age(9)
	s.WantHealth("9 minutes", s.NewHealth(s.Inbox), "", "")
	age(11)
	s.WantHealth("11 minutes", s.NewHealth(s.Inbox), "failing", "1 event fails, and no workers are alive to try it again: put right what the error says, and deploy it; then start the program")
	s.WantHealth("another process of the source says so, too", s.NewHealth(s.First), "failing", "1 event fails")
	off := s.NewHealth(s.Inbox)
	off.MaxFailing = 0
	s.WantHealth("it does not look", off, "", "")
	s.Exec(`update idem_payloads set due_at = now() where event like '%failing'`)
	s.Drain(1)
	s.WantHealth("it is parked", s.NewHealth(s.Inbox), "parked", "1 event is parked, until a person acts: first failing, paid")
}

func TestEventsThatNoWorkerTakesMakeHealthRed(t *testing.T) {
	t.Parallel()
	s := testkit.NewInboxShop(t)
	entered, release := make(chan struct{}), make(chan struct{})
	s.On(func(_ context.Context, _ pgx.Tx, n *testkit.Note) error {
		if n.ID == "e1" {
			close(entered)
			<-release
		}
		return nil
	})
	s.Store(testkit.Letter("e1", "o1", 1), testkit.Letter("e2", "o1", 2))
	due := func(minutes int) {
		s.Exec(fmt.Sprintf(`update idem_payloads set due_at = now() - interval '%d minutes' where event like '%%/e1'`, minutes))
	}
	s.Exec(`update idem_payloads set due_at = null, received_at = now() - interval '1 hour' where event like '%/e2'`) // it waits for e1
	due(-10)
	s.WantHealth("it waits for its next attempt", s.NewHealth(s.Inbox), "", "")
	off := s.NewHealth(s.Inbox)
	off.MaxPending = 6 * time.Minute
	due(6) // and Timeout beside
	s.WantHealth("it is drained from time to time", off, "", "")
	s.Exec(`update idem_payloads set due_at = now() where event like '%/e1'`)
	s.WantHealth("it has just become due", s.NewHealth(s.Inbox), "", "")
	s.Exec(`update idem_payloads set due_at = now() - interval '16 seconds' where event like '%/e1'`)
	s.WantHealth("nobody takes it", s.NewHealth(s.Inbox), "workers", "no workers are alive, and 2 events wait for them")
	due(6)
	off = s.NewHealth(s.Inbox)
	off.MaxPending = 0
	s.WantHealth("it does not look", off, "", "")
	stop := s.Start(s.Inbox)
	<-entered
	s.WantHealth("its handler hangs", s.NewHealth(s.Inbox), "workers", "workers run and do not keep up")
	close(release)
	s.WantWorked(idem.Done, idem.Done)
	stop()
	s.WantHealth("they are done", s.NewHealth(s.Inbox), "", "")
}

// What was done is done again there, and everything else looks well.
func TestAPathToOtherTablesThanThoseOfTheEventsIsRed(t *testing.T) {
	t.Parallel()
	s := testkit.NewInboxShop(t)
	s.Store(testkit.Letter("e1", "o1", 1))
	s.Drain(1)
	var schema string
	if err := s.Pool.QueryRow(t.Context(), `select current_schema()`).Scan(&schema); err != nil {
		t.Fatal(err)
	}
	own := schema + "_own"
	t.Cleanup(func() {
		if _, err := s.Pool.Exec(context.Background(), `drop schema `+own+` cascade`); err != nil {
			t.Error(err)
		}
	})
	s.Exec(`create schema ` + own)
	if err := idem.MigrateSchema(t.Context(), s.Pool, own); err != nil {
		t.Fatal(err)
	}
	moved := testkit.OpenPool(t, idemtest.URL(t), func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["search_path"] = own + ", " + schema })
	s.WantHealth("as it was", s.NewHealth(s.Inbox), "", "")
	s.WantHealth("somebody has changed it", s.NewHealth(s.NewInbox(moved)), "postgres", "those that are done there run again when they are delivered again")
	s.Exec(`update idem_events set received_at = now() - interval '32 days'`)
	s.WantHealth("nothing of before is delivered again", s.NewHealth(s.NewInbox(moved)), "", "")
}

// A handler has it, and all else waits.
func TestAPoolOfOneConnectionIsAWarning(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t)
	for connections, want := range map[int32]bool{1: true, 2: false} {
		pool := testkit.OpenPool(t, s.Pool.Config().ConnString(), func(c *pgxpool.Config) { c.MaxConns = connections })
		for _, c := range s.NewHealth(testkit.NewFirst(pool, s.Notes)).Report().Checks {
			if c.Name == "postgres" && (!c.Healthy || c.Warning != want) {
				t.Errorf("of %d it says %+v", connections, c)
			}
		}
	}
}

func TestPostgresThatIsNotWellMakesHealthRedInTime(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t)
	open := func(url string) *pgxpool.Pool {
		p, err := pgxpool.New(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		return p
	}
	full := testkit.PoolOf(t, 1)
	conn, err := full.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Release)
	readOnly := testkit.OpenPool(t, idemtest.URL(t), func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on" })
	const soon = 200 * time.Millisecond
	for reason, c := range map[string]struct {
		pool        *pgxpool.Pool
		timeout     time.Duration
		check, says string
	}{
		"nobody listens":           {open("postgres://joana:secret-1@" + strings.TrimPrefix(port.Gone(t), "http://") + "/shop"), soon, "postgres", "it did not answer within 200ms"},
		"nobody answers":           {open("postgres://joana:secret-1@" + silent(t) + "/shop?sslmode=disable"), soon, "postgres", "it did not answer within 200ms"},
		"all connections are used": {full, soon, "postgres", "all connections of the pool are in use"},
		"it is a replica":          {readOnly, testkit.Patience, "postgres", "it is read-only"},
		"it has no tables":         {idemtest.Pool(t), testkit.Patience, "postgres", "the events cannot be read: the tables are missing, or were changed"},
	} {
		h := s.NewHealth(testkit.NewFirst(c.pool, s.Notes))
		h.Timeout, h.MaxPending = c.timeout, 0
		start := time.Now()
		s.WantHealth(reason, h, c.check, c.says)
		if d := time.Since(start); d > testkit.Patience {
			t.Errorf("%s: it took %s", reason, d)
		}
		if said := fmt.Sprintf("%+v", h.Report()); strings.Contains(said, "joana") || strings.Contains(said, "127.0.0.1") || strings.Contains(said, "secret-1") {
			t.Errorf("%s: it tells a stranger: %s", reason, said)
		}
	}
	if log := s.Logged(); !strings.Contains(log, "webhook health check fails") || !strings.Contains(log, "joana") || strings.Contains(log, "secret-1") {
		t.Errorf("the log does not tell the cause:\n%s", log)
	}
}

// silent is a Postgres that takes connections and says nothing.
func silent(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}
