package promises_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/outbox"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// With PgBouncer and other poolers, pgx cannot keep prepared statements.
func TestEveryQueryModeOfPgxWorks(t *testing.T) {
	t.Parallel()
	for _, mode := range queryModes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			s := openApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode }))
			s.First.KeepPayloads = true
			broken := true
			s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := pay(ctx, tx, n); err != nil || !broken {
					return err
				}
				return errors.New("no such order")
			})
			odd := `{"id":"it's \\ $1 \"odd\"","type":"paid"}`
			s.WantAnswer(odd, http.StatusServiceUnavailable)
			broken = false
			s.WantAnswer(odd, http.StatusOK)
			s.WantAnswer(odd, http.StatusOK)
			s.WantAnswer(`{"id":"e3","type":"it's \\ $1 \"new\""}`, http.StatusOK)
			s.WantEffects(1)
			stats, err := s.First.Stats(t.Context())
			if err != nil || stats.Unhandled.Events != 1 {
				t.Errorf("Stats = %+v, %v, want one unhandled", stats, err)
			}
			s.Deploy(func(n *notes) { idem.HandleOthers(&n.Routes, func(string) bool { return false }, nothing) })
			s.WantReplayed(idem.Filter{IDs: []string{"it's"}}, idem.Replayed{})
			s.WantReplayed(idem.Filter{}, idem.Replayed{Unhandled: 1})
			s.Exec(`update idem_events set received_at = '2020-01-01'`)
			s.wantPruned(s.First, 2)
		})
	}
}

func TestDatabaseDefaultsDoNotMatter(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{
		"default_transaction_isolation":  "serializable",
		"default_transaction_deferrable": "on",
		"lock_timeout":                   "5s",
		"standard_conforming_strings":    "off",
		"search_path":                    "", // the test's own
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
				if value != "" {
					c.ConnConfig.RuntimeParams[name] = value
				}
			}))
			s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				var isolation, lockTimeout string
				err := tx.QueryRow(ctx, `select current_setting('transaction_isolation'), current_setting('lock_timeout')`).
					Scan(&isolation, &lockTimeout)
				want := "read committed"
				if name == "default_transaction_isolation" {
					want = value // the application's choice
				}
				if isolation != want {
					t.Errorf("the handler runs at %s, want %s", isolation, want)
				}
				want = "0"
				if name == "lock_timeout" {
					want = value
				}
				if lockTimeout != want {
					t.Errorf("the handler's lock_timeout is %s, want %s", lockTimeout, want)
				}
				if err != nil {
					return err
				}
				return pay(ctx, tx, n)
			})
			s.WantAnswer(paid("e1"), http.StatusOK)
			s.WantAnswer(paid("e1"), http.StatusOK)
			s.WantEffects(1)
		})
	}
}

// A session is the application's, too: whatever is done in it, its settings stay,
// those that have a value of their own among them.
func TestSessionKeepsItsSettings(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			s := openApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
				c.MaxConns = 1
				c.ConnConfig.DefaultQueryExecMode = mode
				maps.Copy(c.ConnConfig.RuntimeParams, map[string]string{
					"lock_timeout": "5s", "synchronous_commit": "off", "enable_seqscan": "on", "plan_cache_mode": "force_custom_plan",
				})
			})).openInbox()
			s.On(refuseBad)
			const settings = `select pg_backend_pid() || string_agg(name || '=' || setting, ' ' order by name) from pg_settings`
			before := queryOne[string](s, settings)
			s.Inbox.Workers = 1
			s.WantAnswer(paid("e1"), http.StatusOK)
			s.WantAnswer(paid("e1"), http.StatusOK)
			s.WantAnswer(paid("bad1"), http.StatusOK)
			s.WantAnswer(`{"id":"n1","type":"new"}`, http.StatusOK)
			s.Store(letter("e2", "o2", 0), letter("bad2", "o2", 0), letter("e3", "o2", 0))
			if o, err := s.Inbox.Accept(t.Context(), letter("e2", "o2", 0)); o != idem.Duplicate || err != nil {
				t.Errorf("Accept = %s, %v, want duplicate", o, err)
			}
			s.Drain(2)
			s.WantReplayed(idem.Filter{}, idem.Replayed{Failed: 2, Unhandled: 1})
			s.WantDiscarded(idem.Filter{IDs: []string{"bad2"}}, "a test", 1)
			s.Drain(1)
			s.wantRequeued(idem.Filter{IDs: []string{"bad1"}}, 1)
			s.wantPruned(s.First, 0)
			if diff := cmp.Diff(before, queryOne[string](s, settings)); diff != "" {
				t.Error("settings (-before +after):\n" + diff)
			}
		})
	}
}

