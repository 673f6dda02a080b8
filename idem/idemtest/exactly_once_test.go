package idemtest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// send is an e-mail, which no rollback takes back.
func send(ctx context.Context, tx pgx.Tx, w *world, id string) error {
	w.mails = append(w.mails, id)
	return book(ctx, tx, w, id)
}

// ask asks somebody else's server, which does the same thing once for each key.
func ask(key func(id string) string) handler {
	return func(ctx context.Context, tx pgx.Tx, w *world, id string) error {
		w.server[key(id)] = id
		return book(ctx, tx, w, id)
	}
}

// promotion is what a worker sends after the handler, with COMMIT.
const promotion = `"update idem_payloads set due_at = clock_timestamp() where due_at is null and event = (select p.event…"`

// mistakes are handlers that lose or double an effect, and what is said about
// them.
var mistakes = map[string]struct {
	handler       handler
	effects       effects
	inline, inbox string
}{
	"it writes through the pool": {
		func(ctx context.Context, _ pgx.Tx, w *world, id string) error {
			_, err := w.pool.Exec(ctx, insertEffect, id)
			return err
		}, inTable,
		`Query of "commit", connection cut before it is sent: 2 effects of 1 events`,
		`Parse of ` + promotion + `, connection cut before it is sent: 2 effects of 1 events`,
	},
	"it writes through a connection of its own": {
		func(ctx context.Context, _ pgx.Tx, w *world, id string) error {
			conn, err := pgx.ConnectConfig(ctx, unproxied(w.pool))
			if err != nil {
				return err
			}
			defer conn.Close(ctx)
			_, err = conn.Exec(ctx, insertEffect, id)
			return err
		}, inTable,
		`Query of "commit", connection cut before it is sent: 2 effects of 1 events`,
		`Parse of ` + promotion + `, connection cut before it is sent: 2 effects of 1 events`,
	},
	"it ignores an error of the pool": {
		func(ctx context.Context, _ pgx.Tx, w *world, id string) error {
			_, _ = w.pool.Exec(ctx, insertEffect, id)
			return nil
		}, inTable,
		"StartupMessage, connection cut before it is sent: 0 effects of 1 events",
		"StartupMessage, connection cut before it is sent: 0 effects of 1 events",
	},
	"it swallows an SQL error": {
		func(ctx context.Context, tx pgx.Tx, w *world, id string) error {
			_, _ = tx.Exec(ctx, `update orders set paid = true`)
			return nil
		}, inTable,
		"delivery 1 fails without a fault: answered 503, retrying: idem: paid evt_1: the handler returned nil after an SQL error",
		"work on delivery 1 fails without a fault: retrying: idem: paid evt_1: the handler returned nil after an SQL error",
	},
	"it swallows an SQL error of a savepoint": {
		func(ctx context.Context, tx pgx.Tx, w *world, id string) error {
			_ = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, insertEffect+`, (null)`, id)
				return err
			})
			return nil
		}, inTable,
		"wrong effects without a fault: 0 effects of 1 events",
		"wrong effects without a fault: 0 effects of 1 events",
	},
	"it sends an e-mail": {
		send, inMails,
		`Parse of "insert into effects values ($1)", connection cut before it is sent: 2 effects of 1 events`,
		`Parse of "insert into effects values ($1)", connection cut before it is sent: 2 effects of 1 events`,
	},
	"its server knows the time": {
		ask(func(string) string { return fmt.Sprint(time.Now().UnixNano()) }), onServer,
		"2 effects of 1 events", "2 effects of 1 events",
	},
	"it counts in memory": {
		func(ctx context.Context, tx pgx.Tx, w *world, id string) error {
			w.count++
			return book(ctx, tx, w, id)
		}, inMemory,
		"2 effects of 1 events", "2 effects of 1 events",
	},
	"it relies on AfterCommit": {
		func(ctx context.Context, tx pgx.Tx, w *world, id string) error {
			idem.AfterCommit(ctx, func(context.Context) { w.count++ })
			return book(ctx, tx, w, id)
		}, inMemory,
		`Query of "commit", connection cut after it is sent and before its answer: 0 effects of 1 events`,
		`Execute of "commit", connection cut after it is sent and before its answer: 0 effects of 1 events`,
	},
	"it commits": {
		func(ctx context.Context, tx pgx.Tx, w *world, id string) error {
			_, err := tx.Exec(ctx, `commit`)
			return errors.Join(err, book(ctx, tx, w, id))
		}, inTable,
		"delivery 1 fails without a fault: answered 503, retrying: idem: paid evt_1: idem: the transaction is not the handler's to end",
		"work on delivery 1 fails without a fault: retrying: idem: paid evt_1: idem: the transaction is not the handler's to end",
	},
	"it commits, and begins again": {
		func(ctx context.Context, tx pgx.Tx, w *world, id string) error {
			_, err := tx.Exec(ctx, `commit; begin`)
			return errors.Join(err, book(ctx, tx, w, id))
		}, inTable,
		"delivery 1 fails without a fault: answered 503, retrying: idem: paid evt_1: idem: the transaction is not the handler's to end",
		"work on delivery 1 fails without a fault: retrying: idem: paid evt_1: idem: the transaction is not the handler's to end",
	},
	"it fails permanently once it has failed": {
		func(ctx context.Context, tx pgx.Tx, w *world, id string) error {
			if w.broken {
				return errors.New("broken")
			}
			err := book(ctx, tx, w, id)
			w.broken = err != nil
			return err
		}, inTable,
		"delivery 1 still fails when it is tried 5 times: answered 503, retrying: idem: paid evt_1: broken",
		"work on delivery 1 still fails when it is tried 5 times: retrying: idem: paid evt_1: broken",
	},
	"it takes a lost connection for the end": {
		func(ctx context.Context, tx pgx.Tx, w *world, id string) error {
			return idem.NoRetry(book(ctx, tx, w, id))
		}, inTable,
		"connection cut before it is sent: answered 200, parked: idem: paid evt_1: ",
		"connection cut before it is sent: parked: idem: paid evt_1: ",
	},
}

