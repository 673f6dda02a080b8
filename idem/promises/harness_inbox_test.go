package promises_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/testkit"
)

// openPool connects to a database, with a few connections.
func openPool(t *testing.T, url string, set func(*pgxpool.Config)) *pgxpool.Pool {
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

// poolOf has n connections to a database of its own.
func poolOf(t *testing.T, n int32) *pgxpool.Pool {
	t.Helper()
	return openPool(t, idemtest.URL(t), func(c *pgxpool.Config) { c.MaxConns = n })
}

// newInboxApp is an app whose deliveries go to an inbox. Its workers run once
// they are started.
func newInboxApp(t *testing.T) *app {
	t.Helper()
	return openInboxApp(t, poolOf(t, 4))
}

func openInboxApp(t *testing.T, pool *pgxpool.Pool) *app {
	t.Helper()
	s := openApp(t, pool)
	s.inbox = s.newInbox(pool)
	server := httptest.NewServer(s.inbox)
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// newInbox is another inbox with the same handlers: what another process would
// be. It tries again at once, and looks for events often.
func (s *app) newInbox(pool *pgxpool.Pool) *idem.Inbox {
	i := idem.NewInbox(pool, s.notes)
	i.Backoff = func(int) time.Duration { return 0 }
	i.Poll = pace
	i.Observe, i.Logger = s.observe, s.logger()
	return i
}

// start runs workers until stop, or until the test ends.
func (s *app) start(i *idem.Inbox) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			s.Errorf("Run = %v\n%s", err, s.logged())
		}
	})
	s.Cleanup(stop)
	return stop
}

// drain has the inbox process what is due, and checks how many attempts that
// took, if it is told.
func (s *app) drain(attempts ...int) {
	s.Helper()
	before := len(s.worked)
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	if err := s.inbox.Drain(ctx); err != nil {
		s.Fatalf("Drain = %v\n%s", err, s.logged())
	}
	if got := len(s.worked) - before; len(attempts) > 0 && got != attempts[0] {
		s.Errorf("the workers made %d attempts, want %d\n%s", got, attempts[0], s.logged())
	}
}

// patience is a last resort: what is awaited comes much earlier, or never.
const patience = time.Minute

// pace is how often idle workers look for events, beside being woken. A search costs as much as a delivery, and several
// tests run at once.
const pace = 50 * time.Millisecond

// pause is between two looks at what changes by itself: without it, a test would take the
// CPU from what it waits for.
func pause() { time.Sleep(pace / 10) }

// next waits until a worker has ended an attempt.
func (s *app) next() idem.Observation {
	s.Helper()
	select {
	case o := <-s.worked:
		return o
	case <-time.After(patience):
		s.Fatal("no worker has ended an attempt:\n" + s.logged())
		panic("unreachable")
	}
}

// wantWorked waits for what workers' attempts come to next.
func (s *app) wantWorked(want ...idem.Outcome) {
	s.Helper()
	for n, outcome := range want {
		if o := s.next(); o.Outcome != outcome {
			s.Fatalf("outcome %d is %s of %s (%v), want %s", n+1, o.Outcome, o.Event.ID, o.Err, outcome)
		}
	}
}

// store has the inbox store events, one after the other.
func (s *app) store(events ...idem.Event) {
	s.Helper()
	for _, e := range events {
		if o, err := s.inbox.Accept(s.Context(), e); o != idem.Pending || err != nil {
			s.Fatalf("Accept(%s) = %s, %v, want pending", e.ID, o, err)
		}
	}
}

// letter is a paid event of an order, at a second of the provider's clock; at 0
// the provider does not say when.
func letter(id, order string, second int) idem.Event {
	e := at(second, id, "paid", order)
	if second == 0 {
		e.OccurredAt = time.Time{}
	}
	return e
}

// at is an event of an order at a second of the provider's clock.
func at(second int, id, eventType, order string) idem.Event {
	e := identify([]byte(about(id, eventType, order)))
	e.OccurredAt = time.Unix(1_700_000_000+int64(second), 0)
	return e
}

func about(id, eventType, order string) string {
	return fmt.Sprintf(`{"id":%q,"type":%q,"order":%q}`, id, eventType, order)
}

