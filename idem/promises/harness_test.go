package promises_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/inside"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// What these tests use most of package testkit.
type (
	note    = testkit.Note
	notes   = testkit.Source
	fixable = testkit.Fixable
)

const (
	patience = testkit.Patience
	pace     = testkit.Pace
	blocked  = testkit.Blocked
	newBody  = testkit.NewBody
)

var (
	identify  = testkit.Identify
	paid      = testkit.Paid
	about     = testkit.About
	letter    = testkit.Letter
	at        = testkit.At
	in        = testkit.In
	ids       = testkit.IDs
	pay       = testkit.Pay
	refuseBad = testkit.RefuseBad
	newFirst  = testkit.NewFirst
	openPool  = testkit.OpenPool
	poolOf    = testkit.PoolOf
	pause     = testkit.Pause
	acted     = testkit.Acted
	replayed  = testkit.Replayed
	counted   = testkit.Counted
)

// app is a shop with what only the tests of the engine need.
type app struct{ *testkit.Shop }

func newApp(t *testing.T) *app { t.Helper(); return &app{testkit.NewShop(t)} }

func openApp(t *testing.T, pool *pgxpool.Pool) *app {
	t.Helper()
	return &app{testkit.OpenShop(t, pool)}
}

// newInboxApp is an app whose deliveries go to an inbox. Its workers run once they are started.
func newInboxApp(t *testing.T) *app { t.Helper(); return &app{testkit.NewInboxShop(t)} }

func openInboxApp(t *testing.T, pool *pgxpool.Pool) *app {
	t.Helper()
	return &app{testkit.OpenInboxShop(t, pool)}
}

// overPool is an app on tables that are there, over connections of another role or with other settings.
func overPool(t *testing.T, pool *pgxpool.Pool) *app {
	return &app{&testkit.Shop{TB: t, Pool: pool, Notes: &notes{}, Worked: make(chan idem.Observation, 100)}}
}

func (s *app) openInbox() *app { s.OpenInbox(); return s }

// emptied returns the app for a test within the one that has made it, with empty tables: a schema costs as much as ten
// deliveries.
func (s *app) emptied(t *testing.T) *app {
	t.Helper()
	inner := &app{&testkit.Shop{TB: t, Pool: s.Pool, Notes: s.Notes, First: s.First, Inbox: s.Inbox, URL: s.URL, Worked: s.Worked}}
	inner.Exec(`truncate idem_events, idem_payloads, idem_archive, idem_pauses, effects restart identity`)
	return inner
}

func queryOne[V any](s *app, sql string, args ...any) V {
	s.Helper()
	return testkit.QueryOne[V](s, s.Pool, sql, args...)
}

// engine is the inside of a receiver, which other packages of this project use.
type engine interface {
	Pool() *pgxpool.Pool
	Choose(ctx context.Context, f idem.Filter) (idem.Filter, error)
	Replay(ctx context.Context, f idem.Filter, dry bool, ran func(sum idem.Replayed, e idem.Event, failure error)) (idem.Replayed, error)
	Discard(ctx context.Context, f idem.Filter, reason string, changed func(context.Context, pgx.Tx, []string) error) (int64, error)
	DryPrune(ctx context.Context) (int64, error)
}

// requeuer is the inside of an inbox.
type requeuer interface {
	Requeue(ctx context.Context, f idem.Filter, changed func(context.Context, pgx.Tx, []string) error) (int64, error)
}

// writer is the inside of an inbox.
type writer interface {
	Waiting() int // the number of deliveries that wait to be stored
}

func engineOf(r idem.Receiver) engine { return inside.Of[engine](r) }

// nowhere is a pool of a database that does not exist, for deliveries that must not come to it.
var nowhere = func() *pgxpool.Pool {
	pool, err := pgxpool.New(context.Background(), "postgres://nobody@127.0.0.1:1/none")
	if err != nil {
		panic(err)
	}
	return pool
}()

// hold keeps statements that store events waiting until release.
func (s *app) hold() (release func()) {
	s.Helper()
	conn := s.Session(`begin; lock table idem_payloads in share mode`)
	return func() { _ = conn.Close(context.Background()) }
}

// untilHeld waits until a statement waits for hold.
func (s *app) untilHeld() {
	s.Helper()
	s.Until(`select exists (select from pg_locks where relation = 'idem_payloads'::regclass and not granted)`)
}

// untilWaiting waits until n deliveries wait to be stored, beside those that are
// being stored. It does not pause: what holds those has an end of five seconds.
func (s *app) untilWaiting(n int) {
	s.Helper()
	for deadline := time.Now().Add(patience); engineOf(s.Inbox).(writer).Waiting() != n; runtime.Gosched() {
		if time.Now().After(deadline) {
			s.Fatalf("%d deliveries wait to be stored, want %d", engineOf(s.Inbox).(writer).Waiting(), n)
		}
	}
}

// countBatches has the database note how many events each statement stores.
func (s *app) countBatches() {
	s.Exec(`create table batches (n serial, events int);
		create function count_batch() returns trigger language plpgsql as $$ begin
			insert into batches (events) select count(*) from fresh having count(*) > 0; return null; end $$;
		create trigger count_batch after insert on idem_events referencing new table as fresh
			for each statement execute function count_batch()`)
}

func (s *app) wantBatches(want ...int) {
	s.Helper()
	got := queryOne[[]int](s, `select coalesce(array_agg(events order by n), '{}') from batches`)
	if diff := cmp.Diff(want, got); diff != "" {
		s.Error("events per statement (-want +got):\n" + diff)
	}
}

// payAndFail is a handler that fails after its work.
func payAndFail(ctx context.Context, tx pgx.Tx, n *note) error {
	if err := pay(ctx, tx, n); err != nil {
		return err
	}
	return errors.New("no such order")
}

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

// inTx executes batches in its transaction also when they have their own.
type inTx struct{ pgx.Tx }

func (tx inTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	b.QueuedQueries = slices.DeleteFunc(b.QueuedQueries, func(q *pgx.QueuedQuery) bool {
		return strings.HasPrefix(q.SQL, "begin") || q.SQL == "commit"
	})
	return tx.Tx.SendBatch(ctx, b)
}
