package promises_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestHandlerThatMakesAMistakeHasFailedAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, w *way) { w.make(patience, mistakes...) })
}

func TestHandlerThatTakesTooLongHasFailedAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for _, m := range hanging {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			eachWay(t, func(t *testing.T, w *way) { w.make(5*time.Second, m) }) // which the others have, too
		})
	}
}

func TestPostgresMayAskToRunTheHandlerAgain(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{"serialization failure": "40001", "deadlock": "40P01"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachWay(t, func(t *testing.T, w *way) {
				runs := 0
				w.begin(patience, func(ctx context.Context, tx pgx.Tx, n *note) error {
					if err := pay(ctx, tx, n); err != nil {
						return err
					}
					n.ID = "changed by the first run"
					if runs++; runs < 3 {
						return executing(`do $$ begin raise exception 'again' using errcode = '`+code+`'; end $$`)(ctx, tx)
					}
					return nil
				})
				w.does("e1")
				w.look.WantRow("e1", "attempts", "0")
				if got := queryOne[string](w.look, `select event from effects`); got != "e1" || runs != 3 {
					t.Errorf("effect of %q after %d runs, want e1 after 3", got, runs)
				}
			})
		})
	}
}

// eachWay runs a test both ways, over one connection and with one worker, on tables
// of which the mistakes need some. The test registers a handler, and starts.
func eachWay(t *testing.T, test func(*testing.T, *way)) {
	t.Helper()
	t.Run("first try", func(t *testing.T) {
		t.Parallel()
		pool, look := openForMistakes(t)
		test(t, &way{app: openApp(t, pool), look: look})
	})
	t.Run("inbox", func(t *testing.T) {
		t.Parallel()
		pool, look := openForMistakes(t)
		s := openInboxApp(t, pool)
		s.Inbox.Workers = 1
		test(t, &way{app: s, inbox: true, failed: idem.StatePending, look: look})
	})
}

// way is one of the two ways of an event to its handler: a delivery, or a worker of an inbox.
type way struct {
	*app
	inbox  bool
	failed idem.State // of an event whose attempt has failed; "" if it is not stored
	look   *app       // the same tables, over connections of its own
}

// begin has the handler h process events. Each attempt may take as long as limit.
func (w *way) begin(limit time.Duration, h idem.Handler[*note]) {
	w.On(h)
	w.First.AnswerWithin, w.First.Timeout = limit, limit
	if w.inbox {
		w.app.Inbox.Timeout = limit
		w.Start(w.app.Inbox)
	}
}

// fails sends an event, of which an attempt fails.
func (w *way) fails(id string) {
	w.Helper()
	if !w.inbox {
		w.WantAnswer(paid(id), http.StatusServiceUnavailable)
		return
	}
	w.WantAnswer(paid(id), http.StatusOK)
	w.wantAttempt(id, idem.Retrying)
}

// again waits until an event that has failed is done, which a delivery inline is sent again for.
func (w *way) again(id string) {
	w.Helper()
	if w.inbox {
		w.wantAttempt(id, idem.Done)
	} else {
		w.WantAnswer(paid(id), http.StatusOK)
	}
	w.look.WantState(id, idem.StateDone)
}

// does sends an event that is done at once.
func (w *way) does(id string) {
	w.Helper()
	if w.inbox {
		w.WantAnswer(paid(id), http.StatusOK)
	}
	w.again(id)
}

// wantAttempt waits for the next attempt of workers at an event.
func (w *way) wantAttempt(id string, want idem.Outcome) {
	w.Helper()
	o := w.Next()
	for ; o.Event.ID != id; o = w.Next() { // of a test that has failed
	}
	if o.Outcome != want {
		w.Fatalf("the outcome of %s is %s (%v), want %s", id, o.Outcome, o.Err, want)
	}
}

