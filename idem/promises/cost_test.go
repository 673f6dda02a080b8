//go:build long && !race

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/oncall/doctor"
	"github.com/paghooks/paghooks/internal/postgres"
)

// Somebody has deleted the rows, and connections have kept the plans that Postgres made then.
func TestTheDoctorsRemedyMakesPlansGoodAgain(t *testing.T) {
	t.Parallel()
	s := openApp(t, idemtest.Pool(t))
	s.execEach(vacuum + ";" + analyze)
	remedies := func() (all []string) {
		found, err := doctor.Check(t.Context(), s.Pool)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if f.Check == "plans" {
				all = append(all, f.Command)
			}
		}
		return all
	}
	conn := s.connect("auto")
	look := func(id string) read {
		return s.reads(conn, func(ctx context.Context, db store.DB, e store.Event) error {
			return queues(func(b *pgx.Batch, e store.Event) { store.Promote(b, e.Lane(), new(bool)) })(ctx, db, e)
		}, id)
	}
	for range 7 { // from the sixth time on the plan is one for any arguments
		look("p0")
	}
	s.execEach(fillDone + ";" + fillPending + "; analyze idem_events")
	found := remedies()
	if len(found) != 1 {
		t.Fatalf("without the rows it says %q, want one remedy", found)
	}
	s.Exec(found[0])
	if again := remedies(); again != nil {
		t.Errorf("after its remedy it says %q", again)
	}
	if got := look("p50000"); got.Through > 0 || got.ByIndex > 1000 {
		t.Errorf("after the remedy: %s", got)
	}
}

// A connection keeps the plans of its statements, and those that Postgres made
// while the tables were empty are used when they are full. Whatever was in the
// tables, and whatever Postgres knows of it: what deliveries and workers execute
// goes along indexes.
func TestDeliveriesAndWorkersNeverReadATableThrough(t *testing.T) {
	t.Parallel()
	for name, sql := range map[string]struct{ planned, filled string }{
		"planned when new":         {"", fillDone + ";" + fillPending},
		"planned when all is done": {fillDone + ";" + vacuum + ";" + analyze, fillPending},
		"planned when drained": {
			fillPending + "; delete from idem_payloads where source <> ''; update idem_events set state = 'done', event = event || 'd';" + vacuum + ";" + analyze,
			fillDone + ";" + fillPending,
		},
		"planned when full": {fillDone + ";" + fillPending + ";" + vacuum + ";" + analyze, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openApp(t, idemtest.Pool(t))
			s.runMigrations() // with the rows that keep the planner from thinking that the table is empty
			s.Exec(`do $$ declare part regclass; begin
				for part in select oid from pg_class where relnamespace = current_schema()::regnamespace and relkind = 'r' and relname ~ '^idem_(events|payloads)' loop
					execute format('alter table %s set (autovacuum_enabled = off)', part);
				end loop;
			end $$`)
			s.execEach(sql.planned)
			planners := map[string]*pgx.Conn{"auto": s.connect("auto"), "force_generic_plan": s.connect("force_generic_plan")}
			if os.Getenv("IDEM_TEST_PARTITIONED") == "1" {
				delete(planners, "force_generic_plan") // which docs/partitioned.sql says not to set
			}
			for _, conn := range planners {
				for range 7 { // from the sixth time on the plan is one for any arguments
					for _, verb := range verbs {
						s.reads(conn, verb.do, "p0")
					}
				}
			}
			s.execEach(sql.filled)
			for mode, conn := range planners {
				for _, verb := range verbs {
					most := 1000
					if verb.name == crowd { // it looks at 2,000 due events at once, once in some searches
						most += 2000
					}
					if got := s.reads(conn, verb.do, "p50000"); got.Through > 0 || got.ByIndex > most {
						t.Errorf("%s, %s: %s", verb.name, mode, got)
					}
				}
			}
		})
	}
}

