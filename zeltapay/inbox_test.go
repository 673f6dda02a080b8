package zeltapay_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/testkit"
	"github.com/paghooks/paghooks/zeltapay"
)

// shop is an application that counts a payment in a table of its own.
func shop(t *testing.T) (*pgxpool.Pool, http.Handler) {
	t.Helper()
	pool := testkit.Open(t)
	if _, err := pool.Exec(t.Context(), `create table payments (link_id text, cents bigint, paid_at timestamptz)`); err != nil {
		t.Fatal(err)
	}
	events := zeltapay.NewDispatcher("secret")
	events.AllowTest = true // one of the bodies is a test payment
	events.OnPaymentSuccess(func(ctx context.Context, tx pgx.Tx, e *zeltapay.PaymentEvent) error {
		amount, _ := e.Amount()
		_, err := tx.Exec(ctx, `insert into payments values ($1, $2, $3)`, e.LinkID(), amount, e.PaidAt())
		return err
	})
	inbox := idem.NewInbox(pool, events)
	inbox.WorkFirst = true
	inbox.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	return pool, inbox
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

// Each layout names the event in its own way, so that they are two events. The
// handler is the package comment's.
func TestAPaymentThatComesInBothLayoutsIsPaidOnce(t *testing.T) {
	t.Parallel()
	const (
		flat = `{"eventId":"evt_1","type":"payment.success","paymentLinkId":"pl_1","metadata":{"orderId":"Z-1"},
			"transaction":{"amount":2500,"paidAt":"2026-11-20T10:00:00Z"}}`
		nested = `{"type":"payment.success","paymentLink":{"id":"pl_1","amount":2500,"metadata":{"orderId":"Z-1"}},
			"transaction":{"id":"txn_1","completedAt":"2026-11-20T10:00:00Z"}}`
		undated = `{"type":"payment.success","paymentLink":{"id":"pl_1","amount":2500,"metadata":{"orderId":"Z-1"}},"transaction":{"id":"txn_1"}}`
		other   = `{"eventId":"evt_2","type":"payment.success","paymentLink":{"id":"pl_1","amount":2500,"metadata":{"orderId":"Z-1"}},
			"transaction":{"id":"txn_1","completedAt":"2026-11-20T10:00:00Z"}}`
	)
	for _, c := range []struct {
		why    string
		bodies []string
	}{
		{"flat first", []string{flat, nested}},
		{"nested first", []string{nested, flat}},
		{"nobody says when it was paid", []string{undated, flat}},
		{"the nested one has an eventId, too", []string{flat, other}},
	} {
		pool := testkit.Open(t)
		if _, err := pool.Exec(t.Context(), `create table orders (id text primary key, paid_at timestamptz);
			create table shipments (order_id text primary key); insert into orders values ('Z-1'), ('Z-2')`); err != nil {
			t.Fatal(err)
		}
		events := zeltapay.NewDispatcher("secret")
		events.OnPaymentSuccess(ship)
		inbox := idem.NewInbox(pool, events)
		inbox.WorkFirst = true
		for _, body := range c.bodies {
			if status, answer := deliver(inbox, []byte(body), "secret"); status != http.StatusOK || answer != `{"received":true}` {
				t.Errorf("%s: answered %d %s, as if it were one event", c.why, status, answer)
			}
		}
		if n, events := count(t, pool, "shipments"), count(t, pool, "idem_events where state = 'done'"); n != 1 || events != 2 {
			t.Errorf("%s: %d shipments after %d events, want 1 after 2", c.why, n, events)
		}
		if n := count(t, pool, "orders where paid_at is not null"); n != 1 {
			t.Errorf("%s: %d orders are paid, want 1", c.why, n)
		}
	}
}

// ship is the handler of the package comment.
func ship(ctx context.Context, tx pgx.Tx, e *zeltapay.PaymentEvent) error {
	order, ok := e.LinkMetadata().String("orderId")
	if !ok {
		return nil // a link made by hand in the dashboard, not one of ours
	}
	paid, err := tx.Exec(ctx, `update orders set paid_at = coalesce(paid_at, $1, now()) where id = $2`, e.PaidAt(), order)
	if err == nil && paid.RowsAffected() == 0 {
		err = fmt.Errorf("the order of link %s is not stored", e.LinkID()) // nil would mean done for good
	}
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `insert into shipments (order_id) values ($1) on conflict do nothing`, order)
	return err
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

const (
	testPayment = `{"eventId":"evt_1","type":"payment.success","paymentLinkId":"pl_1","transaction":{"amount":2500,"isTest":true}}`
	livePayment = `{"eventId":"evt_2","type":"payment.success","paymentLinkId":"pl_1","transaction":{"amount":2500,"isTest":false}}`
)

// A developer pays a live link with a test card. No order is paid, then or later.
func TestATestPaymentPaysNoOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why       string
		inbox     bool
		allowTest bool
		body      string
		paid      int    // orders
		stored    string // types of the events
		logged    bool
	}{
		{"inline, by default", false, false, testPayment, 0, "", true},
		{"an inbox, by default", true, false, testPayment, 0, "", true},
		{"inline, asked for", false, true, testPayment, 1, "payment.success:test", false},
		{"an inbox, asked for", true, true, testPayment, 1, "payment.success:test", false},
		{"money, inline", false, false, livePayment, 1, "payment.success", false},
		{"money, an inbox where tests are asked for", true, true, livePayment, 1, "payment.success", false},
	} {
		pool := testkit.Open(t)
		if _, err := pool.Exec(t.Context(), `create table paid (link text)`); err != nil {
			t.Fatal(err)
		}
		application := func(allowTest bool, log *slog.Logger) *zeltapay.Dispatcher {
			events := zeltapay.NewDispatcher("secret")
			events.AllowTest, events.Logger = allowTest, log
			events.OnPaymentSuccess(func(ctx context.Context, tx pgx.Tx, e *zeltapay.PaymentEvent) error {
				_, err := tx.Exec(ctx, `insert into paid values ($1)`, e.LinkID())
				return err
			})
			return events
		}
		var log bytes.Buffer
		events := application(c.allowTest, slog.New(slog.NewTextHandler(&log, nil)))
		first, inbox := idem.NewInbox(pool, events), idem.NewInbox(pool, events)
		first.WorkFirst = true
		first.Logger, inbox.Logger = nil, nil
		for range 2 { // a duplicate does no more
			status := 0
			if c.inbox {
				status, _ = deliver(inbox, []byte(c.body), "secret")
			} else {
				status, _ = deliver(first, []byte(c.body), "secret")
			}
			if status != 200 {
				t.Errorf("%s: answered %d", c.why, status)
			}
			if err := inbox.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		var stored string
		if err := pool.QueryRow(t.Context(), `select coalesce(string_agg(type, ' '), '') from idem_events`).Scan(&stored); err != nil {
			t.Fatal(err)
		}
		if paid := count(t, pool, "paid"); paid != c.paid || stored != c.stored {
			t.Errorf("%s: %d orders are paid, %q is stored; want %d and %q", c.why, paid, stored, c.paid, c.stored)
		}
		if logged := strings.Contains(log.String(), "a test payment is ignored") && strings.Contains(log.String(), "id=evt_1"); logged != c.logged {
			t.Errorf("%s: logged=%t, %s", c.why, logged, &log)
		}

		replayer := idem.NewInbox(pool, application(true, nil)) // somebody allows tests later
		replayer.Logger = nil
		if replayed, err := replayer.Replay(t.Context(), idem.Filter{}); err != nil || !cmp.Equal(replayed, idem.Replayed{}) {
			t.Errorf("%s: later %+v is replayed, %v", c.why, replayed, err)
		}
	}
}