// wantFailed checks what an attempt that has failed leaves: the error, and no effect beside
// those that there were.
func (w *way) wantFailed(id, says string, effects int) {
	w.Helper()
	w.look.WantEffects(effects)
	if !w.inbox {
		w.look.WantState(id, "")
		if said := w.said(id); !strings.Contains(said, says) {
			w.Errorf("its error is %q, want it to say %q", said, says)
		}
		return
	}
	w.look.WantRow(id, "(state, attempts, crashes)", fmt.Sprintf("(%s,1,0)", w.failed))
	if said := queryOne[string](w.look, `select coalesce(last_error, '') from idem_events where event = 'notes//' || $1`, id); !strings.Contains(said, says) {
		w.Errorf("its error is %q, want it to say %q", said, says)
	}
}

// said returns the last error that the observer was told of an event.
func (w *way) said(id string) (text string) {
	for _, o := range w.Observed() {
		if o.Event.ID == id && o.Err != nil {
			text = o.Err.Error()
		}
	}
	return text
}

// make has the handler make mistakes, one after the other: each fails an attempt, leaves nothing
// behind, is done by the next attempt, and is in the way of no other event.
func (w *way) make(limit time.Duration, all ...mistake) {
	w.Helper()
	name := func(n int) string { return fmt.Sprint("e", n) }
	of := map[string]mistake{}
	for n, m := range all {
		of[name(n)] = m
	}
	var mu sync.Mutex // of what handlers and the test share
	runs := map[string]int{}
	effects := 0
	isFirst := func(id string) bool {
		mu.Lock()
		defer mu.Unlock()
		runs[id]++
		if m, wrong := of[id]; wrong && runs[id] == 2 {
			w.wantFailed(id, m.says, effects)
		}
		return runs[id] == 1
	}
	w.begin(limit, func(ctx context.Context, tx pgx.Tx, n *note) error {
		if err := pay(ctx, tx, n); err != nil {
			return err
		}
		if m, wrong := of[n.ID]; isFirst(n.ID) && wrong {
			return m.make(ctx, tx)
		}
		return nil
	})
	report := func(to *testing.T) {
		mu.Lock()
		defer mu.Unlock()
		w.TB, w.look.TB = to, to
	}
	for n, m := range all {
		all := w.TB.(*testing.T)
		all.Run(m.name, func(t *testing.T) {
			report(t)
			defer report(all)
			w.fails(name(n))
			w.again(name(n))
			w.does("beside " + name(n))
			mu.Lock()
			defer mu.Unlock()
			if runs[name(n)] != 2 {
				t.Errorf("the handler ran %d times, want 2", runs[name(n)])
			}
			effects += 2
			w.look.WantEffects(effects)
			if t.Failed() {
				t.Log("it is wrong because " + m.reason)
			}
		})
	}
}

// mistake is a thing that a handler does wrong after its work. Its attempt has failed, says
// why, and leaves nothing behind.
type mistake struct {
	name, reason string // why it must be noticed
	says         string // a part of the error that is stored
	make         func(context.Context, pgx.Tx) error
}

// openForMistakes opens a pool of one connection, and an app on the same tables.
func openForMistakes(t *testing.T) (pool *pgxpool.Pool, look *app) {
	t.Helper()
	url := idemtest.URL(t)
	look = openApp(t, openPool(t, url, asUsual))
	look.Exec(`create table parents (id text primary key);
		create table children (parent text constraint has_parent references parents deferrable initially deferred);
		create procedure finish() language plpgsql as $$ begin commit; end $$`)
	return openPool(t, url, func(c *pgxpool.Config) {
		c.MaxConns = 1
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			_, err := conn.Prepare(ctx, "finish", "rollback")
			_, spaced := conn.Prepare(ctx, "orders: finish", "rollback")
			return errors.Join(err, spaced)
		}
	}), look
}

