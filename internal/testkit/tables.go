package testkit

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// Open returns a pool on the tables of package idem, in a schema of the test's own.
func Open(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	return pool
}

// OpenPool connects to a database, with a few connections.
func OpenPool(t testing.TB, url string, set func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 4 // as pgx has it by default where there are few processors
	set(config)
	p, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// PoolOf returns a pool of n connections to a database of its own.
func PoolOf(t testing.TB, n int32) *pgxpool.Pool {
	t.Helper()
	return OpenPool(t, idemtest.URL(t), func(c *pgxpool.Config) { c.MaxConns = n })
}

// Partition divides idem_events, unless that was done before.
func Partition(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	if !QueryOne[bool](t, pool, `select relkind = 'p' from pg_class where oid = 'idem_events'::regclass`) {
		Exec(t, pool, PartitionedSQL(t))
	}
}

// PartitionedSQL returns docs/partitioned.sql, for a test in any folder of this repository.
func PartitionedSQL(t testing.TB) string {
	t.Helper()
	for up := "."; ; up = filepath.Join("..", up) {
		sql, err := os.ReadFile(filepath.Join(up, "docs", "partitioned.sql"))
		if err == nil {
			return string(sql)
		}
		if here, _ := filepath.Abs(up); !errors.Is(err, fs.ErrNotExist) || here == filepath.Dir(here) {
			t.Fatal(err)
		}
	}
}

// Exec executes SQL, even while the test ends.
func Exec(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(context.Background(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// QueryOne returns the only value of a query.
func QueryOne[V any](t testing.TB, pool *pgxpool.Pool, sql string, args ...any) (v V) {
	t.Helper()
	if err := pool.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// Exec executes SQL.
func (s *Shop) Exec(sql string, args ...any) {
	s.Helper()
	Exec(s, s.Pool, sql, args...)
}

// Session opens a session beside the pool, which lasts until the end of the test, and executes
// statements in it.
func (s *Shop) Session(sql string) *pgx.Conn {
	s.Helper()
	conn, err := pgx.ConnectConfig(s.Context(), s.Pool.Config().ConnConfig)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(s.Context(), sql); err != nil {
		s.Fatal(err)
	}
	return conn
}

// Blocked asks whether a session of the shop waits for a lock.
const Blocked = `select exists (select from pg_stat_activity
	where application_name = current_setting('application_name') and wait_event_type = 'Lock')`

// Await asks Postgres a question until the answer is yes.
func (s *Shop) Await(ctx context.Context, question string, args ...any) error {
	for yes := false; !yes; {
		if err := s.Pool.QueryRow(ctx, question, args...).Scan(&yes); err != nil {
			return err
		}
		Pause()
	}
	return nil
}

// Until repeats a query until it says true. Postgres may be unavailable meanwhile.
func (s *Shop) Until(sql string, args ...any) {
	s.Helper()
	var last error
	for deadline := time.Now().Add(Patience); ; Pause() {
		var yes bool
		if last = s.Pool.QueryRow(s.Context(), sql, args...).Scan(&yes); yes {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("it never came true: %s, %v\n%s", sql, last, s.Logged())
		}
	}
}

// EveryState stores events in every state that there is, and in every place of a lane.
func (s *Shop) EveryState() {
	s.Helper()
	s.On(RefuseBad)
	s.OpenInbox()
	s.WantAnswer(Paid("done"), http.StatusOK)
	s.WantAnswer(About("done", "paid", "another body"), http.StatusOK)
	s.First.KeepPayloads = true
	s.WantAnswer(Paid("kept"), http.StatusOK)
	s.Store(Identify([]byte(Paid("bad-parked"))))
	s.Drain(1)
	s.WantAnswer(About("unhandled", "new", "o1"), http.StatusOK)
	s.WantAnswer(About("discarded", "new", "o1"), http.StatusOK)
	s.WantDiscarded(idem.Filter{IDs: []string{"discarded"}}, "a test", 1)
	s.Store(Letter("bad-head", "a", 1), Letter("behind", "a", 2))
	s.Drain(1)
	s.Store(Letter("due", "b", 0), Letter("claimed", "c", 0), Letter("failing", "d", 0))
	s.Exec(`update idem_events set starts = 1, claimed_by = -1 where event like '%claimed'`)
	s.Exec(`update idem_events set attempts = 2, last_error = 'x' where event like '%failing'`)
}

// WantEffects checks how often the handlers' work is in the database.
func (s *Shop) WantEffects(want int) {
	s.Helper()
	if got := QueryOne[int](s, s.Pool, `select count(*) from effects`); got != want {
		s.Errorf("the database holds %d effects, want %d", got, want)
	}
}

// WantState checks what is stored of an event; "" means nothing is.
func (s *Shop) WantState(id string, want idem.State) {
	s.Helper()
	got := QueryOne[idem.State](s, s.Pool, `select coalesce((select state from idem_events where event like '%/' || $1), '')`, id)
	if got != want {
		s.Errorf("event %s is stored as %q, want %q", id, got, want)
	}
}

// WantPayload checks the body that is stored of an event; "" means none is.
func (s *Shop) WantPayload(id, want string) {
	s.Helper()
	got := QueryOne[[]byte](s, s.Pool, `select coalesce((select body from (select event, body from idem_payloads union all select event, body from idem_archive) p where event like '%/' || $1), '')`, id)
	if string(got) != want {
		s.Errorf("the payload of %s is stored as %q, want %q", id, got, want)
	}
}

// WantRow checks columns of an event's row, as SQL writes them.
func (s *Shop) WantRow(id, columns, want string) {
	s.Helper()
	got := QueryOne[string](s, s.Pool, `
		select (`+columns+`)::text from idem_events where event like '%/' || $1`, id)
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("%s of %s (-want +got):\n%s", columns, id, diff)
	}
}

// Contents returns all that the tables hold.
func (s *Shop) Contents() []string {
	s.Helper()
	return QueryOne[[]string](s, s.Pool, `select coalesce(array_agg(line order by line), '{}') from (
		select 'event ' || e::text as line from idem_events e union all
		select 'payload ' || p::text from idem_payloads p where source <> '' union all
		select 'archive ' || a::text from idem_archive a union all
		select 'effect ' || f::text from effects f) tables`)
}

// WantContents checks that the tables hold what [Shop.Contents] returned before.
func (s *Shop) WantContents(want []string) {
	s.Helper()
	if diff := cmp.Diff(want, s.Contents()); diff != "" {
		s.Error("the tables have changed (-want +got):\n" + diff)
	}
}
