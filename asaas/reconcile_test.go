package asaas_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/optional"
)

// merchant is an application with a database, behind a fake Asaas, both over HTTP.
type merchant struct {
	pool      *pgxpool.Pool
	processor *idem.Processor
	asaas     *asaastest.Fake
	client    *asaas.Client
	webhook   string
}

func newMerchant(t *testing.T) *merchant {
	t.Helper()
	m := &merchant{pool: idemtest.Pool(t), asaas: asaastest.NewServer()}
	t.Cleanup(m.asaas.Close)
	if err := idem.Migrate(t.Context(), m.pool); err != nil {
		t.Fatal(err)
	}
	if _, err := m.pool.Exec(t.Context(), `create table effects (charge text, state text, primary key (charge, state))`); err != nil {
		t.Fatal(err)
	}
	events := asaas.NewDispatcher(webhookToken)
	book := func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		_, err := tx.Exec(ctx, `insert into effects values ($1, $2) on conflict do nothing`, e.Payment.ID, asaas.StateOf(&e.Payment))
		return err
	}
	for _, on := range []func(idem.Handler[*asaas.PaymentEvent]){
		events.OnPaymentCreated, events.OnPaymentConfirmed, events.OnPaymentReceived, events.OnPaymentRefunded, events.OnPaymentDeleted, events.OnPaymentOverdue,
	} {
		on(book)
	}
	m.processor = idem.NewProcessor(m.pool, events)
	m.processor.Logger = slog.New(slog.DiscardHandler)
	server := httptest.NewServer(m.processor)
	t.Cleanup(server.Close)
	m.webhook = m.asaas.AddWebhook(asaastest.Webhook{URL: server.URL, Token: webhookToken, Events: events.Types()})
	client, err := asaas.NewClient(asaas.Sandbox, m.asaas.APIKey)
	if err != nil {
		t.Fatal(err)
	}
	client.BaseURL = m.asaas.URL + "/v3"
	client.Wait = func(ctx context.Context, _ time.Duration) error { return context.Cause(ctx) }
	m.client = client
	return m
}

// emit lets events happen, and delivers them.
func (m *merchant) emit(bodies ...[]byte) {
	m.asaas.Emit(bodies...)
	m.asaas.Settle()
}

// disabled lets events happen while Asaas makes none for the webhook.
func (m *merchant) disabled(t *testing.T, bodies ...[]byte) {
	t.Helper()
	for _, enabled := range []bool{false, true} {
		if _, err := m.client.UpdateWebhook(t.Context(), m.webhook, asaas.WebhookUpdate{Enabled: optional.Of(enabled)}); err != nil {
			t.Fatal(err)
		}
		if !enabled {
			m.emit(bodies...)
		}
	}
}

// gap is the gap of three weeks from the begin of the fake's time.
func (m *merchant) gap() asaas.Reconciliation {
	begin := time.Date(2026, 8, 9, 12, 0, 0, 0, time.UTC)
	return asaas.Reconciliation{WebhookID: m.webhook, Events: m.processor, Since: begin, Until: begin.AddDate(0, 0, 21)}
}

// report runs Reconcile to its end: its differences, and its last progress.
func (m *merchant) report(t *testing.T, r asaas.Reconciliation) (differences []string, last asaas.ReconcileProgress) {
	t.Helper()
	for p, err := range asaas.Reconcile(t.Context(), m.client, r) {
		if err != nil {
			t.Fatal(err)
		}
		if p.Difference != nil {
			differences = append(differences, p.String()+" by "+p.Difference.FoundBy)
		}
		last = p
	}
	slices.Sort(differences)
	return differences, last
}

func chargeOn(billing asaas.BillingType, day int) *asaastest.Charge {
	c := asaastest.NewCharge(billing, asaas.Cents(12990))
	c.Now = time.Date(2026, 8, day, 10, 0, 0, 0, asaas.Brasilia())
	c.Payment.DateCreated = asaas.Date(c.Now.Format(time.DateOnly))
	return c
}

