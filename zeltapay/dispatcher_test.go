package zeltapay_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/provider"
	"github.com/paghooks/paghooks/zeltapay"
)

// delivery is a request as Zelta Pay would make it now.
func delivery(body []byte, secret string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/webhooks/zeltapay", nil)
	zeltapay.Sign(r.Header, body, secret, time.Now())
	return r
}

func TestOpenRefusesWhatVerifyRefuses(t *testing.T) {
	t.Parallel()
	body := read(t, "testdata/webhook_ping.json")
	for want, change := range map[idem.Reason]func(*zeltapay.Dispatcher, http.Header){
		idem.ReasonNotConfigured:          func(d *zeltapay.Dispatcher, _ http.Header) { *d = *zeltapay.NewDispatcher("") },
		provider.ReasonMissingSignature:   func(_ *zeltapay.Dispatcher, h http.Header) { h.Del("Zeltapay-Signature") },
		provider.ReasonWrongSignature:     func(d *zeltapay.Dispatcher, _ http.Header) { d.Scheme = pinned(zeltapay.FormatPlain) },
		provider.ReasonStale:              func(d *zeltapay.Dispatcher, _ http.Header) { d.Now = at(time.Now().Add(time.Hour)) },
		provider.ReasonEventIDMismatch:    func(_ *zeltapay.Dispatcher, h http.Header) { h.Set("Zeltapay-Event-Id", "evt_other") },
		provider.ReasonEventTypeMismatch:  func(_ *zeltapay.Dispatcher, h http.Header) { h.Set("Zeltapay-Event-Type", "payment.success") },
		provider.ReasonMalformedSignature: func(_ *zeltapay.Dispatcher, h http.Header) { h.Set("Zeltapay-Signature", "sha256=…") },
	} {
		events, r := zeltapay.NewDispatcher("secret"), delivery(body, "secret")
		events.StrictHeaders = true
		change(events, r.Header)
		e, err := events.Open(withBody(r, body))
		if got := reason(t, err); got != want || e.ID != "" {
			t.Errorf("got %q and the event %q, want %q", got, e.ID, want)
		}
	}
}

// handled registers every kind of handler and returns the one that ran last.
func handled(events *zeltapay.Dispatcher) *string {
	last := new(string)
	note := func(what string) error { *last = what; return nil }
	events.OnPaymentSuccess(func(_ context.Context, _ pgx.Tx, e *zeltapay.PaymentEvent) error {
		return note("payment of " + e.LinkID())
	})
	events.OnWebhookPing(func(_ context.Context, _ pgx.Tx, e *zeltapay.PingEvent) error {
		return note("ping " + e.EventID.Or(""))
	})
	events.OnUnknown(func(_ context.Context, _ pgx.Tx, e *zeltapay.UnknownEvent) error {
		return note("unknown " + string(e.Type))
	})
	return last
}

func TestEveryEventFindsItsHandler(t *testing.T) {
	t.Parallel()
	events := zeltapay.NewDispatcher("secret")
	events.AllowTest = true // one of the bodies is a test payment
	last := handled(events)
	for file, want := range map[string]string{
		"payment_success_flat_1.1.0.json": "payment of pl_1122334455667788",
		"payment_success_nested.json":     "payment of pl_99aabbccddeeff00",
		"webhook_ping.json":               "ping evt_00000000000000aa",
		"unknown_type.json":               "unknown payment_link.archived",
	} {
		*last = ""
		if err := events.Dispatch(t.Context(), nil, zeltapay.Identify(read(t, "testdata/"+file))); err != nil || *last != want {
			t.Errorf("%s: %q ran, %v", file, *last, err)
		}
	}
}

