//go:build long && !race

package promises_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/internal/postgres"
)

// Deliveries arrive and workers process while the primary is lost.
func TestPromotionOfASynchronousReplicaLosesNothingAcknowledged(t *testing.T) {
	t.Parallel()
	const events, keys = 400, 8
	primary, replica := pairOf(t, true)
	s := openOrders(t, primary.URL(), asUsual)
	stop := s.Start(s.Inbox)
	d := &sender{app: s, acknowledged: make(map[string]bool), quarter: make(chan struct{})}
	sent := d.send(t.Context(), events, keys)
	<-d.quarter
	if err := errors.Join(primary.Crash(t.Context()), replica.Promote(t.Context())); err != nil {
		t.Fatal(err)
	}
	acknowledged := d.soFar()
	stop()
	s = openOrders(t, replica.URL(), asUsual)
	const lost = `select count(*) from unnest($1::text[]) id where not exists (select from idem_events where event = 'notes//' || id)`
	if n := queryOne[int](s, lost, acknowledged); n > 0 {
		t.Errorf("%d of %d events that were acknowledged are lost", n, len(acknowledged))
	}
	d.to(s)
	s.Start(s.Inbox)
	sent.Wait()
	s.Until(nothingLeft)
	s.WantEffects(events)
	if n := queryOne[int](s, `select count(distinct event) from effects`); n != events {
		t.Errorf("%d events have an effect, want %d", n, events)
	}
}

// A commit that waits for a replica is there for everyone once the wait is
// broken off, though only on the primary: what comes again then must wait, too.
func TestPromotionLosesNoDuplicateThatWasAcknowledged(t *testing.T) {
	t.Parallel()
	for name, accept := range map[string]func(*app) func(context.Context, idem.Event) (idem.Outcome, error){
		"inline": func(s *app) func(context.Context, idem.Event) (idem.Outcome, error) { return s.First.Accept },
		"inbox":  func(s *app) func(context.Context, idem.Event) (idem.Outcome, error) { return s.Inbox.Accept },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary, replica := pairOf(t, true)
			s := openInboxApp(t, openPool(t, primary.URL(), asUsual))
			s.On(pay)
			if err := replica.CatchUp(t.Context(), primary); err != nil {
				t.Fatal(err)
			}
			cutOff(t, primary, replica)
			e := letter("e1", "a", 1)
			wait := func() (idem.Outcome, error) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				go func() { s.untilWaitingForReplica(); s.breakOff() }()
				return accept(s)(ctx, e)
			}
			if o, err := wait(); o.Acknowledged() {
				t.Errorf("the first delivery is %s, %v, and only the primary has it", o, err)
			}
			s.WantState("e1", map[string]idem.State{"inline": idem.StateDone, "inbox": idem.StatePending}[name])
			if o, err := wait(); o.Acknowledged() {
				t.Errorf("the second delivery is %s, %v, and only the primary has it", o, err)
			}
			if err := errors.Join(primary.Crash(t.Context()), replica.Promote(t.Context())); err != nil {
				t.Fatal(err)
			}
			s = openInboxApp(t, openPool(t, replica.URL(), asUsual))
			s.On(pay)
			s.WantState("e1", "")
			o, err := accept(s)(t.Context(), e)
			for n := 0; n < 20 && !o.Acknowledged(); n++ { // a first try waits a second for a connection, and the server has just started
				o, err = accept(s)(t.Context(), e)
			}
			if !o.Acknowledged() {
				t.Errorf("afterwards it is %s, %v", o, err)
			}
			s.Drain()
			s.WantEffects(1)
		})
	}
}

// What a replica had not received is gone, with its effects. Whoever delivers it
// again, the provider or a comparison with the provider's list, brings all of it
// back, and nothing twice.
func TestPromotionOfAnAsynchronousReplicaIsMadeUpForByDeliveringAgain(t *testing.T) {
	t.Parallel()
	const events, keys, received = 80, 8, 40
	primary, replica := pairOf(t, false)
	s := openOrders(t, primary.URL(), asUsual)
	s.storeInOrder(received, keys).Wait()
	s.Drain()
	if err := replica.CatchUp(t.Context(), primary); err != nil {
		t.Fatal(err)
	}
	cutOff(t, primary, replica)
	s.storeInOrder(events, keys).Wait() // the first ones are duplicates
	s.Drain()
	s.WantEffects(events)
	if err := errors.Join(primary.Crash(t.Context()), replica.Promote(t.Context())); err != nil {
		t.Fatal(err)
	}
	s = openOrders(t, replica.URL(), asUsual)
	s.WantEffects(received)
	s.storeInOrder(events, keys).Wait()
	s.Drain()
	s.WantEffects(events)
	wantEachOnceInOrder(s)
}