func TestAfterAQueueWasStoppedFor15DaysTheReportNamesExactlyWhatNeverCame(t *testing.T) {
	t.Parallel()
	m := newMerchant(t)
	var charges []*asaastest.Charge
	for range 4 {
		c := chargeOn(asaas.BillingTypePix, 9)
		charges = append(charges, c)
		m.emit(c.Created())
	}
	m.emit(charges[3].Received()) // in time
	if _, err := m.client.UpdateWebhook(t.Context(), m.webhook, asaas.WebhookUpdate{Interrupted: optional.Of(true)}); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, c := range charges[:3] {
		c.Now = c.Now.AddDate(0, 0, 1)
		m.emit(c.Received())
		want = append(want, c.Payment.ID+" is RECEIVED; missing: PAYMENT_RECEIVED since 2026-08-10 by created")
	}
	slices.Sort(want)
	m.asaas.Advance(15 * 24 * time.Hour)
	if got, last := m.report(t, m.gap()); got != nil || last.Step != asaas.ReconcileHeldUp {
		t.Errorf("while the queue is stopped: %v, %s", got, last)
	}
	if err := m.client.Resume(t.Context(), m.webhook); err != nil {
		t.Fatal(err)
	}
	m.asaas.Settle()
	got, last := m.report(t, m.gap())
	if diff := cmp.Diff(want, got); diff != "" || last.Step != asaas.ReconcileDone || last.Counts.Charges != 4 {
		t.Errorf("%s (-want +got):\n%s", last, diff)
	}
}

