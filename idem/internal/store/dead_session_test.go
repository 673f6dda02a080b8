package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

const gone = 99 // a worker without a row

// A process that was stopped or cut off leaves its session, and Postgres does not notice.
func TestOnlyTheSessionsOfWorkersWithoutARowAreEnded(t *testing.T) {
	t.Parallel()
	marked := func(source string, claim int, worker int64) func(context.Context, pgx.Tx) error {
		return func(ctx context.Context, tx pgx.Tx) error {
			e := event("a", "o1")
			e.Source = source
			var s pgtx.Session
			b := &pgx.Batch{}
			store.MarkStored(b, e, store.Stored{Claim: claim, Worker: worker}, &s)
			return tx.SendBatch(ctx, b).Close()
		}
	}
	lock := func(sql string) func(context.Context, pgx.Tx) error {
		return func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, sql)
			return err
		}
	}
	for why, c := range map[string]struct {
		session func(context.Context, pgx.Tx) error
		older   time.Duration
		ended   int
	}{
		"its worker has no row":                     {marked("s", 1, gone), 0, 1},
		"it is not old enough":                      {marked("s", 1, gone), time.Hour, 0},
		"its worker is alive":                       {marked("s", 1, alive), 0, 0},
		"a worker of another source":                {marked("t", 1, gone), 0, 0},
		"a lock of the application's":               {lock(`select pg_advisory_xact_lock_shared(1), pg_advisory_xact_lock_shared(1, 2)`), 0, 0},
		"one that excludes others":                  {lock(`select pg_advisory_xact_lock(hashtext('idem_workers'::regclass::oid || 's'), hashint8(99))`), 0, 0},
		"its negative half, which is a large objid": {marked("s", 1, -gone), 0, 1},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			d := with(t, "a o1 pending due claimed")
			d.exec(`insert into idem_events (event, type, key, state, starts) values ('t//a', 'paid', 'o1', 'pending', 1)`)
			conn, err := pgx.ConnectConfig(t.Context(), d.Config().ConnConfig)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(context.Background())
			tx, err := conn.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := c.session(t.Context(), tx); err != nil {
				t.Fatal(err)
			}
			dead, err := store.FindDeadSessions(t.Context(), d, "s")
			if err != nil {
				t.Fatal(err)
			}
			ended, hidden, err := store.EndDeadSessions(t.Context(), d, dead, c.older)
			if diff := cmp.Diff([]int{c.ended, 0}, []int{ended, hidden}); diff != "" || err != nil {
				t.Errorf("ended and hidden, of %v: %v (-want +got):\n%s", dead, err, diff)
			}
			if err := tx.Commit(t.Context()); (err != nil) != (c.ended > 0) {
				t.Errorf("its COMMIT: %v", err)
			}
		})
	}
}

// It has written its row again, and its transaction may be another one by now.
func TestASessionIsSparedThatHasEndedItsTransactionSinceItWasFound(t *testing.T) {
	t.Parallel()
	d := with(t, "a o1 pending due claimed")
	conn, err := d.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var s pgtx.Session
	b := &pgx.Batch{}
	store.MarkStored(b, event("a", "o1"), store.Stored{Claim: 1, Worker: gone}, &s)
	if err := tx.SendBatch(t.Context(), b).Close(); err != nil {
		t.Fatal(err)
	}
	dead, err := store.FindDeadSessions(t.Context(), d, "s")
	if err != nil || len(dead) != 1 {
		t.Fatalf("found %v, %v, want one", dead, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if tx, err = conn.Begin(t.Context()); err != nil { // of the same process of Postgres
		t.Fatal(err)
	}
	if ended, hidden, err := store.EndDeadSessions(t.Context(), d, dead, 0); ended != 0 || hidden != 0 || err != nil {
		t.Errorf("ended %d, hidden %d, %v", ended, hidden, err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Error(err)
	}
}

// Each process looks every ten seconds, and one look at a time is enough.
func TestOneLookAtATimeIsMadeForWhatIsLeftBehind(t *testing.T) {
	t.Parallel()
	d := with(t, "a o1 pending")
	d.inTx(func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('s', t::oid::bigint)) from unnest('{idem_payloads,idem_workers}'::regclass[]) t`)
		if err != nil {
			return err
		}
		if n, err := store.PromoteStuck(ctx, d, "s", false); n != 0 || err != nil {
			t.Errorf("beside another look %d are promoted, %v", n, err)
		}
		if dead, err := store.FindDeadSessions(ctx, d, "s"); len(dead) > 0 || err != nil {
			t.Errorf("beside another look %v are found, %v", dead, err)
		}
		return nil
	})
	if n, err := store.PromoteStuck(t.Context(), d, "s", false); n != 1 || err != nil {
		t.Errorf("afterwards %d are promoted, %v, want one", n, err)
	}
}
