package idem_test

import (
	"context"
	"errors"
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
)

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
			other.on(pay)
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
					t.Errorf("%s: no wait was canceled %s\n%s", mode, way.name, s.logged())
				}
			})
		}
		one, canceled := pool()
		one.processor.Timeout = 4 * time.Second // it has to come to its COMMIT
		deliver("inline", one, canceled, one.processor.Accept)
		one, canceled = pool()
		deliver("inbox", one, canceled, one.inbox.Accept)
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
	s.on(func(context.Context, pgx.Tx, *note) error { return idem.NoRetry(errors.New("no such order")) })
	for _, id := range []string{"discarded", "requeued"} {
		if o, err := s.processor.Accept(t.Context(), letter(id, id, 1)); o != idem.Parked || err != nil {
			t.Fatalf("Accept = %s, %v, want parked", o, err)
		}
	}
	cutOff(t, primary, replica)
	other := openInboxApp(t, openPool(t, primary.URL(), cancelAtEnd))
	for id, change := range map[string]func(context.Context, idem.Filter) (int64, error){
		"discarded": func(ctx context.Context, f idem.Filter) (int64, error) { return other.inbox.Discard(ctx, f, "x") },
		"requeued":  other.inbox.Requeue,
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
	s.wantState("discarded", idem.StateParked)
	s.wantState("requeued", idem.StateParked)
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
			_, _ = s.pool.Exec(ctx, `select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep' and application_name = $1`, application)
		}
	}()
	return func() { cancel(); <-ended }
}