// mistakes are all that end at once, those that are not about SQL that ends the transaction first. Those of hanging end
// when their time is over.
var mistakes = testkit.First(30, slices.Concat([]mistake{
	{"returns an error", "it says so itself", "no such order", failing},
	{"panics", "a mistake of its own ends no process", "nil order", func(context.Context, pgx.Tx) error { panic("nil order") }},
	{"panics with nil", "recover has returned nil for that", "panic called with nil argument", func(context.Context, pgx.Tx) error { panic(nil) }},
	{"ends its goroutine", "t.FailNow of a test does that, and nobody would answer", "the handler ended its goroutine", func(context.Context, pgx.Tx) error { runtime.Goexit(); return nil }},
	{"returns an error without a text", "a nil pointer in an error is not nil", "panic", func(context.Context, pgx.Tx) error { var err *brittleError; return err }},
	{"returns an error that cannot be compared", "errors.Is calls its methods later, where nobody recovers", "panic", func(context.Context, pgx.Tx) error { return &pickyError{1} }},

	{"fails an SQL command", "Postgres has discarded its work", "22012", executing(`select 1/0`)},
	{"swallows an SQL error", "Postgres answers COMMIT of it with ROLLBACK", "returned nil after an SQL error", swallowing(`select 1/0`)},
	{"cancels its own query", "pgx closes the connection", "canceled", func(ctx context.Context, tx pgx.Tx) error {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		_, err := tx.Exec(ctx, `select pg_sleep(60)`)
		return err
	}},
	{"breaks a deferred constraint", "it is checked at COMMIT", "has_parent", executing(`insert into children values ('x')`)},
	{"leaves rows open", "COMMIT would wait behind them", "a query is open", func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Query(ctx, `select generate_series(1, 100000)`)
		return err
	}},
	{"closes its connection", "there is none to commit on", "the connection was lost", func(ctx context.Context, tx pgx.Tx) error { return tx.Conn().Close(ctx) }},

	{"commits", "the record of the event would be committed before its work", owned, func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) }},
	{"rolls back", "the record of the event would be gone", owned, func(ctx context.Context, tx pgx.Tx) error { return tx.Rollback(ctx) }},
	{"declares a statement, and fails", "what it declares is of its transaction", "no such order", func(ctx context.Context, tx pgx.Tx) error {
		idem.ExecAtCommit(ctx, insertEffect, "declared")
		return failing(ctx, tx)
	}},
	{"declares what Postgres refuses", "COMMIT is behind it", "23502", declaring(`insert into effects (event) values (null)`)},
	{"declares no SQL", "pgx finds out when it prepares it", "42601", declaring(`insert in effects`)},
	{"declares an argument that does not fit", "pgx finds out before it sends anything", "unable to encode", declaring(insertEffect, struct{}{})},
	{"declares an argument that panics", "its encoding is the application's code", "no value", declaring(insertEffect, angry{})},
	{"declares an argument whose error cannot be compared", "its encoding is the application's code", "panic", declaring(insertEffect, picky{})},
	{"declares too few arguments", "pgx finds out before it sends anything", "mismatched param and argument count", declaring(insertEffect)},
	{"declares what breaks a deferred constraint", "it is checked at COMMIT", "has_parent", declaring(`insert into children values ('x')`)},
	{"declares a failure before another statement", "Postgres skips what is behind it", "22012", func(ctx context.Context, _ pgx.Tx) error {
		idem.ExecAtCommit(ctx, `select 1/0`)
		idem.ExecAtCommit(ctx, insertEffect, "e1")
		return nil
	}},
	{"declares a failure behind another statement", "Postgres has executed the first one", "22012", func(ctx context.Context, _ pgx.Tx) error {
		idem.ExecAtCommit(ctx, insertEffect, "e1")
		idem.ExecAtCommit(ctx, `select 1/0`)
		return nil
	}},
	{"declares a rollback before no SQL", "it must not be sent", declaredEnd, func(ctx context.Context, _ pgx.Tx) error {
		idem.ExecAtCommit(ctx, `rollback`)
		idem.ExecAtCommit(ctx, `insert in effects`)
		return nil
	}},
}, endingItself(), endingUnseen()))

func failing(context.Context, pgx.Tx) error { return errors.New("no such order") }

