package guides

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

const secret = "a secret of the endpoint"

// delivered counts the answers of a receiver to deliveries of one event.
type delivered struct{ ok, duplicates, effects, rows int }

// zeltaPay delivers a payment n times, one after the other or at the same time.
func zeltaPay(t *testing.T, receiver func(*pgxpool.Pool, idem.Source) http.Handler, n int, atOnce bool) (d delivered) {
	t.Helper()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `create table paid (link text)`); err != nil {
		t.Fatal(err)
	}
	events := zeltapay.NewDispatcher(secret)
	events.OnPaymentSuccess(func(ctx context.Context, tx pgx.Tx, e *zeltapay.PaymentEvent) error {
		_, err := tx.Exec(ctx, `insert into paid values ($1)`, e.LinkID())
		return err
	})
	handler, body := receiver(pool, events), zeltapaytest.Event(zeltapay.EventPaymentSuccess)
	var mu sync.Mutex
	var all sync.WaitGroup
	post := func() {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, zeltapaytest.Request("/webhooks/zeltapay", secret, body))
		mu.Lock()
		defer mu.Unlock()
		if w.Code == http.StatusOK {
			d.ok++
		}
		if strings.Contains(w.Body.String(), `"duplicate":true`) {
			d.duplicates++
		}
	}
	for range n {
		if atOnce {
			all.Go(post)
		} else {
			post()
		}
	}
	all.Wait()
	if inbox, ok := handler.(*idem.Inbox); ok {
		if err := inbox.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	err := pool.QueryRow(t.Context(), `select (select count(*) from paid), (select count(*) from idem_events)`).Scan(&d.effects, &d.rows)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// The tests that Zelta Pay's guide lists: an event comes two and three times, and ten times
// at once: all are answered 200, one row, one effect.
func TestTheListOfZeltaPaysGuideHoldsInBothModes(t *testing.T) {
	t.Parallel()
	for name, receiver := range map[string]func(*pgxpool.Pool, idem.Source) http.Handler{
		"inbox": func(pool *pgxpool.Pool, s idem.Source) http.Handler { return idem.NewInbox(pool, s) },
		"first": func(pool *pgxpool.Pool, s idem.Source) http.Handler {
			first := idem.NewInbox(pool, s)
			first.WorkFirst = true
			return first
		},
	} {
		for _, n := range []int{2, 3} {
			if got, want := zeltaPay(t, receiver, n, false), (delivered{n, n - 1, 1, 1}); got != want {
				t.Errorf("%s, %d times: %+v, want %+v", name, n, got, want)
			}
		}
		got := zeltaPay(t, receiver, 10, true)
		if got.ok != 10 || got.effects != 1 || got.rows != 1 || got.duplicates > 9 {
			t.Errorf("%s, ten at once: %+v", name, got)
		}
	}
}
