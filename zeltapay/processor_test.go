package zeltapay_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/zeltapay"
)

// shop is an application that counts a payment in a table of its own.
func shop(t *testing.T) (*pgxpool.Pool, http.Handler) {
	t.Helper()
	pool := idemtest.Pool(t)
	if err := idem.Migrate(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), `create table payments (link_id text, cents bigint, paid_at timestamptz)`); err != nil {
		t.Fatal(err)
	}
	events := zeltapay.NewDispatcher("secret")
	events.OnPaymentSuccess(func(ctx context.Context, tx pgx.Tx, e *zeltapay.PaymentEvent) error {
		amount, _ := e.Amount()
		_, err := tx.Exec(ctx, `insert into payments values ($1, $2, $3)`, e.LinkID(), amount, e.PaidAt())
		return err
	})
	processor := idem.NewProcessor(pool, events)
	processor.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	return pool, processor
}

// deliver posts a body as Zelta Pay would, and returns the answer.
func deliver(h http.Handler, body []byte, secret string) (status int, answer string) {
	r := httptest.NewRequest(http.MethodPost, "/webhooks/zeltapay", bytes.NewReader(body))
	zeltapay.Sign(r.Header, body, secret, time.Now())
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func TestAPaymentDeliveredThreeTimesIsHandledOnce(t *testing.T) {
	t.Parallel()
	pool, h := shop(t)
	for _, file := range []string{"payment_success_flat_1.1.0.json", "payment_success_nested.json"} {
		body := read(t, "testdata/"+file)
		for i, want := range []string{`{"received":true}`, `{"received":true,"duplicate":true}`, `{"received":true,"duplicate":true}`} {
			if status, answer := deliver(h, body, "secret"); status != http.StatusOK || answer != want {
				t.Errorf("%s, delivery %d: answered %d %s, want %s", file, i+1, status, answer, want)
			}
		}
	}
	if got := count(t, pool, "payments"); got != 2 {
		t.Errorf("%d payments of 2", got)
	}
}

func TestOnlyWhatIsGenuineAndMattersIsStored(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why, file, secret string
		status            int
		events            int
	}{
		{"not genuine", "payment_success_flat_1.0.0.json", "another secret", http.StatusUnauthorized, 0},
		{"a test from the dashboard", "webhook_ping.json", "secret", http.StatusOK, 0},
		{"kept until somebody knows what to do", "unknown_type.json", "secret", http.StatusOK, 1},
	} {
		pool, h := shop(t)
		if status, _ := deliver(h, read(t, "testdata/"+c.file), c.secret); status != c.status {
			t.Errorf("%s: answered %d", c.why, status)
		}
		if got := count(t, pool, "idem_events"); got != c.events {
			t.Errorf("%s: %d events stored, want %d", c.why, got, c.events)
		}
	}
}

func count(t *testing.T, pool *pgxpool.Pool, table string) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), "select count(*) from "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