func executing(sql string) func(context.Context, pgx.Tx) error {
	return func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sql)
		return err
	}
}

func swallowing(sql string) func(context.Context, pgx.Tx) error {
	return func(ctx context.Context, tx pgx.Tx) error {
		_, _ = tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
		return nil
	}
}

const (
	owned       = "the transaction is not the handler's to end"
	declaredEnd = "ExecAtCommit got a statement that ends the transaction"
	ended       = "the handler ended the transaction with SQL"
)

func declaring(sql string, args ...any) func(context.Context, pgx.Tx) error {
	return func(ctx context.Context, _ pgx.Tx) error {
		idem.ExecAtCommit(ctx, sql, args...)
		return nil
	}
}

// endingItself are mistakes that would end the transaction, by any statement.
func endingItself() (all []mistake) {
	for _, c := range endings {
		all = append(all, mistake{"ends the transaction: " + c.why, "the record of the event is committed or gone", owned, executing(c.sql)})
	}
	for _, c := range append(slices.Clone(endings), endingsAtCommit...) {
		all = append(all, mistake{"declares an end: " + c.why, "behind it, COMMIT says that all is well, and commits nothing", declaredEnd, func(ctx context.Context, _ pgx.Tx) error {
			idem.ExecAtCommit(ctx, insertEffect, "declared")
			idem.ExecAtCommit(ctx, c.sql)
			return nil
		}})
	}
	for _, sql := range []string{"do $$ begin commit; end $$", "do $$ begin rollback and chain; end $$", "call finish()", "select 1; call finish()"} {
		all = append(all, mistake{"ends the transaction in a block: " + sql, "Postgres refuses, and its error is swallowed", "returned nil after an SQL error", swallowing(sql)})
	}
	for _, sql := range []string{"rollback", "rollback and chain", "rollback; begin", "-- name: End :exec\nrollback", "abort; start transaction"} {
		all = append(all, mistake{"ends the transaction on the connection: " + sql, "nothing is refused there, and another one may have begun", ended, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Conn().Exec(ctx, sql)
			return err
		}})
	}
	return all
}

// endingUnseen are mistakes by statements that Postgres gets, and that are not their text.
func endingUnseen() (all []mistake) {
	for name, send := range sendersOfArguments {
		for how, end := range map[string]func(context.Context, pgx.Tx) error{
			"a rewriter writes it":                     func(ctx context.Context, tx pgx.Tx) error { return send(ctx, tx, "select 1", rewritten("rollback")) },
			"it is prepared":                           func(ctx context.Context, tx pgx.Tx) error { return send(ctx, tx, "finish") },
			"it is prepared under a name with a space": func(ctx context.Context, tx pgx.Tx) error { return send(ctx, tx, "orders: finish") },
		} {
			all = append(all, mistake{"ends the transaction unseen by " + name + ": " + how, "another one has begun", ended, func(ctx context.Context, tx pgx.Tx) error {
				if err := end(ctx, tx); err != nil {
					return err
				}
				_, err := tx.Exec(ctx, "begin") // inside of a transaction that is only a warning
				return err
			}})
		}
	}
	slices.SortFunc(all, func(a, b mistake) int { return strings.Compare(a.name, b.name) })
	return all
}

// hanging are mistakes that last until the handler's time is over.
var hanging = testkit.First(1, []mistake{
	{"waits for its context", "it is its time, and no other's", "the time of the handler was over", func(ctx context.Context, _ pgx.Tx) error { <-ctx.Done(); return ctx.Err() }},
	{"waits in SQL", "Postgres works on", "the time of the handler was over", executing(`select pg_sleep(600)`)},
	{"ignores its context", "it is left behind, and its connection closed", "the handler did not return in time", func(context.Context, pgx.Tx) error { select {} }},
	{"ignores its context in SQL", "it is left behind, and Postgres, too", "the handler did not return in time", func(_ context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(context.Background(), `select pg_sleep(600)`)
		return err
	}},
})