func TestRoundTripsPerEvent(t *testing.T) {
	t.Parallel()
	var trips atomic.Int32
	s := openApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) { countTrips(c, &trips) }))
	s.On(pay) // one statement
	s.Exec(`create table processed (id text primary key)`)
	count := func(f func()) int32 {
		before := trips.Load()
		f()
		return trips.Load() - before
	}
	byHand := func(id string) func() {
		return func() {
			err := pgx.BeginFunc(t.Context(), s.Pool, func(tx pgx.Tx) error {
				if _, err := tx.Exec(t.Context(), `insert into processed values ($1) on conflict do nothing`, id); err != nil {
					return err
				}
				_, err := tx.Exec(t.Context(), `insert into effects (event, scope) values ($1, $2)`, id, "")
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	event := func(id string) func() { return func() { s.WantAnswer(paid(id), http.StatusOK) } }
	idem.Handle(&s.Notes.Routes, "declared", func(ctx context.Context, _ pgx.Tx, n *note) error {
		idem.ExecAtCommit(ctx, `insert into effects (event, scope) values ($1, $2)`, n.ID, "")
		return nil
	})
	declared := func() { s.WantAnswer(`{"id":"q1","type":"declared"}`, http.StatusOK) }
	outbox := outbox.New(s.Pool, "shop", nil)
	outbox.PollOnly = true // a notification is a round trip of its own, some time later
	idem.Handle(&s.Notes.Routes, "emitted", func(ctx context.Context, _ pgx.Tx, n *note) error {
		idem.ExecAtCommit(ctx, `insert into effects (event, scope) values ($1, $2)`, n.ID, "")
		return outbox.Emit(ctx, broker.Message{Type: "order.paid", Key: n.ID, Body: []byte(n.ID)})
	})
	emitted := func() { s.WantAnswer(`{"id":"m1","type":"emitted"}`, http.StatusOK) }
	s.WantAnswer(`{"id":"q0","type":"declared"}`, http.StatusOK)
	s.WantAnswer(`{"id":"m0","type":"emitted"}`, http.StatusOK)
	for i := range 3 { // statements are prepared by then
		event(fmt.Sprint("warm", i))()
		event(fmt.Sprint("warm", i))()
		byHand(fmt.Sprint("warm", i))()
	}
	for _, c := range []struct {
		name string
		run  func()
		want int32
	}{
		{"a new event: begin and mark, the handler's statement, commit", event("e1"), 3},
		{"a new event whose handler declares: begin and mark, the statement and commit", declared, 2},
		{"one that also emits a message: begin and mark, both rows and commit", emitted, 2},
		{"the same by hand: begin, insert, the statement, commit", byHand("e1"), 4},
		{"a duplicate: begin and mark, rollback and look", event("e1"), 2},
	} {
		if got := count(c.run); got != c.want {
			t.Errorf("%s: %d round trips, want %d", c.name, got, c.want)
		}
	}
	if got := queryOne[int](s, `select count(*) from idem_payloads where source = 'shop'`); got != 2 {
		t.Errorf("%d messages are stored, want 2", got)
	}
}

// The body goes into the database as it came, whatever is in it.
func TestPayloadIsKeptByteForByte(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	body := make([]byte, 256)
	for i := range body {
		body[i] = byte(i)
	}
	s.WantAnswer(string(body), http.StatusOK)
	if got := queryOne[[]byte](s, `select body from idem_payloads`); !bytes.Equal(got, body) {
		t.Errorf("kept as %q", got)
	}
}

// With PgBouncer and other poolers, pgx cannot keep prepared statements.
func TestInboxWorksInEveryQueryModeOfPgx(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			m := openInboxApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode }))
			m.Inbox.KeepPayloads = true
			var fixed atomic.Bool
			m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := pay(ctx, tx, n); err != nil || fixed.Load() {
					return err
				}
				return idem.NoRetry(errors.New("no such 'order' \\ $1"))
			})
			odd := letter(`it's \ $1 "odd"`, `o'1 \ $2`, 1)
			odd.Payload = append(odd.Payload, '\n')
			m.Store(odd, letter("e2", "o'1 \\ $2", 2), idem.Event{ID: "e3", Type: `it's \ $1 "new"`, Payload: []byte("\x00 not JSON")})
			if o, err := m.Inbox.Accept(t.Context(), odd); o != idem.Duplicate || err != nil {
				t.Errorf("Accept = %s, %v, want duplicate", o, err)
			}
			m.Inbox.Workers = 1
			m.Start(m.Inbox)
			got := map[string]idem.Outcome{}
			for range 2 {
				o := m.Next()
				got[o.Event.ID] = o.Outcome
			}
			if diff := cmp.Diff(map[string]idem.Outcome{odd.ID: idem.Parked, "e3": idem.Unhandled}, got); diff != "" {
				t.Error("outcomes (-want +got):\n" + diff)
			}
			m.wantOperations(odd)
			fixed.Store(true)
			if n, err := m.Inbox.Requeue(t.Context(), idem.Filter{Keys: []string{odd.Key}}); n != 1 || err != nil {
				t.Errorf("Requeue = %d, %v, want 1", n, err)
			}
			m.WantWorked(idem.Done, idem.Done)
			if n, err := m.Inbox.Discard(t.Context(), idem.Filter{IDs: []string{"e3"}}, "it's $1"); n != 1 || err != nil {
				t.Errorf("Discard = %d, %v, want 1", n, err)
			}
			m.WantEffects(2)
			m.Inbox.Retention.Parked, m.Inbox.Retention.Payloads = time.Hour, time.Hour
			m.Exec(`update idem_archive set received_at = now() - interval '10 days' where event like '%e2'`)
			m.Exec(`update idem_events set received_at = now() - interval '10 days' where event like '%e2'`)
			m.Exec(`update idem_events set received_at = '2020-01-01' where event not like '%e2'`)
			m.wantPruned(m.Inbox, 2)
			if n := queryOne[int](m, `select count(*) from (select event from idem_payloads union all select event from idem_archive) b`); n != 0 {
				t.Errorf("%d payloads are left", n)
			}
		})
	}
}

