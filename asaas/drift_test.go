package asaas_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/drift"
	"github.com/paghooks/paghooks/internal/testkit"
)

// shop counts what its handler was given.
func shop(t *testing.T) (*pgxpool.Pool, *asaas.Dispatcher, *idem.Inbox) {
	t.Helper()
	pool := testkit.Open(t)
	if _, err := pool.Exec(t.Context(), `create table received (amount numeric)`); err != nil {
		t.Fatal(err)
	}
	d := asaas.NewDispatcher(token)
	d.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
		_, err := tx.Exec(ctx, `insert into received values ($1)`, e.Payment.Value)
		return err
	})
	first := idem.NewInbox(pool, d)
	first.WorkFirst = true
	first.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	return pool, d, first
}

// An inbox looks at an event when it works on it, and not when it stores it.
func TestInboxCountsADifferenceOnce(t *testing.T) {
	t.Parallel()
	pool, d, _ := shop(t)
	inbox := idem.NewInbox(pool, d)
	inbox.Logger = nil
	worked := make(chan idem.Outcome, 2)
	inbox.Observe = func(_ context.Context, o idem.Observation) { worked <- o.Outcome }
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- inbox.Run(ctx) }()
	body := strings.Replace(string(testdata(t, "pix_received_unasked")), `"payment":{`, `"payment":{"tax":{"value":1.5},`, 1)
	inbox.ServeHTTP(httptest.NewRecorder(), delivery(token, body))
	if got := map[idem.Outcome]bool{<-worked: true, <-worked: true}; !got[idem.Pending] || !got[idem.Done] {
		t.Errorf("outcomes %v, want queued and handled", got)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if found := d.Drift(); len(found) != 1 || found[0].Count != 1 {
		t.Errorf("found %+v, want one, once", found)
	}
}

// What watches events decides nothing about them: were it a decode error, a charge
// would be parked because a metric could not be counted.
func TestDriftObserverThatPanicsChangesNothing(t *testing.T) {
	t.Parallel()
	_, d, first := shop(t)
	d.Watch.Observe = func(drift.Finding) { panic("no metrics") }
	body := strings.Replace(string(testdata(t, "pix_received_unasked")), `"payment":{`, `"payment":{"tax":{"value":1.5},`, 1)
	if o, err := first.Accept(t.Context(), asaas.Identify([]byte(body))); o != idem.Done || err != nil {
		t.Errorf("Accept = %s, %v, want done", o, err)
	}
	if found := d.Drift(); len(found) != 1 {
		t.Errorf("found %+v, want one", found)
	}
}

func TestReplayCountsADifferenceOnce(t *testing.T) {
	t.Parallel()
	pool, d, _ := shop(t)
	body := strings.Replace(string(testdata(t, "pix_received_unasked")), `"payment":{`, `"payment":{"tax":{"value":1.5},`, 1)
	before := idem.NewInbox(pool, asaas.NewDispatcher(token))
	before.WorkFirst = true // it has no handler
	before.Logger = nil
	before.ServeHTTP(httptest.NewRecorder(), delivery(token, body))
	first := idem.NewInbox(pool, d)
	first.WorkFirst = true
	first.Logger = nil
	if got, err := first.Replay(t.Context(), idem.Filter{}); got.Done != 1 || err != nil {
		t.Errorf("Replay = %+v, %v, want one handled", got, err)
	}
	if found := d.Drift(); len(found) != 1 || found[0].Count != 1 {
		t.Errorf("found %+v, want one, once", found)
	}
}

// The bodies in testdata have some news in them on purpose.
func TestBodiesAsAsaasSendsThemHaveNoOtherDrift(t *testing.T) {
	t.Parallel()
	d := asaas.NewDispatcher(token)
	for _, name := range bodies {
		_, _ = d.Route(asaas.Identify(testdata(t, name)))
	}
	for _, f := range d.Drift() {
		switch f.Path {
		case "payment.antifraud", "payment.split[].taxes", "payment.status",
			"payment.chargeback.reason", "payment.creditCard.creditCardBrand":
		default:
			t.Errorf("found %+v", f)
		}
	}
}