// Postgres is gone under a handler, for good: its worker is not held for ever, and
// what it held is the next process's.
func TestWorkerGivesUpWhatItCannotRecord(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	var down atomic.Bool
	m.On(func(_ context.Context, tx pgx.Tx, _ *note) error {
		down.Store(true)
		return tx.Conn().PgConn().Conn().Close()
	})
	m.Store(letter("e1", "o1", 1))
	worker := m.NewInbox(openPool(t, m.Pool.Config().ConnString(), func(c *pgxpool.Config) { takeDown(c, &down) }))
	stop := m.Start(worker)
	o := m.Next()
	if o.Outcome != idem.Retrying || !strings.Contains(o.Err.Error(), "the failure could not be recorded, and is counted once Postgres answers") {
		t.Errorf("outcome %s, %v, want retrying, counted later", o.Outcome, o.Err)
	}
	stop()
	m.WantRow("e1", `(state, attempts, claimed_by is null)`, `(pending,0,f)`)
}

// To a cancel, Postgres answers a commit that waits for its replica with success.
func TestCommitWhoseWaitForTheReplicaIsCanceledIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	primary, replica := pairOf(t, true)
	s := openInboxApp(t, openPool(t, primary.URL(), asUsual))
	if err := replica.CatchUp(t.Context(), primary); err != nil {
		t.Fatal(err)
	}
	cutOff(t, primary, replica)
	ways := []struct {
		name string
		set  func(*pgxpool.Config)
	}{
		{"by pgx, when the context ends", cancelAtEnd},
		{"by a person", idem.WatchCommits},
	}
	stop := s.cancelByHand(ways[1].name)
	var deliveries sync.WaitGroup
	for _, way := range ways {
		pool := func() (*app, *atomic.Int32) {
			canceled := new(atomic.Int32)
			other := openInboxApp(t, openPool(t, primary.URL(), func(c *pgxpool.Config) {
				c.ConnConfig.RuntimeParams["application_name"] = way.name
				c.ConnConfig.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
					if n.Code == "01000" {
						canceled.Add(1)
					}
				}
				way.set(c)
			}))
			other.On(pay)
			return other, canceled
		}
		deliver := func(mode string, s *app, canceled *atomic.Int32, accept func(context.Context, idem.Event) (idem.Outcome, error)) {
			deliveries.Go(func() {
				e := letter(mode+" "+way.name, mode+" "+way.name, 1)
				for round := range 2 { // a new event, and what comes again
					if o, err := accept(t.Context(), e); o.Acknowledged() || err == nil {
						t.Errorf("%s, canceled %s, delivery %d: %s, %v, and only the primary has it", mode, way.name, round+1, o, err)
					}
				}
				if canceled.Load() == 0 {
					t.Errorf("%s: no wait was canceled %s\n%s", mode, way.name, s.Logged())
				}
			})
		}
		one, canceled := pool()
		one.First.Timeout = 4 * time.Second // it has to come to its COMMIT
		deliver("inline", one, canceled, one.First.Accept)
		one, canceled = pool()
		deliver("inbox", one, canceled, one.Inbox.Accept)
	}
	deliveries.Wait()
	stop()
	if n := queryOne[int](s, `select count(*) from idem_events`); n != 4 {
		t.Errorf("the primary has %d events, want all 4", n)
	}
	if err := errors.Join(primary.Kill(t.Context()), replica.Promote(t.Context())); err != nil {
		t.Fatal(err)
	}
	s = openInboxApp(t, openPool(t, replica.URL(), asUsual))
	if n := queryOne[int](s, `select count(*) from idem_events`); n != 0 {
		t.Errorf("the replica has %d events, and nothing was to reach it", n)
	}
}

// A person is told that an event is discarded, and after a promotion it is processed.
func TestDiscardAndRequeueWhoseWaitForTheReplicaIsCanceledAreNotReportedAsDone(t *testing.T) {
	t.Parallel()
	primary, replica := pairOf(t, true)
	s := openInboxApp(t, openPool(t, primary.URL(), asUsual))
	s.On(func(context.Context, pgx.Tx, *note) error { return idem.NoRetry(errors.New("no such order")) })
	for _, id := range []string{"discarded", "requeued"} {
		if o, err := s.First.Accept(t.Context(), letter(id, id, 1)); o != idem.Parked || err != nil {
			t.Fatalf("Accept = %s, %v, want parked", o, err)
		}
	}
	cutOff(t, primary, replica)
	other := openInboxApp(t, openPool(t, primary.URL(), cancelAtEnd))
	for id, change := range map[string]func(context.Context, idem.Filter) (int64, error){
		"discarded": func(ctx context.Context, f idem.Filter) (int64, error) { return other.Inbox.Discard(ctx, f, "x") },
		"requeued":  other.Inbox.Requeue,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // it has to come to its COMMIT
		n, err := change(ctx, idem.Filter{IDs: []string{id}})
		cancel()
		if n != 0 || !errors.Is(err, pgtx.ErrUnknown) {
			t.Errorf("%s: %d, %v, and only the primary has it", id, n, err)
		}
	}
	if err := errors.Join(primary.Kill(t.Context()), replica.Promote(t.Context())); err != nil {
		t.Fatal(err)
	}
	s = openInboxApp(t, openPool(t, replica.URL(), asUsual))
	s.WantState("discarded", idem.StateParked)
	s.WantState("requeued", idem.StateParked)
}