func TestReconcileFindsWhatNoEventTold(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		reason string
		setUp  func(t *testing.T, m *merchant, r *asaas.Reconciliation) *asaastest.Charge
		want   string // after the id; "" for nothing
	}{
		{"the refund of an old charge is in the statement", func(t *testing.T, m *merchant, r *asaas.Reconciliation) *asaastest.Charge {
			c := chargeOn(asaas.BillingTypePix, 1)
			m.emit(c.Created(), c.Received())
			c.Now = c.Now.AddDate(0, 0, 15)
			m.disabled(t, c.Refunded())
			return c
		}, " is REFUNDED; missing: PAYMENT_REFUNDED since 2026-08-16 by statement"},
		{"the second of two refunds", func(t *testing.T, m *merchant, r *asaas.Reconciliation) *asaastest.Charge {
			c := chargeOn(asaas.BillingTypePix, 1)
			m.emit(c.Created(), c.Received())
			if _, err := m.processor.Accept(t.Context(), asaas.Identify(c.PartiallyRefunded(asaas.Cents(1000)))); err != nil {
				t.Fatal(err)
			}
			c.Now = c.Now.AddDate(0, 0, 15)
			m.disabled(t, c.PartiallyRefunded(asaas.Cents(2000)))
			r.Types = []asaas.EventType{asaas.EventPaymentPartiallyRefunded}
			return c
		}, " is RECEIVED; missing: PAYMENT_PARTIALLY_REFUNDED; waiting: PAYMENT_PARTIALLY_REFUNDED since 2026-08-16 by statement"},
		{"a card that is confirmed, of an old charge", func(t *testing.T, m *merchant, r *asaas.Reconciliation) *asaastest.Charge {
			c := chargeOn(asaas.BillingTypeCreditCard, 1)
			m.emit(c.Created())
			c.Now = c.Now.AddDate(0, 0, 10)
			m.disabled(t, c.Confirmed())
			return c
		}, " is CONFIRMED; missing: PAYMENT_CONFIRMED since 2026-08-11 by confirmed"},
		{"an open charge that is removed", func(t *testing.T, m *merchant, r *asaas.Reconciliation) *asaastest.Charge {
			c := chargeOn(asaas.BillingTypeBoleto, 1)
			m.emit(c.Created())
			m.disabled(t, c.Deleted())
			r.Open = []string{c.Payment.ID}
			return c
		}, " is DELETED; missing: PAYMENT_DELETED by open"},
		{"an open charge that Asaas does not have", func(t *testing.T, m *merchant, r *asaas.Reconciliation) *asaastest.Charge {
			c := chargeOn(asaas.BillingTypeBoleto, 1)
			r.Open, r.Retention = []string{c.Payment.ID}, 10*365*24*time.Hour
			return c
		}, " is DELETED; not known: PAYMENT_CREATED PAYMENT_DELETED by open"},
		{"a boleto that was paid and handled", func(t *testing.T, m *merchant, r *asaas.Reconciliation) *asaastest.Charge {
			c := chargeOn(asaas.BillingTypeBoleto, 10)
			m.emit(c.Created(), c.Confirmed(), c.Received())
			return c
		}, ""},
		{"a charge made by hand", func(t *testing.T, m *merchant, r *asaas.Reconciliation) *asaastest.Charge {
			c := chargeOn(asaas.BillingTypePix, 10)
			m.disabled(t, c.Created(), c.Received())
			r.Says = func(context.Context, *asaas.Payment) (string, bool, error) { return "", false, nil }
			return c
		}, " is RECEIVED; missing: PAYMENT_CREATED PAYMENT_RECEIVED since 2026-08-10; the application does not know the charge by created"},
		{"the application agrees", func(t *testing.T, m *merchant, r *asaas.Reconciliation) *asaastest.Charge {
			c := chargeOn(asaas.BillingTypePix, 10)
			m.disabled(t, c.Created(), c.Received())
			r.Says = func(_ context.Context, p *asaas.Payment) (string, bool, error) { return asaas.StateOf(p), true, nil }
			return c
		}, ""},
		{"everything was handled, and the application says otherwise", func(t *testing.T, m *merchant, r *asaas.Reconciliation) *asaastest.Charge {
			c := chargeOn(asaas.BillingTypePix, 10)
			m.emit(c.Created(), c.Received())
			r.Says = func(context.Context, *asaas.Payment) (string, bool, error) { return "open", true, nil }
			return c
		}, " is RECEIVED; the application says open by created"},
		{"what happened in the last hour", func(t *testing.T, m *merchant, r *asaas.Reconciliation) *asaastest.Charge {
			c := chargeOn(asaas.BillingTypePix, 10)
			m.disabled(t, c.Created(), c.Received())
			r.Until = c.Now.Add(30 * time.Minute)
			return c
		}, ""},
		{"what is older than Retention", func(t *testing.T, m *merchant, r *asaas.Reconciliation) *asaastest.Charge {
			c := chargeOn(asaas.BillingTypePix, 10)
			m.disabled(t, c.Created(), c.Received())
			r.Retention = 5 * 24 * time.Hour
			return c
		}, " is RECEIVED; not known: PAYMENT_CREATED PAYMENT_RECEIVED since 2026-08-10 by created"},
		{"a type that the application does not need", func(t *testing.T, m *merchant, r *asaas.Reconciliation) *asaastest.Charge {
			c := chargeOn(asaas.BillingTypePix, 10)
			m.disabled(t, c.Created())
			r.Types = []asaas.EventType{asaas.EventPaymentReceived}
			return c
		}, ""},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			m := newMerchant(t)
			r := m.gap()
			c := tt.setUp(t, m, &r)
			var want []string
			if tt.want != "" {
				want = []string{c.Payment.ID + tt.want}
			}
			got, last := m.report(t, r)
			if diff := cmp.Diff(want, got); diff != "" || last.Step != asaas.ReconcileDone {
				t.Errorf("%s (-want +got):\n%s", last, diff)
			}
		})
	}
}