func TestIdentifyNamesATestPayment(t *testing.T) {
	t.Parallel()
	const of = `{"eventId":"evt_1","type":"payment.success","transaction":`
	for _, c := range []struct {
		why, body string
		want      zeltapay.EventType
	}{
		{"a test", of + `{"isTest":true}}`, zeltapay.EventTestPayment},
		{"its name in another case, which decoding takes", of + `{"istest": true }}`, zeltapay.EventTestPayment},
		{"none", of + `{"isTest":false}}`, zeltapay.EventPaymentSuccess},
		{"not said", of + `{}}`, zeltapay.EventPaymentSuccess},
		{"null", of + `{"isTest":null}}`, zeltapay.EventPaymentSuccess},
		{"null at last", of + `{"isTest":true,"isTest":null}}`, zeltapay.EventPaymentSuccess},
		{"the last one counts", of + `{"isTest":false,"isTest":true}}`, zeltapay.EventTestPayment},
		{"of the last transaction", of + `{"isTest":true},"transaction":{}}`, zeltapay.EventPaymentSuccess},
		{"a text, which does not decode and is parked", of + `{"isTest":"true"}}`, zeltapay.EventPaymentSuccess},
		{"of another event", `{"eventId":"evt_1","type":"webhook.ping","transaction":{"isTest":true}}`, zeltapay.EventWebhookPing},
	} {
		if got := zeltapay.Identify([]byte(c.body)).Type; got != string(c.want) {
			t.Errorf("%s: identified as %q, want %q", c.why, got, c.want)
		}
		if e, err := zeltapay.Parse([]byte(c.body)); err == nil {
			if p, ok := e.(*zeltapay.PaymentEvent); ok && p.IsTest() != (c.want == zeltapay.EventTestPayment) {
				t.Errorf("%s: IsTest is %t and the event's type %q", c.why, p.IsTest(), c.want)
			}
		}
	}
}

func TestATestPaymentHasThePaymentsHandlerAndLabel(t *testing.T) {
	t.Parallel()
	d := zeltapay.NewDispatcher("secret")
	d.AllowTest = true
	last := handled(d)
	if err := d.Dispatch(t.Context(), nil, zeltapay.Identify([]byte(testPayment))); err != nil || *last != "payment of pl_1" {
		t.Errorf("%q ran, %v", *last, err)
	}
	if !d.Handles(string(zeltapay.EventTestPayment)) {
		t.Error("metrics count it among other types")
	}
	if diff := cmp.Diff([]zeltapay.EventType{"payment.success", "webhook.ping"}, d.Types()); diff != "" {
		t.Errorf("what to subscribe to (-want +got):\n%s", diff)
	}
	if found := d.Drift(); found != nil {
		t.Errorf("drift: %v", found)
	}
}
