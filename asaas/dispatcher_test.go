package asaas_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/provider"
	"github.com/paghooks/paghooks/internal/testkit"
)

func delivery(sentToken, body string) *http.Request {
	r := httptest.NewRequest("POST", "/webhooks/asaas", strings.NewReader(body))
	r.Header = sent(sentToken)
	return r
}

func TestOpenVerifiesAndNames(t *testing.T) {
	t.Parallel()
	d := asaas.NewDispatcher("", token, oldToken)
	for _, configured := range []string{token, oldToken} {
		e, err := d.Open(withBody(delivery(configured, event), []byte(event)))
		if err != nil {
			t.Fatal(err)
		}
		if e.Source != d.Name() || e.Scope != "" || e.Type != "PAYMENT_CREATED" || e.Key != "pay_1" {
			t.Errorf("got %+v", e)
		}
	}
	_, err := d.Open(withBody(delivery("guess", event), []byte(event)))
	wantReason(t, err, provider.ReasonWrongToken)
}

func TestOnlyAllowedAddressesMayDeliver(t *testing.T) {
	t.Parallel()
	const asaasAddress = "52.67.12.206"
	for _, tt := range []struct {
		remote, header string
		forwarded      []string
		ok             bool
		reason         string
	}{
		{"52.67.12.206:51234", "", nil, true, "an official address"},
		{"[::ffff:52.67.12.206]:51234", "", nil, true, "the same in IPv6 clothes"},
		{"52.67.12.206", "", nil, true, "without a port"},
		{"10.0.0.1:80", "", nil, false, "another address"},
		{"10.0.0.1:80", "", []string{asaasAddress}, false, "a header that is not trusted"},
		{"@", "", nil, false, "a Unix socket"},
		{"", "", nil, false, "no address"},
		{"10.0.0.1:80", "X-Forwarded-For", []string{asaasAddress}, true, "through a proxy"},
		{"10.0.0.1:80", "x-forwarded-for", []string{asaasAddress}, true, "the header's name in lower case"},
		{"10.0.0.1:80", "X-Forwarded-For", []string{"1.2.3.4, " + asaasAddress}, true, "the proxy writes last"},
		{"10.0.0.1:80", "X-Forwarded-For", []string{"1.2.3.4", asaasAddress}, true, "the proxy writes a header of its own"},
		{"10.0.0.1:80", "X-Forwarded-For", []string{asaasAddress + ", 1.2.3.4"}, false, "the sender claims to be Asaas"},
		{"10.0.0.1:80", "X-Forwarded-For", []string{asaasAddress, "1.2.3.4"}, false, "the sender adds a header"},
		{"10.0.0.1:80", "X-Forwarded-For", []string{asaasAddress + ":443"}, true, "an address with a port"},
		{"10.0.0.1:80", "X-Forwarded-For", []string{"[::ffff:52.67.12.206]"}, true, "an address in brackets"},
		{"10.0.0.1:80", "X-Forwarded-For", []string{""}, false, "an empty header"},
		{"10.0.0.1:80", "X-Forwarded-For", []string{asaasAddress + ","}, false, "an empty last element"},
		{"10.0.0.1:80", "X-Forwarded-For", []string{"unknown"}, false, "no address"},
		{asaasAddress + ":1", "X-Forwarded-For", nil, false, "the proxy does not write the header"},
	} {
		d := asaas.NewDispatcher(token)
		d.AllowFrom, d.ClientAddrHeader = asaas.OfficialAddresses(), tt.header
		r := delivery(token, event)
		r.RemoteAddr = tt.remote
		if tt.forwarded != nil {
			r.Header["X-Forwarded-For"] = tt.forwarded
		}
		want := provider.ReasonAddressNotAllowed
		if tt.ok {
			want = ""
		}
		t.Run(tt.reason, func(t *testing.T) {
			_, err := d.Open(withBody(r, []byte(event)))
			wantReason(t, err, want)
		})
	}
}

func TestAnAllowedAddressNeedsATokenToo(t *testing.T) {
	t.Parallel()
	d := asaas.NewDispatcher(token)
	r := delivery("guess", event)
	r.RemoteAddr = "[2001:db8::1%eth0]:1"

	d.AllowFrom = []netip.Prefix{netip.MustParsePrefix("2001:db8::/32")}
	_, err := d.Open(withBody(r, []byte(event)))
	wantReason(t, err, provider.ReasonWrongToken)

	d.AllowFrom = []netip.Prefix{}
	_, err = d.Open(withBody(r, []byte(event)))
	wantReason(t, err, provider.ReasonAddressNotAllowed)
}