// The two settings that docs/postgres.md names are all that an inbox needs behind a pooler
// of transactions: its workers, their signs of life, retries and order work.
func TestAnInboxWorksBehindAPoolerOfTransactions(t *testing.T) {
	t.Parallel()
	url := idemtest.URL(t)
	pooler, err := pgproxy.NewPooler(t.Context(), url, 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pooler.Close(); err != nil {
			t.Error(err)
		}
	})
	config, err := pgxpool.ParseConfig(withSetting(url, "default_query_exec_mode=exec"))
	if err != nil || config.ConnConfig.DefaultQueryExecMode != pgx.QueryExecModeExec {
		t.Fatalf("the mode is %s, %v", config.ConnConfig.DefaultQueryExecMode, err)
	}
	config.MaxConns = 4
	pooler.Through(config)
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s := openInboxApp(t, pool)
	s.Inbox.PollOnly = true
	fails := make(chan struct{}, 1)
	fails <- struct{}{}
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		select {
		case <-fails: // the first attempt
			return errors.New("no such order")
		default:
			return pay(ctx, tx, n)
		}
	})
	for range 2 {
		for _, id := range []string{"e1", "e2", "e3"} {
			s.WantAnswer(paid(id), http.StatusOK)
		}
	}
	stop := s.Start(s.Inbox)
	s.Until(`select count(*) = 3 from idem_events where state = 'done'`)
	stop()
	s.WantEffects(3)
}