// Many events arrived at once behind parked ones, and Postgres has no statistics yet.
// Workers look every minute, and have some seconds, for those that wait for nothing.
func TestEventsThatWaitForNothingAreFoundAlongAnIndex(t *testing.T) {
	t.Parallel()
	s := openApp(t, idemtest.Pool(t))
	s.Exec(`insert into idem_events (event, type, key, state)
			select 'notes//' || n, 'paid', n % 1000, case when n < 1000 then 'parked' else 'pending' end from generate_series(0, 4999) n;
		insert into idem_payloads (event, source, lane, received_at, body)
			select event, 'notes', 'notes//' || key, now() + case state when 'pending' then interval '1 second' else interval '0' end, '{}' from idem_events`)
	promote := func(ctx context.Context, db store.DB, _ store.Event) error {
		_, err := store.PromoteStuck(ctx, db, "notes", true)
		return err
	}
	if got := s.reads(s.connect("auto"), promote, "p0"); got.Through+got.ByIndex > 50_000 {
		t.Errorf("5,000 events: %s", got)
	}
}

// A plan for the arguments of one claim takes longer than the claim. Where many events
// wait, Postgres would take it for the cheaper one each time.
func TestClaimIsPlannedOnce(t *testing.T) {
	t.Parallel()
	s := openApp(t, idemtest.Pool(t))
	conn := s.connect("auto")
	for range 10 {
		if _, err := store.ClaimEvents(t.Context(), conn, store.Search{Source: "notes", Limit: 4, Worker: 1, Crashed: 2}); err != nil {
			t.Fatal(err)
		}
	}
	var plans int // Postgres 13 does not count them
	err := conn.QueryRow(t.Context(), `select coalesce(sum((to_jsonb(p) ->> 'custom_plans')::int), 0) from pg_prepared_statements p
		where statement like '%skip locked%'`).Scan(&plans)
	if err != nil || plans > 0 {
		t.Errorf("10 claims made %d plans for their arguments, %v", plans, err)
	}
}