func TestUnknownEventsReachOnUnknown(t *testing.T) {
	t.Parallel()
	var got []string
	d := asaas.NewDispatcher(token)
	d.OnUnknown(func(_ context.Context, _ pgx.Tx, e *asaas.UnknownEvent) error {
		got = append(got, string(e.Event)+" "+string(e.Raw))
		return nil
	})
	const news = `{"id":"evt_1&1","event":"PAYMENT_NEWS","payment":"not an object"}`
	for _, tt := range []struct {
		body   string
		want   error
		reason string
	}{
		{news, nil, "a type that is newer than this package"},
		{event, idem.ErrUnhandled, "a known type without a handler is not unknown"},
	} {
		if err := d.Dispatch(t.Context(), nil, asaas.Identify([]byte(tt.body))); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.reason, err, tt.want)
		}
	}
	for _, body := range []string{`{"id":"evt_1&1"}`, `no JSON`} { // the caller may take ErrUnhandled for "nothing to do"
		if err := d.Dispatch(t.Context(), nil, asaas.Identify([]byte(body))); err == nil || !strings.Contains(err.Error(), "the body is not an event") {
			t.Errorf("%s: got %v", body, err)
		}
	}
	if len(got) != 1 || got[0] != "PAYMENT_NEWS "+news {
		t.Errorf("OnUnknown got %q", got)
	}
}

func TestADeliveryHasItsEffectOnce(t *testing.T) {
	t.Parallel()
	pool := testkit.Open(t)
	if _, err := pool.Exec(t.Context(), `create table received (charge text, amount numeric, paid_on date, seen timestamptz)`); err != nil {
		t.Fatal(err)
	}
	d := asaas.NewDispatcher(token)
	d.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		p := e.Payment
		_, err := tx.Exec(ctx, `insert into received values ($1, $2, $3, $4)`, p.ID, p.Value, p.PaymentDate, p.LastInvoiceViewedDate)
		return err
	})
	first := idem.NewInbox(pool, d)
	first.WorkFirst = true
	body := string(testdata(t, "pix_received_unasked"))
	for _, tt := range []struct {
		token, body string
		want        int
		reason      string
	}{
		{token, body, 200, "the delivery"},
		{token, body, 200, "the same again"},
		{"guess", body, 401, "a forgery"},
		{token, event, 200, "an event without a handler"},
		{token, strings.Replace(body, `"value":29.90`, `"value":"a lot"`, 1), 200, "the same event, which does not decode any more"},
		{token, `no JSON`, 200, "genuine, but no event"},
	} {
		w := httptest.NewRecorder()
		first.ServeHTTP(w, delivery(tt.token, tt.body))
		if w.Code != tt.want {
			t.Errorf("%s: the answer is %d %s, want %d", tt.reason, w.Code, w.Body, tt.want)
		}
	}
	var rows string
	err := pool.QueryRow(t.Context(), `select string_agg(received::text, ' ') from received`).Scan(&rows)
	if want := "(pay_1_x3k9F0q2m7T1v5,29.90,2026-08-08,)"; err != nil || rows != want {
		t.Errorf("got %s, %v; want %s", rows, err, want)
	}
}

func TestIgnoredTypesAreNotStoredAndHaveNoHandler(t *testing.T) {
	t.Parallel()
	d := asaas.NewDispatcher(token)
	d.Ignore(asaas.EventPaymentBankSlipViewed, "PAYMENT_CHECKOUT_VIEWED")
	work, err := d.Route(idem.Event{Type: string(asaas.EventPaymentBankSlipViewed), Payload: []byte(`{}`)})
	if work != nil || err != nil || !d.Ignores(string(asaas.EventPaymentBankSlipViewed)) {
		t.Errorf("got %v, want that it is ignored", err)
	}
}

// The token was changed in the application, and not at Asaas.
func TestHealthIsRedBeforeAsaasStopsAQueueForAWrongToken(t *testing.T) {
	t.Parallel()
	pool := testkit.Open(t)
	events := asaas.NewDispatcher("the new token of the shop, of 40 characters")
	events.AllowFrom = asaas.OfficialAddresses()
	inbox := idem.NewInbox(pool, events)
	inbox.Logger = slog.New(slog.DiscardHandler)
	h := health.New(inbox)
	h.Logger = nil
	isRed := func() bool {
		for _, c := range inbox.Examine(t.Context(), h.Limits) {
			if c.Name == "refused" {
				return !c.Healthy
			}
		}
		t.Fatal("there is no such check")
		return false
	}

	fake := asaastest.New()
	t.Cleanup(fake.Close)
	fake.AddWebhook(asaastest.Webhook{
		Token: "the old token of the shop, of 40 characters.",
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.RemoteAddr = asaas.OfficialAddresses()[1].Addr().String() + ":40000"
			inbox.ServeHTTP(w, r)
		}),
	})
	failures, redAt, paused := 0, 0, false
	fake.Observe = func(e asaastest.Entry) {
		switch e.Kind {
		case asaastest.Failed:
			if failures++; redAt == 0 && isRed() {
				redAt = failures
			}
		case asaastest.Paused:
			paused = true
		}
	}
	fake.Emit(asaastest.Event("PAYMENT_RECEIVED"))
	fake.Advance(13 * time.Hour)
	if !paused || failures != 15 || redAt != 5 {
		t.Errorf("health is red after %d of %d failures, paused %t; want 5 of 15 and paused", redAt, failures, paused)
	}
}