// pairOf is a primary, and a replica that commits wait for if synchronous is set.
func pairOf(t *testing.T, synchronous bool) (primary, replica *postgres.Cluster) {
	t.Helper()
	primary = startCluster(t)
	replica, err := primary.Replica(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, replica)
	if synchronous {
		alter(t, primary, "synchronous_standby_names", "*", `select exists (select from pg_stat_replication where sync_state = 'sync')`)
	}
	return primary, replica
}

// alter changes a setting of a server, and waits until that is so.
func alter(t *testing.T, c *postgres.Cluster, name, value, until string) {
	t.Helper()
	conn := connectTo(t, c.URL())
	for _, sql := range []string{`alter system set ` + name + ` = '` + value + `'`, `select pg_reload_conf()`} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	wait(t, conn, until)
}

func connectTo(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func wait(t *testing.T, conn *pgx.Conn, until string) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; pause() {
		var yes bool
		if err := conn.QueryRow(t.Context(), until).Scan(&yes); err != nil {
			t.Fatal(err)
		}
		if yes {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("it never came true: " + until)
		}
	}
}

// sender delivers events until they are acknowledged, wherever the database is:
// those of every other entity to first, the rest to inbox.
type sender struct {
	mu           sync.Mutex
	app          *app
	acknowledged map[string]bool
	quarter      chan struct{} // closed when a quarter is acknowledged
}

func (d *sender) to(s *app) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.app = s
}

func (d *sender) send(ctx context.Context, events, keys int) *sync.WaitGroup {
	senders := new(sync.WaitGroup)
	for key := range keys {
		senders.Go(func() {
			for n := key; n < events; n += keys {
				for ctx.Err() == nil && !d.deliver(ctx, nth(n, keys), key%2 == 0) {
					pause()
				}
				d.note(nth(n, keys).ID, events)
			}
		})
	}
	return senders
}

func (d *sender) deliver(ctx context.Context, e idem.Event, inline bool) bool {
	d.mu.Lock()
	accept := d.app.Inbox.Accept
	if inline {
		accept = d.app.First.Accept
	}
	d.mu.Unlock()
	o, _ := accept(ctx, e)
	return o.Acknowledged()
}

func (d *sender) note(id string, events int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.acknowledged[id] = true
	if len(d.acknowledged) == events/4 {
		close(d.quarter)
	}
}

func (d *sender) soFar() (ids []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id := range d.acknowledged {
		ids = append(ids, id)
	}
	return ids
}

// cutOff has a replica miss what is committed from now on.
func cutOff(t *testing.T, primary, replica *postgres.Cluster) {
	t.Helper()
	alter(t, replica, "primary_conninfo", "", `select true`)
	wait(t, connectTo(t, primary.URL()), `select not exists (select from pg_stat_replication)`)
}

// untilWaitingForReplica waits until a commit waits for the replica.
func (s *app) untilWaitingForReplica() {
	for s.Context().Err() == nil {
		var waits bool
		const look = `select exists (select from pg_stat_activity where wait_event = 'SyncRep')`
		if err := s.Pool.QueryRow(s.Context(), look).Scan(&waits); err != nil || waits {
			return
		}
		pause()
	}
}

// breakOff ends the sessions that wait for the replica, as the loss of their
// client does.
func (s *app) breakOff() {
	_, _ = s.Pool.Exec(s.Context(), `select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`)
}

// cancelAtEnd has pgx send a cancel when a context ends, which is one of its two ways.
func cancelAtEnd(c *pgxpool.Config) {
	c.ConnConfig.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: patience}
	}
}

// cancelByHand cancels waits for the replica, as a person does, in the sessions of an
// application, until stop.
func (s *app) cancelByHand(application string) (stop func()) {
	ctx, cancel := context.WithCancel(s.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ; ctx.Err() == nil; pause() {
			_, _ = s.Pool.Exec(ctx, `select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep' and application_name = $1`, application)
		}
	}()
	return func() { cancel(); <-ended }
}