// Whoever looks at what waits must not slow down those who work. With these
// numbers the planner would rather read the events that are done, too.
func TestWhatIsAskedForPagesReadsNoEventThatIsDone(t *testing.T) {
	t.Parallel()
	const open = 3000 // not done, of 100,000
	s := openApp(t, idemtest.Pool(t))
	s.execEach(fillDone + `;
		insert into idem_events (event, type, key, state) select 'notes//p' || n, 'paid', 'order-' || n / 3, 'pending' from generate_series(1, 3000) n;
		insert into idem_payloads (event, source, lane, received_at, body)
		select event, 'notes', 'notes//' || key, received_at, '{"id":"p"}' from idem_events where state = 'pending';` + vacuum + ";" + analyze)
	f := store.Filter{Source: "notes", States: []string{store.Pending}}
	for name, ask := range map[string]func(context.Context, store.DB) (int, error){
		"TakeSnapshot": func(ctx context.Context, db store.DB) (int, error) {
			all, err := store.TakeSnapshot(ctx, db, "notes", 0)
			return int(all.Pending.Events), err
		},
		"ListBlocked": func(ctx context.Context, db store.DB) (int, error) {
			_, all, err := store.ListBlocked(ctx, db, "notes", 10)
			return int(all.Entities) * 3, err
		},
		"Find": func(ctx context.Context, db store.DB) (int, error) {
			keys, err := store.Find(ctx, db, f)
			return len(keys), err
		},
		"Count": func(ctx context.Context, db store.DB) (int, error) {
			n, err := store.Count(ctx, db, f)
			return int(n), err
		},
		"FindPage": func(ctx context.Context, db store.DB) (int, error) {
			keys, _, err := store.FindPage(ctx, db, f, store.Place{}, open)
			return len(keys), err
		},
	} {
		tx, err := s.connect("auto").Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const count = `select sum(seq_tup_read), sum(idx_tup_fetch) from pg_stat_xact_user_tables where relname ~ '^idem_events(_[0-9]+)?$'`
		var before, after read
		read := func(r *read) {
			if err := tx.QueryRow(t.Context(), count, pgx.QueryExecModeExec).Scan(&r.Through, &r.ByIndex); err != nil {
				t.Fatal(err)
			}
		}
		read(&before)
		if n, err := ask(t.Context(), tx); err != nil || n < open-2 || n > open+1 {
			t.Errorf("%s = %d, %v, want about %d", name, n, err, open)
		}
		read(&after)
		if after.Through > before.Through || after.ByIndex-before.ByIndex > open {
			t.Errorf("%s reads %d events through and %d by their keys, of %d that are not done", name, after.Through-before.Through, after.ByIndex-before.ByIndex, open)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEventOfAnInboxWritesLittleLogBeyondItsBody(t *testing.T) {
	t.Parallel()
	for name, lane := range map[string]int{"one event of each entity": 1, "three events of each entity, all at once": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLogged(t, lane)
			l.run(t, 200, 16) // statements are prepared and the first pages are there
			perEvent, split := l.cost(t, 1000, 16)
			t.Logf("%.0f bytes of WAL for each event beyond its body; for each event:\n%s", perEvent, split)
			most := float64(maxLog)
			if lane > 1 {
				most += maxLog / 4
			}
			if perEvent <= 0 || perEvent >= most {
				t.Errorf("each event takes %.0f bytes of WAL beyond its body, want less than %.0f", perEvent, most)
			}
		})
	}
}

// It does not run in parallel: others would use memory meanwhile.
func TestMemoryStaysFlat(t *testing.T) {
	s := newApp(t)
	s.On(pay)
	s.First.Observe = nil // here they keep what they are told
	s.First.Logger = slog.New(slog.DiscardHandler)
	s.acceptMany(1, 1000)
	before, goroutines := heap(), runtime.NumGoroutine()
	s.acceptMany(1001, 6000)
	if perEvent := (heap() - before) / 5000; perEvent > 100 {
		t.Errorf("each event left %d bytes behind", perEvent)
	}
	if n := runtime.NumGoroutine(); n > goroutines+8 {
		t.Errorf("%d goroutines are left, there were %d", n, goroutines)
	}
}

// However many events are done: a look reads those that are not.
func TestHealthReadsNoEventThatIsDone(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.runMigrations() // with the rows that keep the planner from thinking that the table is empty
	s.execEach(fillDone)
	const open = 20_000
	s.Exec(fmt.Sprintf(`insert into idem_events (event, type, key, state)
		select 'notes//u' || n, 'new', '', case n when 1 then 'pending' else 'unhandled' end from generate_series(1, %d) n`, open))
	s.Exec(`update idem_events set attempts = 1 where state = 'pending'`)
	s.Exec(`insert into idem_payloads (event, source, due_at, received_at, body)
		select event, 'notes', case state when 'pending' then now() - interval '1 hour' end, now() - interval '1 hour', convert_to(repeat('x', 600), 'UTF8') from idem_events where state <> 'done'`)
	s.execEach(analyze)
	for _, mode := range []string{"auto", "force_generic_plan"} {
		ask := func(ctx context.Context, db store.DB, e store.Event) error {
			now, err := store.TakeSnapshot(ctx, db, e.Source, 0)
			if now.Due < 59*time.Minute || now.Failing.Oldest < 59*time.Minute {
				t.Errorf("the oldest is due for %s, and fails for %s, want an hour", now.Due, now.Failing.Oldest)
			}
			return err
		}
		if got := s.reads(s.connect(mode), ask, "u1"); got.Through+got.ByIndex > 2*open+1000 {
			t.Errorf("%s: %s", mode, got)
		}
	}
}

// A nightly backup holds a snapshot open, so that what is done stays in the
// indexes. Workers do not walk along all of it for each claim.
func TestClaimsBesideAnOldSnapshotReadTheIndexOnce(t *testing.T) {
	t.Parallel()
	const events = 2000
	m := openInboxApp(t, poolOf(t, 4))
	m.On(func(context.Context, pgx.Tx, *note) error { return nil })
	m.Exec(fmt.Sprintf(`
		insert into idem_events (event, type, key, state) select 'notes//' || n, 'paid', n, 'pending' from generate_series(1, %d) n;
		insert into idem_payloads (event, source, lane, due_at, received_at, body)
			select 'notes//' || n, 'notes', 'notes//' || n, now() - interval '2 hours' + n * interval '1 second', now(), '{}' from generate_series(1, %d) n`, events, events))
	m.Exec(`analyze`)
	backup, err := m.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = backup.Rollback(context.Background()) }()
	if _, err := backup.Exec(t.Context(), `select count(*) from idem_payloads`); err != nil {
		t.Fatal(err)
	}
	pool := openPool(t, m.Pool.Config().ConnString(), func(c *pgxpool.Config) { c.MaxConns = 4 })
	stop := m.Start(m.NewInbox(pool))
	for range events {
		m.WantWorked(idem.Done)
	}
	stop()
	pool.Close() // its sessions say what they have read when they end
	const read = `from pg_stat_user_indexes where indexrelname = 'idem_payloads_due' and schemaname = current_schema()`
	m.Until(`select idx_tup_read > 0 ` + read)
	// Three workers, each claim along half of the dead entries on average: 600,000.
	if n := queryOne[int](m, `select idx_tup_read `+read); n > 50*events {
		t.Errorf("%d events took %d entries of the index", events, n)
	}
}