// wantRow checks columns of an event's row, as SQL writes them.
func (s *app) wantRow(id, columns, want string) {
	s.Helper()
	got := queryOne[string](s, `
		select (`+columns+`)::text from idem_events where event like '%/' || $1`, id)
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("%s of %s (-want +got):\n%s", columns, id, diff)
	}
}

// until repeats a query until it says true. Postgres may be unavailable meanwhile.
func (s *app) until(sql string, args ...any) {
	s.Helper()
	var last error
	for deadline := time.Now().Add(patience); ; pause() {
		var yes bool
		if last = s.pool.QueryRow(s.Context(), sql, args...).Scan(&yes); yes {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("it never came true: %s, %v\n%s", sql, last, s.logged())
		}
	}
}

// claimElsewhere claims an event as living workers do. They are of another source: those of
// its own would hear no sign of theirs.
func (s *app) claimElsewhere(id string) {
	s.Helper()
	s.exec(fmt.Sprintf(`insert into idem_workers values (1, 'elsewhere', 'shop-1', 7, now(), now()) on conflict do nothing;
		update idem_events set starts = 1, claimed_at = now(), claimed_by = 1 where event like '%%/%s'`, id))
}

// workersElsewhere has workers of the source be alive that do nothing.
func (s *app) workersElsewhere(source string) {
	s.Helper()
	testkit.KeepAlive(s, s.pool, source)
}

// hold keeps statements that store events waiting until release.
func (s *app) hold() (release func()) {
	s.Helper()
	conn := s.session(`begin; lock table idem_payloads in share mode`)
	return func() { _ = conn.Close(context.Background()) }
}

// untilHeld waits until a statement waits for hold.
func (s *app) untilHeld() {
	s.Helper()
	s.until(`select exists (select from pg_locks where relation = 'idem_payloads'::regclass and not granted)`)
}

// untilWaiting waits until n deliveries wait to be stored, beside those that are
// being stored. It does not pause: what holds those has an end of five seconds.
func (s *app) untilWaiting(n int) {
	s.Helper()
	for deadline := time.Now().Add(patience); engineOf(s.inbox).(writer).Waiting() != n; runtime.Gosched() {
		if time.Now().After(deadline) {
			s.Fatalf("%d deliveries wait to be stored, want %d", engineOf(s.inbox).(writer).Waiting(), n)
		}
	}
}

// countBatches has the database note how many events each statement stores.
func (s *app) countBatches() {
	s.exec(`create table batches (n serial, events int);
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

// till is an application whose handlers book what orders are paid and refunded,
// inline, in one ledger. Events whose ids are broken fail.
type till struct {
	*app
	mu     sync.Mutex
	broken map[string]bool
}

func (s *till) handlers() *notes {
	source := &notes{}
	idem.Handle(&source.Routes, "paid", s.book)
	idem.Handle(&source.Routes, "refunded", s.book)
	return source
}

func (s *till) book(ctx context.Context, tx pgx.Tx, n *note) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken[n.ID] {
		return errors.New("no such order")
	}
	_, err := tx.Exec(ctx, `insert into ledger (entry) values ($1)`, n.ID+" "+n.Type)
	return err
}

// fails has these events fail, and no others.
func (s *till) fails(ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.broken)
	for _, id := range ids {
		s.broken[id] = true
	}
}

func (s *till) wantLedger(want ...string) {
	s.Helper()
	got := queryOne[[]string](s.app, `select coalesce(array_agg(entry order by place), '{}') from ledger`)
	if diff := cmp.Diff(append([]string{}, want...), got); diff != "" {
		s.Errorf("the ledger (-want +got):\n%s\n%s", diff, s.logged())
	}
}

func (s *till) replays(f idem.Filter, want idem.Replayed) {
	s.Helper()
	if got, err := s.first.Replay(s.Context(), f); counted(got) != counted(want) || err != nil {
		s.Errorf("Replay = %+v, %v, want %+v\n%s", got, err, want, s.logged())
	}
}

func newTill(t *testing.T) *till {
	t.Helper()
	s := &till{app: newApp(t), broken: make(map[string]bool)}
	s.exec(`create table ledger (place bigserial, entry text)`)
	s.notes = s.handlers()
	s.first = s.newFirst()
	return s
}