func TestAnIncompleteEventIsHandledOnceTheHandlerKnowsItsNewShape(t *testing.T) {
	t.Parallel()
	pool, _, first := shop(t)
	body := strings.Replace(string(testdata(t, "pix_received_unasked")), `"payment":{`, `"charge":{`, 1)
	first.ServeHTTP(httptest.NewRecorder(), delivery(token, body))

	var got string
	type charged struct {
		asaas.Envelope
		Charge asaas.Payment `json:"charge"`
	}
	d := asaas.NewDispatcher(token)
	idem.Handle(&d.Routes, "PAYMENT_RECEIVED", func(_ context.Context, _ pgx.Tx, e *charged) error {
		got = e.Charge.ID
		return nil
	})
	replayed, err := idem.NewInbox(pool, d).Replay(t.Context(), idem.Filter{})
	if err != nil || replayed.Done != 1 || got != "pay_1_x3k9F0q2m7T1v5" {
		t.Errorf("replayed %+v, %v, of the charge %q", replayed, err, got)
	}
}

func TestAnIncompleteEventIsNotHandledWhenItIsReplayedEither(t *testing.T) {
	t.Parallel()
	pool, _, first := shop(t)
	body := strings.Replace(string(testdata(t, "pix_received_unasked")), `"value":29.90`, `"value":null`, 1)
	first.ServeHTTP(httptest.NewRecorder(), delivery(token, body))
	replayed, err := first.Replay(t.Context(), idem.Filter{})
	var handled int
	_ = pool.QueryRow(t.Context(), `select count(*) from received`).Scan(&handled)
	if err != nil || replayed.Failed != 1 || handled != 0 {
		t.Errorf("replayed %+v, %v, handled %d times", replayed, err, handled)
	}
}

func TestDispatchRefusesIncompleteEventsToo(t *testing.T) {
	t.Parallel()
	d := asaas.NewDispatcher(token)
	d.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil })
	err := d.Dispatch(t.Context(), nil, asaas.Identify([]byte(`{"id":"evt_1&1","event":"PAYMENT_RECEIVED","payment":null}`)))
	if err == nil || !strings.Contains(err.Error(), "payment") {
		t.Errorf("got %v", err)
	}
	if len(d.Drift()) == 0 {
		t.Error("and it left no drift")
	}
}

func TestDriftTellsNoValues(t *testing.T) {
	t.Parallel()
	d := asaas.NewDispatcher(token)
	const secret = "maria.silva"
	for _, c := range changes {
		if c.New != "" {
			body := strings.Replace(string(testdata(t, "pix_received_unasked")), c.Old, c.New, 1)
			_, _ = d.Route(asaas.Identify([]byte(strings.ReplaceAll(body, "Cobran", secret))))
		}
	}
	_, _ = d.Route(asaas.Identify([]byte(`{"id":"1","event":"` + secret + `@example.com"}`)))
	found := d.Drift()
	for i := range found {
		found[i].First, found[i].Last = time.Time{}, time.Time{} // seconds such as 29.9 are no amount
	}
	text, err := json.Marshal(found)
	if err != nil || strings.Contains(string(text), secret) || strings.Contains(string(text), "29.9") {
		t.Errorf("%s, %v", text, err)
	}
}

// BenchmarkWatch tells what the watch adds to a body's way from its request to
// its handler. Both ways are measured in turns, for what else the machine does.
func BenchmarkWatch(b *testing.B) {
	body := testdata(b, "pix_received_unasked")
	r := delivery(token, string(body))
	d := asaas.NewDispatcher(token)
	d.OnPaymentReceived(func(context.Context, pgx.Tx, *asaas.PaymentEvent) error { return nil })
	var with, without time.Duration
	way := func(route func(idem.Event) (idem.Work, error)) time.Duration {
		start := time.Now()
		e, err := d.Open(withBody(r, body))
		if err != nil {
			b.Fatal(err)
		}
		if work, err := route(e); work == nil || err != nil {
			b.Fatal("no handler: ", err)
		}
		return time.Since(start)
	}
	for b.Loop() {
		without += way(d.Routes.Route)
		with += way(d.Route)
	}
	b.ReportMetric(float64(without.Nanoseconds())/float64(b.N), "unwatched-ns")
	b.ReportMetric(float64(with.Nanoseconds())/float64(b.N), "watched-ns")
	b.ReportMetric(float64(with)/float64(without), "ratio")
}