func (s *app) execEach(sql string) {
	s.Helper()
	for statement := range strings.SplitSeq(sql, ";") {
		s.Exec(statement)
	}
}

const (
	// 100,000 events that are done, and as many that are not, three of each entity.
	fillDone = `insert into idem_events (event, type, key, state, received_at)
		select 'notes//d' || n, 'paid', 'order-' || n / 3, 'done', now() - interval '1 day' from generate_series(1, 100000) n`
	fillPending = `insert into idem_events (event, type, key, state, starts)
		select 'notes//p' || n, 'paid', 'order-' || n / 3, 'pending', 1 from generate_series(1, 100000) n;
		insert into idem_payloads (event, source, lane, due_at, received_at, body)
		select event, 'notes', 'notes//' || key, case when right(event, 1) = '0' then now() - interval '1 hour' end, received_at, '{"id":"p"}'
		from idem_events where state = 'pending'`
	vacuum  = `vacuum idem_events; vacuum idem_payloads; vacuum idem_archive`
	analyze = `analyze idem_events; analyze idem_payloads; analyze idem_archive`
)

// connect returns a connection that plans in a mode of plan_cache_mode.
func (s *app) connect(mode string) *pgx.Conn {
	s.Helper()
	config := s.Pool.Config().ConnConfig
	config.RuntimeParams["plan_cache_mode"], config.RuntimeParams["statement_timeout"] = mode, "5s"
	conn, err := pgx.ConnectConfig(s.Context(), config)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// read returns the number of rows that a statement has read.
type read struct{ Through, ByIndex int }

func (r read) String() string {
	return fmt.Sprintf("it reads %d rows through and %d by an index", r.Through, r.ByIndex)
}

// reads executes a verb, and rolls it back.
func (s *app) reads(conn *pgx.Conn, do func(context.Context, store.DB, store.Event) error, id string) read {
	s.Helper()
	tx, err := conn.Begin(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	before := s.readSoFar(tx)
	if err := do(s.Context(), inTx{tx}, store.Event{Source: "notes", ID: id, Type: "paid", Key: "order-16666", Payload: []byte("{}")}); err != nil {
		s.Error(err) // it reads so much that it does not end in time
		return read{}
	}
	after := s.readSoFar(tx)
	return read{after.Through - before.Through, after.ByIndex - before.ByIndex}
}

// readSoFar returns the rows that a session has read, and not yet reported.
func (s *app) readSoFar(tx pgx.Tx) (r read) {
	s.Helper()
	const count = `select coalesce(sum(seq_tup_read), 0), coalesce(sum(idx_tup_fetch), 0) from pg_stat_xact_user_tables where relname like 'idem\_%'`
	if err := tx.QueryRow(s.Context(), count, pgx.QueryExecModeExec).Scan(&r.Through, &r.ByIndex); err != nil {
		s.Fatal(err)
	}
	return r
}

func queues(queue func(*pgx.Batch, store.Event)) func(context.Context, store.DB, store.Event) error {
	return func(ctx context.Context, db store.DB, e store.Event) error {
		b := &pgx.Batch{}
		queue(b, e)
		return db.SendBatch(ctx, b).Close()
	}
}

// crowd is the verb that looks at more due events than others.
const crowd = "ClaimEvents of a crowd"

// verbs are what deliveries and workers execute, and what looks one event up. Those that
// make rows come last: the tables stay as they are for the others.
var verbs = []struct {
	name string
	do   func(ctx context.Context, db store.DB, e store.Event) error
}{
	{"FindWhereabouts", func(ctx context.Context, db store.DB, e store.Event) error {
		_, err := store.FindWhereabouts(ctx, db, e.RowKey())
		if errors.Is(err, pgx.ErrNoRows) { // while the tables are empty
			return nil
		}
		return err
	}},
	{"WithID", func(ctx context.Context, db store.DB, e store.Event) error {
		_, err := store.WithID(ctx, db, e.Source, e.ID)
		return err
	}},
	{"ClaimEvents", func(ctx context.Context, db store.DB, e store.Event) error {
		_, err := store.ClaimEvents(ctx, db, store.Search{Source: e.Source, Limit: 8, Worker: 1, Crashed: 2, WithCrashed: true})
		return err
	}},
	{"ClaimEvents from a position", func(ctx context.Context, db store.DB, e store.Event) error {
		search := store.Search{Source: e.Source, Limit: 8, Worker: 1, Crashed: 2, After: time.Now().Add(-30 * time.Minute)}
		_, err := store.ClaimEvents(ctx, db, search)
		return err
	}},
	{crowd, func(ctx context.Context, db store.DB, e store.Event) error {
		_, err := store.ClaimEvents(ctx, db, store.Search{Source: e.Source, Limit: 8, Worker: 1, Crashed: 2, Crowd: true})
		return err
	}},
	{"ClaimEvent", func(ctx context.Context, db store.DB, e store.Event) error {
		_, _, err := store.ClaimEvent(ctx, db, e.RowKey(), 1)
		return err
	}},
	{"IsOpen", func(ctx context.Context, db store.DB, e store.Event) error {
		_, _, err := store.IsOpen(ctx, db, e.RowKey())
		return err
	}},
	{"MarkStored of a claim", marks(store.Stored{Claim: 1})},
	{"MarkStored and archive", marks(store.Stored{Archive: true})},
	{"MarkStored and wait", marks(store.Stored{Wait: true})},
	{"Promote", queues(func(b *pgx.Batch, e store.Event) { store.Promote(b, e.Lane(), new(bool)) })},
	{"Look", queues(func(b *pgx.Batch, e store.Event) { store.Look(b, e, new(store.Found)) })},
	{"EndClaim for later", func(ctx context.Context, db store.DB, e store.Event) error {
		_, err := store.EndClaim(ctx, db, store.Claim{Event: e, Number: 1}, store.End{State: store.Pending, Wait: time.Second, LastError: new("no such order")})
		return err
	}},
	{"EndClaim", func(ctx context.Context, db store.DB, e store.Event) error {
		_, err := store.EndClaim(ctx, db, store.Claim{Event: e, Number: 1}, store.End{State: store.Parked, Attempts: 1, LeavesLane: true})
		return err
	}},
	{"Mark", queues(func(b *pgx.Batch, e store.Event) { store.Mark(b, e, false, new(pgtx.Session)) })},
	{"Mark and archive", queues(func(b *pgx.Batch, e store.Event) { store.Mark(b, e, true, new(pgtx.Session)) })},
	{"StoreUnprocessed", func(ctx context.Context, db store.DB, e store.Event) error {
		_, err := store.StoreUnprocessed(ctx, db, e, store.Unhandled, nil, false)
		return err
	}},
	{"InsertPending", func(ctx context.Context, db store.DB, e store.Event) error {
		_, err := store.InsertPending(ctx, db, []store.Incoming{{Event: e}, {Event: store.Event{Source: e.Source, ID: "new", Payload: []byte("{}")}}})
		return err
	}},
	{"Revive", func(ctx context.Context, db store.DB, e store.Event) error {
		_, err := store.Revive(ctx, db, store.Incoming{Event: e})
		return err
	}},
}

func marks(how store.Stored) func(context.Context, store.DB, store.Event) error {
	return queues(func(b *pgx.Batch, e store.Event) { store.MarkStored(b, e, how, new(pgtx.Session)) })
}

// newLogged starts an inbox with its workers on a Postgres that logs changes
// and no images of pages: how many of those there are depends on how often it
// makes checkpoints, and not on the events.
func newLogged(t testing.TB, lane int) *logged {
	t.Helper()
	cluster := &postgres.Cluster{}
	if err := cluster.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			t.Error(err)
		}
	})
	config, err := pgxpool.ParseConfig(cluster.URL())
	if err != nil {
		t.Fatal(err)
	}
	config.MaxConns = 16
	l := &logged{lane: lane, done: make(chan struct{}, 1<<20)}
	if l.pool, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.pool.Close)
	if err := idem.Migrate(t.Context(), l.pool); err != nil {
		t.Fatal(err)
	}
	if got := logOne[string](t, l, `select current_setting('full_page_writes')`); got != "off" {
		t.Fatalf("full_page_writes is %s", got)
	}
	for _, sql := range []string{`alter system set autovacuum = off`, `select pg_reload_conf()`} {
		if _, err := l.pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	source := &notes{}
	idem.Handle(&source.Routes, "paid", nothing) // what a handler writes is its own
	l.inbox = idem.NewInbox(l.pool, source)
	l.inbox.Observe = func(_ context.Context, o idem.Observation) {
		if o.Outcome == idem.Done {
			l.done <- struct{}{}
		}
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- l.inbox.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return l
}

// logged is the cost of events in Postgres's log, from arrival to done.
type logged struct {
	pool   *pgxpool.Pool
	inbox  *idem.Inbox
	done   chan struct{}
	events int
	lane   int // events of each entity
}

// run has n events delivered, so many at once, and waits until they are done.
func (l *logged) run(t testing.TB, n, at int) {
	t.Helper()
	var next atomic.Int64
	var deliverers sync.WaitGroup
	for range at {
		deliverers.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				id := fmt.Sprintf("evt_05b708f961d739ea7eba7e4db318f621&%d", l.events+int(i))
				body := fmt.Appendf(nil, `{"id":%q,"type":"paid","order":"pay_%010d","pad":"`, id, (l.events+int(i))/l.lane)
				body = append(body, strings.Repeat("x", walBody-len(body)-2)+`"}`...)
				if outcome, err := l.inbox.Accept(t.Context(), identify(body)); outcome != idem.Pending || err != nil {
					t.Errorf("Accept = %s, %v", outcome, err)
					l.done <- struct{}{}
				}
			}
		})
	}
	deliverers.Wait()
	for range n {
		<-l.done
	}
	l.events += n
}