func TestConnectionBesideThePoolIsClosedWhenRunReturns(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	name := t.Name()
	worker := m.NewInbox(openPool(t, m.Pool.Config().ConnString(), func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["application_name"] = name }))
	worker.Poll = time.Hour
	stop := m.Start(worker)
	pid := m.beside(engineOf(worker).Pool())
	stop()
	m.Until(`select not exists (select from pg_stat_activity where pid = $1)`, pid)
	m.Until(`select not exists (select from idem_workers)`)
}

func TestWorkersWakeForWhatTheirOwnProcessStores(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.On(pay)
	m.Inbox.Poll, m.Inbox.PollOnly = time.Hour, true // so that nothing else wakes them
	m.Start(m.Inbox)
	for n := range 5 {
		m.Store(letter(fmt.Sprint(n), fmt.Sprint(n%2), 0))
		m.WantWorked(idem.Done)
	}
}

// One wake-up is enough for all: who takes as much as it can wakes the next.
func TestRunsOfOneInboxWakeEachOther(t *testing.T) {
	t.Parallel()
	const runs, workers, events = 3, 2, 24
	m := openInboxApp(t, poolOf(t, runs*workers+2))
	m.Inbox.Workers = workers
	m.Inbox.Poll, m.Inbox.PollOnly = time.Hour, true
	var mu sync.Mutex
	entered, all := 0, make(chan struct{})
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		mu.Lock()
		if entered++; entered == runs*workers {
			close(all)
		}
		mu.Unlock()
		<-all // every worker of every Run is at work
		return pay(ctx, tx, n)
	})
	for range runs {
		m.Start(m.Inbox)
	}
	var together []idem.Event
	for n := range events - 1 {
		together = append(together, letter(fmt.Sprint(n), fmt.Sprint(n), 0))
	}
	m.storeTogether(together...) // and a first one: two wake-ups for three
	for range events {
		m.WantWorked(idem.Done)
	}
	m.WantEffects(events)
}

// Claims look for what is due after what they have found before. An event that becomes
// due when a long handler ends is not due since that began.
func TestNextEventOfAnEntityIsDueWhenTheFirstIsDone(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.Inbox.Workers = 2
	m.Exec(`
		create table promoted (event text, due_at timestamptz);
		create table ended (at timestamptz);
		create function note() returns trigger language plpgsql as $$ begin
			insert into promoted values (new.event, new.due_at);
			return null;
		end $$;
		create trigger note after update on idem_payloads for each row when (old.due_at is null and new.due_at is not null) execute function note()`)
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "e1" {
			if _, err := tx.Exec(ctx, `insert into ended values (clock_timestamp())`); err != nil {
				return err
			}
		}
		return pay(ctx, tx, n)
	})
	m.Store(letter("e1", "o1", 1), letter("e2", "o1", 2))
	m.Drain(2)
	if !queryOne[bool](m, `select bool_and(due_at >= (select at from ended)) from promoted where event = 'notes//e2'`) {
		t.Error("e2 is due before e1 is done: claims that have looked further do not see it for seconds")
	}
}

var queryModes = []pgx.QueryExecMode{
	pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
	pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
}

// countTrips has a pool of one connection count its round trips.
func countTrips(c *pgxpool.Config, trips *atomic.Int32) {
	dial := c.ConnConfig.DialFunc
	c.ConnConfig.TLSConfig, c.ConnConfig.Fallbacks = nil, nil // a message of TLS is no round trip
	c.MaxConns = 1
	c.ShouldPing = func(context.Context, pgxpool.ShouldPingParams) bool { return false } // on a slow machine
	c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return &tripCounter{Conn: conn, trips: trips}, err
	}
}

