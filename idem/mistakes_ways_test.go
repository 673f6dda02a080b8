package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

// way is one of the two ways of an event to its handler: a delivery, or a worker of an inbox.
type way struct {
	*app
	inbox  bool
	failed idem.State // of an event whose attempt has failed
	look   *app       // the same tables, over connections of its own
}

// eachWay runs a test both ways, over one connection and with one worker, on tables
// of which the mistakes need some. The test registers a handler, and starts.
func eachWay(t *testing.T, test func(*testing.T, *way)) {
	t.Helper()
	t.Run("inline", func(t *testing.T) {
		t.Parallel()
		pool, look := openForMistakes(t)
		test(t, &way{app: openApp(t, pool), failed: idem.StateRetrying, look: look})
	})
	t.Run("inbox", func(t *testing.T) {
		t.Parallel()
		pool, look := openForMistakes(t)
		s := openInboxApp(t, pool)
		s.inbox.Workers = 1
		test(t, &way{app: s, inbox: true, failed: idem.StatePending, look: look})
	})
}

// openForMistakes opens a pool of one connection, and an app on the same tables.
func openForMistakes(t *testing.T) (pool *pgxpool.Pool, look *app) {
	t.Helper()
	url := idemtest.URL(t)
	look = openApp(t, openPool(t, url, asUsual))
	look.exec(`create table parents (id text primary key);
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

// begin has the handler h process events. Each attempt may take as long as limit.
func (w *way) begin(limit time.Duration, h idem.Handler[*note]) {
	w.on(h)
	w.processor.Timeout = limit
	if w.inbox {
		w.app.inbox.Timeout = limit
		w.start(w.app.inbox)
	}
}

// fails sends an event, of which an attempt fails.
func (w *way) fails(id string) {
	w.Helper()
	if !w.inbox {
		w.wantAnswer(paid(id), http.StatusServiceUnavailable)
		return
	}
	w.wantAnswer(paid(id), http.StatusOK)
	w.wantAttempt(id, idem.Retrying)
}

// again waits until an event that has failed is done, which a delivery inline is sent again for.
func (w *way) again(id string) {
	w.Helper()
	if w.inbox {
		w.wantAttempt(id, idem.Done)
	} else {
		w.wantAnswer(paid(id), http.StatusOK)
	}
	w.look.wantState(id, idem.StateDone)
}

// does sends an event that is done at once.
func (w *way) does(id string) {
	w.Helper()
	if w.inbox {
		w.wantAnswer(paid(id), http.StatusOK)
	}
	w.again(id)
}

// wantAttempt waits for the next attempt of workers at an event.
func (w *way) wantAttempt(id string, want idem.Outcome) {
	w.Helper()
	o := w.next()
	for ; o.Event.ID != id; o = w.next() { // of a test that has failed
	}
	if o.Outcome != want {
		w.Fatalf("the outcome of %s is %s (%v), want %s", id, o.Outcome, o.Err, want)
	}
}

// wantFailed checks what an attempt that has failed leaves: the error, and no effect beside
// those that there were.
func (w *way) wantFailed(id, says string, effects int) {
	w.Helper()
	w.look.wantEffects(effects)
	w.look.wantRow(id, "(state, attempts, crashes)", fmt.Sprintf("(%s,1,0)", w.failed))
	if said := queryOne[string](w.look, `select coalesce(last_error, '') from idem_events where event = 'notes//' || $1`, id); !strings.Contains(said, says) {
		w.Errorf("its error is %q, want it to say %q", said, says)
	}
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
		w.T, w.look.T = to, to
	}
	for n, m := range all {
		all := w.T
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
			w.look.wantEffects(effects)
			if t.Failed() {
				t.Log("it is wrong because " + m.reason)
			}
		})
	}
}