// cost is the bytes of log that each of n events takes beyond its body, and
// where they go, as far as this Postgres tells.
func (l *logged) cost(t testing.TB, n, at int) (perEvent float64, split string) {
	t.Helper()
	start := logOne[string](t, l, logEnd)
	l.run(t, n, at)
	end := logOne[string](t, l, logEnd)
	total := logOne[float64](t, l, `select pg_wal_lsn_diff($2::pg_lsn, $1::pg_lsn)::float8`, start, end)
	if logOne[bool](t, l, `select exists (select from pg_available_extensions where name = 'pg_walinspect')`) {
		if _, err := l.pool.Exec(t.Context(), `create extension if not exists pg_walinspect`); err != nil {
			t.Fatal(err)
		}
		split = logOne[string](t, l, `select string_agg(format('%s: %s records, %s B', "resource_manager/record_type",
			round(count / $3::numeric, 2), round(combined_size::numeric / $3)), E'\n' order by combined_size desc)
			from pg_get_wal_stats($1::pg_lsn, $2::pg_lsn, true) where count > 0`, start, end, n)
	}
	return total/float64(n) - walBody, split
}

// walBody is the size in bytes of the bodies of these tests: what Asaas sends of
// a payment, and less than what Postgres compresses.
const walBody = 1500

func logOne[V any](t testing.TB, l *logged, sql string, args ...any) (v V) {
	t.Helper()
	if err := l.pool.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

const logEnd = `select pg_current_wal_insert_lsn()::text`

// maxLog is the size that an event of the inbox may take from arrival to done; a quarter
// more where events of an entity arrive together, and are held back a few times.
const maxLog = 2048

// acceptMany accepts events from the first number up to the last, eight at once. One that gets no connection within a
// second, on a machine that does much else, comes again, as from a provider.
func (s *app) acceptMany(first, last int) {
	s.Helper()
	var next atomic.Int64
	next.Store(int64(first) - 1)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for i := next.Add(1); i <= int64(last); i = next.Add(1) {
				outcome, err := s.First.Accept(s.Context(), identify([]byte(paid(fmt.Sprint(i)))))
				for again := 0; outcome == idem.Retrying && again < 5; again++ {
					outcome, err = s.First.Accept(s.Context(), identify([]byte(paid(fmt.Sprint(i)))))
				}
				if outcome != idem.Done || err != nil {
					s.Errorf("event %d: %s, %v", i, outcome, err)
				}
			}
		})
	}
	workers.Wait()
}