// tripCounter counts round trips: writes that are followed by a read.
type tripCounter struct {
	net.Conn
	trips   *atomic.Int32
	written atomic.Bool
}

func (c *tripCounter) Write(p []byte) (int, error) {
	c.written.Store(true)
	return c.Conn.Write(p)
}

func (c *tripCounter) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.written.Swap(false) {
		c.trips.Add(1)
	}
	return n, err
}

// wantOperations looks at a parked event, one that it blocks, and an unhandled
// one.
func (m *app) wantOperations(parked idem.Event) {
	m.Helper()
	stats, err := m.Inbox.Stats(m.Context())
	want := idem.Stats{
		Pending: idem.Backlog{Events: 1}, Unhandled: idem.Backlog{Events: 1}, Parked: idem.Backlog{Events: 1}, BlockedKeys: 1,
	}
	if diff := cmp.Diff(want, stats, cmpopts.IgnoreFields(idem.Backlog{}, "Oldest")); diff != "" || err != nil {
		m.Errorf("Stats: %v (-want +got):\n%s", err, diff)
	}
	for s, err := range m.Inbox.List(m.Context(), idem.Filter{States: []idem.State{idem.StateParked}, Types: []string{"paid"}}) {
		want := idem.StoredEvent{Event: parked, State: idem.StateParked, Attempts: 1, LastError: `no such 'order' \ $1`}
		if diff := cmp.Diff(want, s, cmpopts.IgnoreFields(idem.StoredEvent{}, "ReceivedAt", "DueAt")); diff != "" || err != nil {
			m.Errorf("List: %v (-want +got):\n%s", err, diff)
		}
	}
	blocked, _, err := operator.New(m.Inbox, "").Blocked(m.Context(), 100)
	if err != nil || len(blocked) != 1 || blocked[0].ID != parked.ID || blocked[0].Waiting != 1 {
		m.Errorf("Blocked = %+v, %v, want %s with one waiting", blocked, err, parked.ID)
	}
	if o, err := m.Inbox.DryRun(m.Context(), parked); o != idem.Retrying || err == nil {
		m.Errorf("DryRun = %s, %v, want failed", o, err)
	}
}

// withSetting adds a setting to a connection string of either form.
func withSetting(url, setting string) string {
	switch {
	case !strings.Contains(url, "://"):
		return url + " " + setting
	case strings.Contains(url, "?"):
		return url + "&" + setting
	}
	return url + "?" + setting
}

// beside waits until one connection is beside those of a pool that is not in use, and
// returns its process.
func (s *app) beside(pool *pgxpool.Pool) int {
	s.Helper()
	last := 0 // found twice: the pool may open a connection while it is looked at
	for deadline := time.Now().Add(patience); ; pause() {
		own, idle := []uint32{}, pool.AcquireAllIdle(s.Context())
		for _, c := range idle {
			own = append(own, c.Conn().PgConn().PID())
		}
		all := int(pool.Stat().TotalConns()) == len(own)
		found := queryOne[[]int](s, `select array_agg(pid) from pg_stat_activity where application_name = $1 and pid <> all ($2)`,
			pool.Config().ConnConfig.RuntimeParams["application_name"], own)
		for _, c := range idle {
			c.Release()
		}
		if all && len(found) == 1 && found[0] == last {
			return last
		}
		last = 0
		if all && len(found) == 1 {
			last = found[0]
		}
		if time.Now().After(deadline) {
			s.Fatalf("%d connections are beside the pool, want 1", len(found))
		}
	}
}

// listens has an element for each connection that listens.
type listens chan bool

func (listens) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, listens(nil), strings.HasPrefix(data.SQL, "listen"))
}

func (l listens) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	if ctx.Value(listens(nil)) == true && data.Err == nil {
		l <- true
	}
}