// The genuine event of a charge that was repaired comes late.
func TestALateEventMeetsWhatWasRepaired(t *testing.T) {
	t.Parallel()
	m := newMerchant(t)
	c := chargeOn(asaas.BillingTypePix, 10)
	m.emit(c.Created())
	late := c.Received()
	m.disabled(t, late)
	settings := m.gap()
	settings.Says = func(ctx context.Context, p *asaas.Payment) (state string, known bool, err error) {
		err = m.pool.QueryRow(ctx, `select coalesce(max(state) filter (where state = $2), 'open'), count(*) > 0 from effects where charge = $1`,
			p.ID, asaas.StateOf(p)).Scan(&state, &known)
		return state, known, err
	}
	for p, err := range asaas.Reconcile(t.Context(), m.client, settings) {
		if err != nil {
			t.Fatal(err)
		}
		if d := p.Difference; d != nil {
			if _, err := m.pool.Exec(t.Context(), `insert into effects values ($1, $2) on conflict do nothing`, d.Charge, d.State); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got, last := m.report(t, settings); got != nil || last.Step != asaas.ReconcileDone {
		t.Errorf("after the repair: %v, %s", got, last)
	}
	if outcome, err := m.processor.Accept(t.Context(), asaas.Identify(late)); outcome != idem.Done || err != nil {
		t.Errorf("the late event is %s, %v", outcome, err)
	}
	var effects int
	if err := m.pool.QueryRow(t.Context(), `select count(*) from effects where charge = $1 and state = 'RECEIVED'`, c.Payment.ID).Scan(&effects); err != nil || effects != 1 {
		t.Errorf("%d effects, %v", effects, err)
	}
}

func TestReconcileRefusesSettingsThatCannotWork(t *testing.T) {
	t.Parallel()
	m := &merchant{client: clientOf(t)}
	for _, tt := range []struct {
		says   string
		change func(*asaas.Reconciliation)
	}{
		{"there is no Events", func(r *asaas.Reconciliation) { r.Events = nil }},
		{"there is no Since", func(r *asaas.Reconciliation) { r.Since = time.Time{} }},
		{"the gap ends before it begins", func(r *asaas.Reconciliation) { r.Since = r.Until }},
		{"there are too few Calls", func(r *asaas.Reconciliation) { r.Calls = 1 }},
		{"a time is negative", func(r *asaas.Reconciliation) { r.Grace = -1 }},
		{"the cursor to resume at is of another version", func(r *asaas.Reconciliation) {
			r.Resume = &asaas.ReconcileCursor{Since: r.Since, Until: r.Until, Scan: 100}
		}},
	} {
		r := m.gap()
		r.Events = (*idem.Processor)(nil)
		tt.change(&r)
		for _, err := range asaas.Reconcile(t.Context(), m.client, r) {
			if err == nil || !strings.HasPrefix(err.Error(), "asaas: Reconcile: "+tt.says) {
				t.Errorf("got %v, want %q", err, tt.says)
			}
		}
	}
}

// A proxy that knows no such path does not say that a charge is removed.
func TestAPageOfAProxyDeletesNoCharge(t *testing.T) {
	t.Parallel()
	m := newMerchant(t)
	r := m.gap()
	r.Open = []string{"pay_1_a1B2c3D4e5F6g7"}
	for range 30 {
		m.asaas.InjectAPI(func(w http.ResponseWriter, r *http.Request, api http.Handler) {
			if strings.HasPrefix(r.URL.Path, "/v3/payments/") {
				asaastest.APIPage(http.StatusNotFound)(w, r, api)
				return
			}
			api.ServeHTTP(w, r)
		})
	}
	var failed error
	for p, err := range asaas.Reconcile(t.Context(), m.client, r) {
		if failed = err; p.Difference != nil || p.Step == asaas.ReconcileDone {
			t.Errorf("it reports %s", p)
		}
	}
	if failed == nil || !strings.Contains(failed.Error(), "the answer is HTML, not Asaas's") {
		t.Errorf("the error is %v", failed)
	}
}

// A charge that Asaas does not have has no amount, which is not an amount of 0.
func TestAChargeThatAsaasDoesNotHaveHasNoAmount(t *testing.T) {
	t.Parallel()
	m := newMerchant(t)
	r := m.gap()
	r.Open = []string{"pay_1_a1B2c3D4e5F6g7"}
	var said strings.Builder
	for p, err := range asaas.Reconcile(t.Context(), m.client, r) {
		if err != nil {
			t.Fatal(err)
		}
		if p.Difference != nil {
			text, err := json.Marshal(p.Difference)
			if err != nil {
				t.Fatal(err)
			}
			said.WriteString(string(text))
		}
	}
	if !strings.Contains(said.String(), `"state":"DELETED"`) || strings.Contains(said.String(), `"value"`) {
		t.Errorf("it reports %s", said.String())
	}
}

func TestAPageOfLongChargesIsRead(t *testing.T) {
	t.Parallel()
	m := newMerchant(t)
	var bodies [][]byte
	for range 100 {
		c := chargeOn(asaas.BillingTypePix, 12)
		c.Payment.Description = optional.Of(strings.Repeat("x", 20_000))
		bodies = append(bodies, c.Created())
	}
	m.disabled(t, bodies...)
	if _, last := m.report(t, m.gap()); last.Step != asaas.ReconcileDone || last.Counts.Charges != 100 {
		t.Errorf("it ends with %s", last)
	}
}
