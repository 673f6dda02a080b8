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

func TestExactlyOnceFindsTypicalMistakes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		handler handler
		effects effects
		says    string // "" for nothing
	}{
		"none: it writes through tx":            {book, inTable, ""},
		"none: its server knows the event's id": {ask(func(id string) string { return id }), onServer, ""},
		"none: it ignores an error of tx, which idem sees": {func(ctx context.Context, tx pgx.Tx, _ *world, id string) error {
			_, _ = tx.Exec(ctx, insertEffect, id)
			return nil
		}, inTable, ""},
		"it writes through the pool": {func(ctx context.Context, _ pgx.Tx, w *world, id string) error {
			_, err := w.pool.Exec(ctx, insertEffect, id)
			return err
		}, inTable, `Query of "commit", connection cut before it is sent: 2 effects of 1 events`},
		"it writes through a connection of its own": {func(ctx context.Context, _ pgx.Tx, w *world, id string) error {
			conn, err := pgx.ConnectConfig(ctx, unproxied(w.pool))
			if err != nil {
				return err
			}
			defer conn.Close(ctx)
			_, err = conn.Exec(ctx, insertEffect, id)
			return err
		}, inTable, `Query of "commit", connection cut before it is sent: 2 effects of 1 events`},
		"it ignores an error of the pool": {func(ctx context.Context, _ pgx.Tx, w *world, id string) error {
			_, _ = w.pool.Exec(ctx, insertEffect, id)
			return nil
		}, inTable, "StartupMessage, connection cut before it is sent: 0 effects of 1 events"},
		"it swallows an SQL error": {func(ctx context.Context, tx pgx.Tx, w *world, id string) error {
			_, _ = tx.Exec(ctx, `update orders set paid = true`)
			return nil
		}, inTable, "answered 503 without a fault: idem: paid evt_1: the handler returned nil after an SQL error"},
		"it swallows an SQL error of a savepoint": {func(ctx context.Context, tx pgx.Tx, w *world, id string) error {
			_ = pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
				_, err := tx.Exec(ctx, insertEffect+`, (null)`, id)
				return err
			})
			return nil
		}, inTable, "wrong effects without a fault: 0 effects of 1 events"},
		"it sends an e-mail":        {send, inMails, `Parse of "insert into effects values ($1)", connection cut before it is sent: 2 effects of 1 events`},
		"its server knows the time": {ask(func(string) string { return fmt.Sprint(time.Now().UnixNano()) }), onServer, "2 effects of 1 events"},
		"it counts in memory": {func(ctx context.Context, tx pgx.Tx, w *world, id string) error {
			w.count++
			return book(ctx, tx, w, id)
		}, inMemory, "2 effects of 1 events"},
		"it relies on AfterCommit": {func(ctx context.Context, tx pgx.Tx, w *world, id string) error {
			idem.AfterCommit(ctx, func(context.Context) { w.count++ })
			return book(ctx, tx, w, id)
		}, inMemory, `Query of "commit", connection cut after it is sent and before its answer: 0 effects of 1 events`},
		"it commits": {func(ctx context.Context, tx pgx.Tx, w *world, id string) error {
			_, err := tx.Exec(ctx, `commit`)
			return errors.Join(err, book(ctx, tx, w, id))
		}, inTable, "delivery 1 is answered 503 without a fault: idem: paid evt_1: idem: the transaction is not the handler's to end"},
		"it commits, and begins again": {func(ctx context.Context, tx pgx.Tx, w *world, id string) error {
			_, err := tx.Exec(ctx, `commit; begin`)
			return errors.Join(err, book(ctx, tx, w, id))
		}, inTable, "delivery 1 is answered 503 without a fault: idem: paid evt_1: idem: the transaction is not the handler's to end"},
		"it fails for ever once it has failed": {func(ctx context.Context, tx pgx.Tx, w *world, id string) error {
			if w.broken {
				return errors.New("broken")
			}
			err := book(ctx, tx, w, id)
			w.broken = err != nil
			return err
		}, inTable, "still answered 503 when it has come 5 times: idem: paid evt_1: broken"},
		"not found: its memory is lost with the process": {func(ctx context.Context, tx pgx.Tx, w *world, id string) error {
			if !w.seen[id] {
				w.seen[id] = true
				return send(ctx, tx, w, id)
			}
			return book(ctx, tx, w, id)
		}, inMails, ""},
		"not found: nobody looks at its effects": {send, inTable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			says := rehearse(t, c.handler, c.effects, "evt_1")
			if c.says == "" && says != "" || !strings.Contains(says, c.says) {
				t.Errorf("it says:\n%s\nwant %q", says, c.says)
			}
		})
	}
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

func TestExactlyOnceCutsEveryDelivery(t *testing.T) {
	t.Parallel()
	says := rehearse(t, func(ctx context.Context, tx pgx.Tx, w *world, id string) error {
		if id == "evt_2" {
			_, err := w.pool.Exec(ctx, insertEffect, id)
			return err
		}
		return book(ctx, tx, w, id)
	}, inTable, "evt_1", "evt_2")
	if want := `Query of "commit", connection cut before it is sent: 3 effects of 2 events`; strings.Contains(says, "delivery 1") || !strings.Contains(says, want) {
		t.Errorf("it says:\n%s\nwant %s, and nothing about delivery 1", says, want)
	}
}

func TestExactlyOnceKnowsFaultsThatDidNotHappen(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	says := rehearse(t, func(ctx context.Context, tx pgx.Tx, w *world, id string) error {
		if runs.Add(1) == 1 {
			if _, err := tx.Exec(ctx, `select 'in the first run only'`); err != nil {
				return err
			}
		}
		return book(ctx, tx, w, id)
	}, inTable, "evt_1")
	if want := "the connection was not cut there"; !strings.Contains(says, want) {
		t.Errorf("it says:\n%s\nwant %s", says, want)
	}
}

func TestExactlyOnceWantsACheckThatCanFail(t *testing.T) {
	t.Parallel()
	says := rehearse(t, book, func(context.Context, *pgxpool.Pool, *world) (int, error) { return 1, nil }, "evt_1")
	if want := "check is satisfied before anything is delivered"; !strings.Contains(says, want) {
		t.Errorf("it says:\n%s\nwant %s", says, want)
	}
}

func TestExactlyOnceStopsAfterThreeFailures(t *testing.T) {
	t.Parallel()
	says := rehearse(t, send, inMails, "evt_1")
	if got := strings.Count(says, "2 effects of 1 events"); got != 3 || !strings.Contains(says, "the rest is not tried") {
		t.Errorf("%d failures:\n%s\nwant 3 and a last word", got, says)
	}
}
