package idem_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

// What the handler of the second of four events does wrong, in its first run.
func TestHandlerThatFailsBetweenOthersHurtsItsOwnEventOnly(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(ctx context.Context, tx pgx.Tx, forever chan struct{}) error{
		"returns an error":      func(context.Context, pgx.Tx, chan struct{}) error { return errors.New("no such order") },
		"panics":                func(context.Context, pgx.Tx, chan struct{}) error { panic("nil order") },
		"ends its goroutine":    func(context.Context, pgx.Tx, chan struct{}) error { runtime.Goexit(); return nil },
		"closes its connection": func(ctx context.Context, tx pgx.Tx, _ chan struct{}) error { return tx.Conn().Close(ctx) },
		"swallows an SQL error": func(ctx context.Context, tx pgx.Tx, _ chan struct{}) error {
			_, _ = tx.Exec(ctx, `select 1/0`)
			return nil
		},
		"rolls back with SQL": func(ctx context.Context, tx pgx.Tx, _ chan struct{}) error {
			_, err := tx.Exec(ctx, `rollback`)
			return err
		},
		"leaves rows open": func(ctx context.Context, tx pgx.Tx, _ chan struct{}) error {
			_, err := tx.Query(ctx, `select generate_series(1, 100000)`)
			return err
		},
		"waits for its context": func(ctx context.Context, _ pgx.Tx, _ chan struct{}) error { <-ctx.Done(); return ctx.Err() },
		"hangs":                 func(_ context.Context, _ pgx.Tx, forever chan struct{}) error { <-forever; return nil },
		"hangs in SQL": func(_ context.Context, tx pgx.Tx, _ chan struct{}) error {
			_, err := tx.Exec(context.Background(), `select pg_sleep(60)`)
			return err
		},
		"ends its goroutine when it is run again": onceMore(func(context.Context, pgx.Tx, chan struct{}) error { runtime.Goexit(); return nil }),
		"hangs when it is run again":              onceMore(func(_ context.Context, _ pgx.Tx, forever chan struct{}) error { <-forever; return nil }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newChained(t, "a", "b", "c", "d")
			c.exec(serializationFailures)
			forever := make(chan struct{})
			t.Cleanup(sync.OnceFunc(func() { close(forever) }))
			c.inbox.WorkTimeout = 2 * time.Second // for those that wait; the others are quicker
			var mended atomic.Bool
			c.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := pay(ctx, tx, n); err != nil || n.ID != "b" || mended.Load() {
					return err
				}
				return fail(ctx, tx, forever)
			})
			settled := c.work(t.Context())
			slices.Sort(settled) // another worker goes on before this one has told of b
			if diff := cmp.Diff([]string{"a is handled", "b is failed", "c is handled", "d is handled"}, settled); diff != "" {
				t.Error("what the workers settled (-want +got):\n" + diff)
			}
			c.wantEffects(3)
			c.wantRow("b", `(state, attempts, crashes, claimed)`, `(pending,1,,)`)
			mended.Store(true)
			c.due() // and Postgres has let go of it
			c.wantWork("b is handled")
			c.wantEachOnce("a", "b", "c", "d")
		})
	}
}

// onceMore fails like fail in the second run; the first one is undone at COMMIT.
func onceMore(fail func(context.Context, pgx.Tx, chan struct{}) error) func(context.Context, pgx.Tx, chan struct{}) error {
	return func(ctx context.Context, tx pgx.Tx, forever chan struct{}) error {
		var run int
		if err := tx.QueryRow(ctx, `select nextval('runs')`).Scan(&run); err != nil || run > 1 {
			return errors.Join(err, fail(ctx, tx, forever))
		}
		_, err := tx.Exec(ctx, `insert into again_at_commit default values`)
		return err
	}
}

// serializationFailures makes what has Postgres ask for another run, at once or
// at COMMIT, and a sequence that counts the runs that are undone, too.
const serializationFailures = `
	create sequence runs;
	create function again() returns trigger language plpgsql as $$ begin raise 'again' using errcode = '40001'; end $$;
	create table again_at_once (); create table again_at_commit ();
	create trigger again before insert on again_at_once for each row execute function again();
	create constraint trigger again after insert on again_at_commit deferrable initially deferred for each row execute function again()`

