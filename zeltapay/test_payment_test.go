package zeltapay_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/zeltapay"
)

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
		pool := idemtest.Pool(t)
		if err := idem.Migrate(t.Context(), pool); err != nil {
			t.Fatal(err)
		}
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
		processor, inbox := idem.NewProcessor(pool, events), idem.NewInbox(pool, events)
		processor.Logger, inbox.Logger = nil, nil
		for range 2 { // a duplicate does no more
			status := 0
			if c.inbox {
				status, _ = deliver(inbox, []byte(c.body), "secret")
			} else {
				status, _ = deliver(processor, []byte(c.body), "secret")
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

		replayer := idem.NewProcessor(pool, application(true, nil)) // somebody allows tests later
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
