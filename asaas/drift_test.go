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

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/drift"
	"github.com/paghooks/paghooks/internal/testkit"
)

// change is something that Asaas might do to its payments one day.
type change struct {
	reason    string
	old, new  string // what is replaced in the body, once
	state     string // what becomes of the event
	lastError string // the path that it tells
	found     string // the finding
}

var changes = []change{
	{"nothing", "", "", "done", "", ""},
	{"an unknown event type", `"PAYMENT_RECEIVED"`, `"PAYMENT_NEWS"`, "unhandled", "", "unknown_event "},
	{"an unknown family key", `"payment":{"object"`, `"charge":{"object"`, "parked", "payment is missing", "unknown_field charge, missing_required payment"},
	{"the family is null", `"payment":{`, `"payment":null,"old":{`, "parked", "payment is null", "unknown_field old, unexpected_null payment"},
	{"an unknown field", `"payment":{`, `"payment":{"tax":{"value":1.5},`, "done", "", "unknown_field payment.tax"},
	{"an unknown field of the envelope", `"event"`, `"signature":"x","event"`, "done", "", "unknown_field signature"},
	{"an unknown field deep inside", `"refunds":null`, `"refunds":[{"fee":1}]`, "done", "", "unknown_field payment.refunds[].fee"},
	{"an unknown enum value", `"billingType":"PIX"`, `"billingType":"DREX"`, "done", "", "unknown_value payment.billingType"},
	{"an unknown value deep inside", `"value":0.00,"type":"FIXED"}`, `"value":0.00,"type":"POINTS"}`, "done", "", "unknown_value payment.fine.type"},
	{"null for an amount", `"value":29.90`, `"value":null`, "parked", "payment.value is null", "unexpected_null payment.value"},
	{"null for an enum", `"status":"RECEIVED"`, `"status": null`, "parked", "payment.status is null", "unexpected_null payment.status"},
	{"null for an id", `"id":"pay_`, `"id":null,"x":"pay_`, "parked", "payment.id is null", "unexpected_null payment.id, unknown_field payment.x"},
	{"no amount", `"value":29.90,`, ``, "parked", "payment.value is missing", "missing_required payment.value"},
	{"an amount of 0 that is sent", `"status":"RECEIVED"`, `"status":"RECEIVED","originalValue":0`, "done", "", ""},
	{"null for a flag", `"anticipable":false`, `"anticipable":null`, "done", "", "unexpected_null payment.anticipable"},
	{"no flag", `"anticipable":false,`, ``, "done", "", "missing_required payment.anticipable"},
	{"null for a net amount", `"netValue":28.91`, `"netValue":null`, "done", "", "unexpected_null payment.netValue"},
	{"no net amount", `"netValue":28.91,`, ``, "done", "", "missing_required payment.netValue"},
	{"null for a bool", `"deleted":false`, `"deleted":null`, "done", "", "unexpected_null payment.deleted"},
	{"null in a list", `"refunds":null`, `"refunds":[null]`, "done", "", "unexpected_null payment.refunds[]"},
	{"null, where null may be", `"refunds":null`, `"refunds":null,"chargeback":null`, "done", "", ""},
	{"an amount as a string", `"value":29.90`, `"value":"29.90"`, "done", "", "changed_type payment.value"},
	{"a whole number as a string", `"dueDateLimitDays":0`, `"dueDateLimitDays":"0"`, "done", "", "changed_type payment.discount.dueDateLimitDays"},
	{"an amount as a word", `"value":29.90`, `"value":"a lot"`, "parked", "payment.value", "changed_type payment.value"},
	{"an amount as an object", `"value":29.90`, `"value":{"cents":2990}`, "parked", "payment.value", "changed_type payment.value"},
	{"an amount with too many digits", `"value":29.90`, `"value":29.900000000000000000001`, "parked", "payment.value", "changed_type payment.value"},
	{"an id as a number", `"id":"pay_1_x3k9F0q2m7T1v5"`, `"id":123`, "parked", "payment.id", "changed_type payment.id"},
	{"a date as a number", `"dueDate":"2026-08-08"`, `"dueDate":1786147200`, "parked", "payment.dueDate", "changed_type payment.dueDate"},
	{"a bool as a string", `"deleted":false`, `"deleted":"false"`, "parked", "payment.deleted", "changed_type payment.deleted"},
	{"a string as an object", `"description":"`, `"description":{"pt":"x"},"x":"`, "parked", "payment.description", "changed_type payment.description, unknown_field payment.x"},
	{"an object as a list", `"fine":{"value":0.00,"type":"FIXED"}`, `"fine":[{"value":0.00}]`, "parked", "payment.fine", "changed_type payment.fine"},
	{"a list as an object", `"refunds":null`, `"refunds":{"data":[]}`, "parked", "payment.refunds", "changed_type payment.refunds"},
	{"a changed type in a list", `"refunds":null`, `"refunds":[{"value":1},{"value":true}]`, "parked", "payment.refunds.value", "changed_type payment.refunds[].value"},
	{"the family as a list", `"payment":{"object"`, `"payment":[],"old":{"object"`, "parked", "payment", "unknown_field old, changed_type payment"},
	{"no JSON any more", `{"id":"evt`, `{"id:"evt`, "parked", "JSON that is not whole", "unreadable "},
}

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