func TestPostgresMayAskToRunAHandlerBetweenOthersAgain(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"in the handler": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `insert into again_at_once default values`)
			return err
		},
		"in what it queued": func(ctx context.Context, _ pgx.Tx) error {
			idem.ExecAtCommit(ctx, `insert into again_at_once default values`)
			return nil
		},
		"at COMMIT": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `insert into again_at_commit default values`)
			return err
		},
		"at COMMIT, and then there are hooks": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `insert into again_at_commit default values`)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newChained(t, "a", "b", "c", "d")
			c.exec(serializationFailures)
			runs, hooked := map[string]int{}, 0
			c.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := pay(ctx, tx, n); err != nil {
					return err
				}
				runs[n.ID]++
				switch {
				case n.ID != "b":
				case runs[n.ID] < 3:
					return again(ctx, tx)
				case strings.HasSuffix(name, "hooks"):
					idem.AfterCommit(ctx, func(ctx context.Context) { hooked = queryOne[int](c.shop, `select count(*) from effects`) })
				}
				return nil
			})
			c.wantWork("a is handled", "b is handled", "c is handled", "d is handled")
			c.wantEachOnce("a", "b", "c", "d")
			c.wantRow("b", `(attempts, crashes)`, `(0,)`)
			if diff := cmp.Diff(map[string]int{"a": 1, "b": 3, "c": 1, "d": 1}, runs); diff != "" {
				t.Error("runs of the handler (-want +got):\n" + diff)
			}
			if strings.HasSuffix(name, "hooks") && hooked != 2 {
				t.Errorf("the hook saw %d effects, want 2: it runs before the next event begins", hooked)
			}
		})
	}
}

// What a handler sets for its transaction is over when that is, in every query
// mode of pgx: the next event begins as if it were alone.
func TestWhatAHandlerSetsIsOverWhenTheNextEventBegins(t *testing.T) {
	t.Parallel()
	sets := []string{
		`set transaction read only`, `set local search_path = pg_catalog`, `set local lock_timeout = 1`,
		`savepoint open`, `set constraints all deferred`, `create temporary table scratch () on commit drop`,
	}
	for _, mode := range queryModes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			c := openChained(t, func(c *poolConfig) { c.ConnConfig.DefaultQueryExecMode = mode })
			const look = `select concat_ws(' ', current_setting('transaction_read_only'), current_setting('transaction_isolation'),
				current_setting('search_path'), current_setting('lock_timeout'), to_regclass('scratch'))`
			want := ""
			var ids, settled []string
			c.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				var got string
				if err := tx.QueryRow(ctx, look).Scan(&got); err != nil {
					return err
				}
				if want == "" {
					want = got
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("event %s begins with other settings than the first one (-want +got):\n%s", n.ID, diff)
				}
				if err := pay(ctx, tx, n); err != nil || n.ID == "z" {
					return err
				}
				_, err := tx.Exec(ctx, sets[n.ID[0]-'a'])
				return err
			})
			for n := range sets {
				ids = append(ids, string(rune('a'+n)))
			}
			ids = append(ids, "z")
			for _, id := range ids {
				c.storeEach(id)
				settled = append(settled, id+" is handled")
			}
			c.wantWork(settled...)
			c.wantEachOnce(ids...)
		})
	}
}

// It could write into the next event's transaction, which is on its connection.
func TestTransactionThatAHandlerKeepsIsClosed(t *testing.T) {
	t.Parallel()
	c := newChained(t, "a", "b")
	var kept []pgx.Tx
	c.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		for _, tx := range kept {
			_, errExec := tx.Exec(ctx, insertEffect, "late")
			_, errQuery := tx.Query(ctx, `select 1`)
			errRow := tx.QueryRow(ctx, `select 1`).Scan(nil)
			_, errCopy := tx.CopyFrom(ctx, pgx.Identifier{"effects"}, []string{"event"}, pgx.CopyFromRows([][]any{{"late"}}))
			_, errBegin := tx.Begin(ctx)
			_, errPrepare := tx.Prepare(ctx, "late", `select 1`)
			errBatch := tx.SendBatch(ctx, &pgx.Batch{}).Close()
			objects := tx.LargeObjects()
			_, errObject := objects.Create(ctx, 0)
			for _, err := range []error{errExec, errQuery, errRow, errCopy, errBegin, errPrepare, errBatch, errObject} {
				if !errors.Is(err, pgx.ErrTxClosed) {
					t.Errorf("a transaction that is over answers %v", err)
				}
			}
		}
		savepoint, err := tx.Begin(ctx)
		kept = append(kept, tx, savepoint)
		return errors.Join(err, pay(ctx, savepoint, n))
	})
	c.wantWork("a is handled", "b is handled")
	c.wantEachOnce("a", "b")
	if n := queryOne[int](c.shop, `select count(*) from effects`); n != 2 {
		t.Errorf("there are %d effects, want 2", n)
	}
}
