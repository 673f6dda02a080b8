package idem_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/doctor"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

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
	{"FindClaims", func(ctx context.Context, db store.DB, e store.Event) error {
		_, err := store.FindClaims(ctx, db, store.Search{Source: e.Source, Limit: 8, Worker: 1, Crashed: 2, WithCrashed: true})
		return err
	}},
	{"FindClaims from a position", func(ctx context.Context, db store.DB, e store.Event) error {
		search := store.Search{Source: e.Source, Limit: 8, Worker: 1, Crashed: 2, After: time.Now().Add(-30 * time.Minute)}
		_, err := store.FindClaims(ctx, db, search)
		return err
	}},
	{"MarkStored of a claim", marks(store.Stored{States: []string{store.Pending}, Claim: 1})},
	{"MarkStored and archive", marks(store.Stored{States: []string{store.Pending}, Archive: true})},
	{"MarkStored and wait", marks(store.Stored{States: []string{store.Pending}, Wait: true})},
	{"Promote", queues(func(b *pgx.Batch, e store.Event) { store.Promote(b, e.Lane(), nil) })},
	{"Look", queues(func(b *pgx.Batch, e store.Event) { store.Look(b, e, new(store.Found)) })},
	{"EndClaim for later", func(ctx context.Context, db store.DB, e store.Event) error {
		_, err := store.EndClaim(ctx, db, store.Claim{Event: e, Number: 1}, store.End{State: store.Pending, Wait: time.Second, LastError: new("no such order")})
		return err
	}},
	{"EndClaim", func(ctx context.Context, db store.DB, e store.Event) error {
		_, err := store.EndClaim(ctx, db, store.Claim{Event: e, Number: 1}, store.End{State: store.Parked, Attempts: 1, Free: true})
		return err
	}},
	{"Mark", queues(func(b *pgx.Batch, e store.Event) { store.Mark(b, e, false, new(pgtx.Session)) })},
	{"Mark and archive", queues(func(b *pgx.Batch, e store.Event) { store.Mark(b, e, true, new(pgtx.Session)) })},
	{"StoreUnprocessed", func(ctx context.Context, db store.DB, e store.Event) error {
		_, err := store.StoreUnprocessed(ctx, db, e, store.Unhandled, nil, false)
		return err
	}},
	{"CountFailure", func(ctx context.Context, db store.DB, e store.Event) error {
		_, err := store.CountFailure(ctx, db, e, new("no such order"), 2, false)
		return err
	}},
	{"HoldNew", func(ctx context.Context, db store.DB, e store.Event) error {
		_, err := store.HoldNew(ctx, db, e)
		return err
	}},
	{"Hold", func(ctx context.Context, db store.DB, e store.Event) error {
		_, err := store.Hold(ctx, db, e)
		return err
	}},
	{"EndHeld", func(ctx context.Context, db store.DB, e store.Event) error {
		return store.EndHeld(ctx, db, e, store.Unhandled, nil, false)
	}},
	{"FindHeld", func(ctx context.Context, db store.DB, e store.Event) error {
		_, _, err := store.FindHeld(ctx, db, e.Source, store.Place{}, 100)
		return err
	}},
	{"Adopt", func(ctx context.Context, db store.DB, e store.Event) error {
		_, err := store.Adopt(ctx, db, e.Source)
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

// Somebody has deleted the rows, and connections have kept the plans that Postgres made then.
func TestTheDoctorsRemedyMakesPlansGoodAgain(t *testing.T) {
	t.Parallel()
	s := openApp(t, idemtest.Pool(t))
	s.execEach(vacuum + ";" + analyze)
	remedies := func() (all []string) {
		found, err := doctor.Check(t.Context(), s.pool)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if f.Check == "plans" {
				all = append(all, f.Remedy)
			}
		}
		return all
	}
	conn := s.connect("auto")
	look := func(id string) read {
		return s.reads(conn, func(ctx context.Context, db store.DB, e store.Event) error {
			return queues(func(b *pgx.Batch, e store.Event) { store.Promote(b, e.Lane(), nil) })(ctx, db, e)
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
	s.exec(found[0])
	if again := remedies(); again != nil {
		t.Errorf("after its remedy it says %q", again)
	}
	if got := look("p50000"); got.Through > 0 || got.ByIndex > 1000 {
		t.Errorf("after the remedy: %s", got)
	}
}

func marks(how store.Stored) func(context.Context, store.DB, store.Event) error {
	return queues(func(b *pgx.Batch, e store.Event) { store.MarkStored(b, e, how, new(pgtx.Session)) })
}

func queues(queue func(*pgx.Batch, store.Event)) func(context.Context, store.DB, store.Event) error {
	return func(ctx context.Context, db store.DB, e store.Event) error {
		b := &pgx.Batch{}
		queue(b, e)
		return db.SendBatch(ctx, b).Close()
	}
}

// inTx executes batches in its transaction also when they have their own.
type inTx struct{ pgx.Tx }

func (tx inTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	b.QueuedQueries = slices.DeleteFunc(b.QueuedQueries, func(q *pgx.QueuedQuery) bool {
		return strings.HasPrefix(q.SQL, "begin") || q.SQL == "commit"
	})
	return tx.Tx.SendBatch(ctx, b)
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
			s.runMigration("00001_idem.sql") // with the rows that keep the planner from thinking that the table is empty
			s.exec(`do $$ declare part regclass; begin
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
					if got := s.reads(conn, verb.do, "p50000"); got.Through > 0 || got.ByIndex > 1000 {
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
	s.exec(`insert into idem_events (event, type, key, state)
			select 'notes//' || n, 'paid', n % 1000, case when n < 1000 then 'parked' else 'pending' end from generate_series(0, 4999) n;
		insert into idem_payloads (event, source, lane, received_at, body)
			select event, 'notes', 'notes//' || key, now() + case state when 'pending' then interval '1 second' else interval '0' end, '{}' from idem_events`)
	promote := func(ctx context.Context, db store.DB, _ store.Event) error {
		_, err := store.PromoteStuck(ctx, db, "notes")
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
		if _, err := store.FindClaims(t.Context(), conn, store.Search{Source: "notes", Limit: 4, Worker: 1, Crashed: 2}); err != nil {
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

func (s *app) execEach(sql string) {
	s.Helper()
	for statement := range strings.SplitSeq(sql, ";") {
		s.exec(statement)
	}
}

// connect returns a connection that plans in a mode of plan_cache_mode.
func (s *app) connect(mode string) *pgx.Conn {
	s.Helper()
	config := s.pool.Config().ConnConfig
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
		"CountOpen": func(ctx context.Context, db store.DB) (int, error) {
			all, err := store.CountOpen(ctx, db, "notes")
			return int(all[0].Events), err
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