func TestOtherEventsWithoutHandlerAreKept(t *testing.T) {
	t.Parallel()
	events := zeltapay.NewDispatcher("secret")
	for _, body := range []string{`{"type":"payment.success"}`, `{"type":"something.new"}`} {
		e := zeltapay.Identify([]byte(body))
		if work, err := events.Route(e); work != nil || err != nil {
			t.Errorf("%s: routed to a work %t, %v", body, work != nil, err)
		}
		if err := events.Dispatch(t.Context(), nil, e); !errors.Is(err, idem.ErrUnhandled) {
			t.Errorf("%s: dispatched, %v", body, err)
		}
	}
}

func TestUnreadableBodyIsNotAnUnknownEvent(t *testing.T) {
	t.Parallel()
	events := zeltapay.NewDispatcher("secret")
	handled(events)
	e := zeltapay.Identify([]byte(`not JSON`))
	if work, err := events.Route(e); work != nil || err != nil {
		t.Errorf("routed to a work %t, %v", work != nil, err)
	}
	if err := events.Dispatch(t.Context(), nil, e); err == nil || !strings.Contains(err.Error(), "the body is not an event") {
		t.Errorf("dispatched, %v", err)
	}
}

func TestHalfReadableEventReachesNoHandler(t *testing.T) {
	t.Parallel()
	events := zeltapay.NewDispatcher("secret")
	handled(events)
	e := zeltapay.Identify([]byte(`{"eventId":"evt_1","type":"payment.success","transaction":{"amount":1.5}}`))
	if work, err := events.Route(e); work != nil || err == nil || !strings.Contains(err.Error(), "fraction") {
		t.Errorf("routed to a work %t, %v", work != nil, err)
	}
}

func TestAPaymentInALayoutThatIsNewIsNotHandled(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why, body string
		handled   bool
	}{
		{"flat", `{"eventId":"1","type":"payment.success","paymentLinkId":"pl_1","transaction":{"amount":1500}}`, true},
		{"nested", `{"type":"payment.success","paymentLink":{"id":"pl_1","amount":1500}}`, true},
		{"only its transaction is named", `{"type":"payment.success","transaction":{"id":"txn_1","amount":1500}}`, true},
		{"only the processor's id", `{"type":"payment.success","transaction":{"externalPaymentId":"1","amount":1500}}`, true},
		{"an amount of 0 that is sent", `{"type":"payment.success","paymentLink":{"id":"pl_1","amount":0}}`, true},
		{"flat without an amount", `{"eventId":"1","type":"payment.success","paymentLinkId":"pl_1","transaction":{"currency":"USD"}}`, false},
		{"nested with a null amount", `{"type":"payment.success","paymentLink":{"id":"pl_1","amount":null}}`, false},
		{"another layout", `{"eventId":"1","type":"payment.success","payment":{"link":"pl_1","amount":1500}}`, false},
		{"empty objects", `{"eventId":"1","type":"payment.success","transaction":{},"paymentLink":{}}`, false},
	} {
		d := zeltapay.NewDispatcher("secret")
		d.OnPaymentSuccess(func(context.Context, pgx.Tx, *zeltapay.PaymentEvent) error { return nil })
		work, err := d.Route(zeltapay.Identify([]byte(c.body)))
		if handled := err == nil && work != nil; handled != c.handled {
			t.Errorf("%s: handled=%t, %v", c.why, handled, err)
		}
	}
}

func TestAHandlerOfAStructOfItsOwnMayKnowANewLayout(t *testing.T) {
	t.Parallel()
	type payment struct {
		Payment struct{ Link string }
	}
	d := zeltapay.NewDispatcher("secret")
	var got string
	idem.Handle(&d.Routes, "payment.success", func(_ context.Context, _ pgx.Tx, e *payment) error {
		got = e.Payment.Link
		return nil
	})
	body := `{"eventId":"1","type":"payment.success","payment":{"link":"pl_1"}}`
	if err := d.Dispatch(t.Context(), nil, zeltapay.Identify([]byte(body))); err != nil || got != "pl_1" {
		t.Errorf("handled %q, %v", got, err)
	}
}