func TestExactlyOncePassesAnAsaasHandler(t *testing.T) {
	t.Parallel()
	paymentIsAddedOnce(t)
}

// unproxied is how a program that only knows the connection string connects.
func unproxied(pool *pgxpool.Pool) *pgx.ConnConfig {
	config := pool.Config().ConnConfig
	config.AfterNetConnect = nil
	return config
}

// A delivery that is cut off comes again, and so is opened more often than once
// and once more at the end.
func TestExactlyOnceInboxCutsDeliveries(t *testing.T) {
	t.Parallel()
	opened := func(_ context.Context, _ *pgxpool.Pool, w *world) (int, error) {
		return max(w.source.opened-1, min(w.source.opened, 1)), nil
	}
	says := rehearse(t, idemtest.ExactlyOnceInbox, book, opened, "evt_1")
	first, _, _ := strings.Cut(says, "\n")
	if !strings.Contains(first, "idemtest: delivery 1, message 1, ") || !strings.HasSuffix(first, "connection cut before it is sent: 2 effects of 1 events") {
		t.Errorf("it says:\n%s\nwant that the delivery came twice", says)
	}
}

func TestExactlyOnceKnowsFaultsThatDidNotHappen(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	says := rehearse(t, idemtest.ExactlyOnce, func(ctx context.Context, tx pgx.Tx, w *world, id string) error {
		if runs.Add(1) == 1 {
			if _, err := tx.Exec(ctx, `select 'in the first run only'`); err != nil {
				return err
			}
		}
		return book(ctx, tx, w, id)
	}, inTable, "evt_1")
	if want := "connection cut before it is sent: that did not happen"; !strings.Contains(says, want) {
		t.Errorf("it says:\n%s\nwant %s", says, want)
	}
}

func TestExactlyOnceWantsACheckThatCanFail(t *testing.T) {
	t.Parallel()
	says := rehearse(t, idemtest.ExactlyOnce, book, func(context.Context, *pgxpool.Pool, *world) (int, error) { return 1, nil }, "evt_1")
	if want := "check is satisfied before anything is delivered"; !strings.Contains(says, want) {
		t.Errorf("it says:\n%s\nwant %s", says, want)
	}
}

func TestExactlyOnceStopsAfterThreeFailures(t *testing.T) {
	t.Parallel()
	says := rehearse(t, idemtest.ExactlyOnce, send, inMails, "evt_1")
	if got := strings.Count(says, "2 effects of 1 events"); got != 3 || !strings.Contains(says, "the rest is not tried") {
		t.Errorf("%d failures:\n%s\nwant 3 and a last word", got, says)
	}
}