func TestNoChangeLosesAnEventOrIsHandledHalf(t *testing.T) {
	t.Parallel()
	pool, d, first := shop(t)
	d.Watch.Every = 1
	original := string(testdata(t, "pix_received_unasked"))
	for _, c := range changes {
		body := strings.Replace(original, c.old, c.new, 1)
		if body == original && c.old != "" {
			t.Fatalf("%s: there is no %s", c.reason, c.old)
		}
		if _, err := pool.Exec(t.Context(), `truncate received, idem_events, idem_payloads`); err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		first.ServeHTTP(w, delivery(token, body))
		if w.Code != 200 {
			t.Errorf("%s: Asaas is answered %d", c.reason, w.Code)
		}
		var state, lastError, kept string
		var handled int
		err := pool.QueryRow(t.Context(), `select state, coalesce(last_error, ''), coalesce(convert_from(body, 'UTF8'), ''), (select count(*) from received where amount = 29.90)
			from idem_events left join idem_payloads using (event)`).Scan(&state, &lastError, &kept, &handled)
		if err != nil || state != c.state || !strings.Contains(lastError, c.lastError) || c.lastError == "" && lastError != "" {
			t.Errorf("%s: it is %s, %q, %v; want %s, %q", c.reason, state, lastError, err, c.state, c.lastError)
		}
		if done := state == "done"; (handled == 1) != done || !done && kept != body {
			t.Errorf("%s: handled %d times, kept %q", c.reason, handled, kept)
		}
	}
	for _, c := range changes {
		for want := range strings.SplitSeq(c.found, ", ") {
			kind, path, _ := strings.Cut(want, " ")
			if !hasFinding(d.Drift(), drift.Kind(kind), path) && want != "" {
				t.Errorf("%s: %q is not in the drift", c.reason, want)
			}
		}
	}
}

func hasFinding(all []drift.Finding, kind drift.Kind, path string) bool {
	for _, f := range all {
		if f.Kind == kind && f.Path == path {
			return true
		}
	}
	return false
}

func TestDriftIsWhatWasSeenAndNothingElse(t *testing.T) {
	t.Parallel()
	original := string(testdata(t, "pix_received_unasked"))
	for _, c := range changes {
		d := asaas.NewDispatcher(token)
		var told []string
		d.Watch.Observe = func(f drift.Finding) { told = append(told, string(f.Kind)+" "+f.Path) }
		for range 2 {
			_, _ = d.Route(asaas.Identify([]byte(strings.Replace(original, c.old, c.new, 1))))
		}
		var got []string
		for _, f := range d.Drift() {
			got = append(got, string(f.Kind)+" "+f.Path)
			if f.Count != 2 || f.First.IsZero() || f.Last.Before(f.First) {
				t.Errorf("%s: %+v was seen twice", c.reason, f)
			}
		}
		if diff := cmp.Diff(c.found, strings.Join(got, ", ")); diff != "" || len(told) != len(got) {
			t.Errorf("%s: told %q (-want +got):\n%s", c.reason, told, diff)
		}
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
		if c.new != "" {
			body := strings.Replace(string(testdata(t, "pix_received_unasked")), c.old, c.new, 1)
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
