package asaastest_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

// panicOf returns the text that f panics with, "" if it does not.
func panicOf(f func()) (said string) {
	defer func() {
		if v := recover(); v != nil {
			said = fmt.Sprint(v)
		}
	}()
	f()
	return ""
}

func TestEveryBodyIsAnEventOfItsOwn(t *testing.T) {
	t.Parallel()
	const each = 200
	var mu sync.Mutex
	var tests sync.WaitGroup
	ids := make(map[string]bool)
	for range 4 {
		tests.Go(func() {
			for range each {
				id := asaas.Identify(asaastest.Event("PAYMENT_RECEIVED")).ID
				mu.Lock()
				ids[id] = true
				mu.Unlock()
			}
		})
	}
	tests.Wait()
	if len(ids) != 4*each {
		t.Errorf("%d bodies have %d ids", 4*each, len(ids))
	}
}

func TestIDsLookLikeAsaass(t *testing.T) {
	t.Parallel()
	for _, eventType := range asaastest.Types() {
		body := asaastest.Sparse(eventType)
		id := asaas.Identify(body).ID
		hash, number, _ := strings.Cut(strings.TrimPrefix(id, "evt_"), "&")
		want := md5.Sum([]byte(eventType))
		if hash != hex.EncodeToString(want[:]) {
			t.Errorf("%s: %s does not have the hash of the type", eventType, id)
		}
		if n, err := strconv.ParseInt(number, 10, 64); err != nil || n <= 0 {
			t.Errorf("%s: %s does not end in a number", eventType, id)
		}
		if !bytes.Contains(body, []byte(id)) {
			t.Errorf("%s: the & of the id is escaped", eventType)
		}
	}
}

func TestBodiesDifferOnlyInTheirIDs(t *testing.T) {
	t.Parallel()
	id := asaastest.Set("id", "evt_1")
	for _, eventType := range asaastest.Types() {
		first, second := asaastest.Event(eventType, id), asaastest.Event(eventType, id)
		if !bytes.Equal(first, second) {
			t.Errorf("two bodies of %s differ:\n%s\n%s", eventType, first, second)
		}
	}
}

func TestAnIDAndATypeMayBeSet(t *testing.T) {
	t.Parallel()
	e := asaas.Identify(asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("id", "evt_1"), asaastest.Set("event", "PAYMENT_ON_THE_MOON")))
	parsed, err := asaas.Parse(e.Payload)
	if _, unknown := parsed.(*asaas.UnknownEvent); err != nil || e.ID != "evt_1" || e.Type != "PAYMENT_ON_THE_MOON" || !unknown {
		t.Errorf("it is %s, a %s of type %T, %v", e.ID, e.Type, parsed, err)
	}
}

func TestMistakesSayWhatThereIs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		why    string
		make   func()
		starts string
		has    string
	}{
		{"an event type", func() { asaastest.Event("PAYMENT_RECIEVED") }, `asaastest: there is no event type "PAYMENT_RECIEVED"; there are: PAYMENT_CREATED`, "PAYMENT_RECEIVED"},
		{"a field", func() { asaastest.Sparse("PAYMENT_RECEIVED", asaastest.Set("payment.valeu", 1)) }, "asaastest: PAYMENT_RECEIVED: there is no field payment.valeu; payment has: object, id", "value"},
		{"a kind", func() { asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("payment.value", "10.50")) }, "asaastest: PAYMENT_RECEIVED: payment.value is a number, and the value given is a string", "json.RawMessage"},
		{"a URL", func() { asaastest.Request("http://a b/", "a token", nil) }, "asaastest: ", "invalid character"},
	} {
		if got := panicOf(test.make); !strings.HasPrefix(got, test.starts) || !strings.Contains(got, test.has) {
			t.Errorf("%s: panics with %q, want it to start with %q and say %q", test.why, got, test.starts, test.has)
		}
	}
}

func TestMoneyAndDatesAreValuesToSet(t *testing.T) {
	t.Parallel()
	event, err := asaas.Parse(asaastest.Event("PAYMENT_RECEIVED",
		asaastest.Set("payment.value", asaas.Cents(1050)),
		asaastest.Set("payment.dueDate", asaas.Date("2026-12-24")),
		asaastest.Set("payment.status", asaas.PaymentStatusReceivedInCash)))
	if err != nil {
		t.Fatal(err)
	}
	p := event.(*asaas.PaymentEvent).Payment
	if p.Value != asaas.Cents(1050) || p.DueDate != "2026-12-24" || p.Status != asaas.PaymentStatusReceivedInCash {
		t.Errorf("got %s, %s, %s", p.Value, p.DueDate, p.Status)
	}
}

func TestRequestsAreGoodForAServer(t *testing.T) {
	t.Parallel()
	body := asaastest.Event("PAYMENT_RECEIVED")
	events := asaas.NewDispatcher("a token")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if e, err := events.Open(r); err != nil || !bytes.Equal(e.Payload, body) {
			http.Error(w, fmt.Sprint(err), http.StatusTeapot)
		}
	}))
	defer server.Close()
	answer, err := server.Client().Do(asaastest.Request(server.URL+"/webhooks/asaas", "a token", body))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("answered %s", answer.Status)
	}
}

func TestABodyHasWhatItsEventTypeSays(t *testing.T) {
	t.Parallel()
	for eventType, want := range map[asaas.EventType]struct {
		status asaas.PaymentStatus
		refund asaas.RefundStatus // "" where nothing is said about refunds
	}{
		asaas.EventPaymentCreated:             {asaas.PaymentStatusPending, ""},
		asaas.EventPaymentOverdue:             {asaas.PaymentStatusOverdue, ""},
		asaas.EventPaymentReceived:            {asaas.PaymentStatusReceived, ""},
		asaas.EventPaymentChargebackRequested: {asaas.PaymentStatusChargebackRequested, ""},
		asaas.EventPaymentRefunded:            {asaas.PaymentStatusRefunded, asaas.RefundStatusDone},
		asaas.EventPaymentPartiallyRefunded:   {asaas.PaymentStatusReceived, asaas.RefundStatusDone},
		asaas.EventPaymentRefundInProgress:    {asaas.PaymentStatusRefundInProgress, asaas.RefundStatusPending},
		asaas.EventPaymentRefundDenied:        {asaas.PaymentStatusReceived, asaas.RefundStatusCancelled},
		asaas.EventPaymentSplitDone:           {asaas.PaymentStatusReceived, ""},
	} {
		p, sparse := payment(t, asaastest.Event(eventType)).Payment, payment(t, asaastest.Sparse(eventType)).Payment
		refunds := p.Refunds.Or(nil)
		if p.Status != want.status || sparse.Status != want.status || len(refunds) != 1 || want.refund != "" && refunds[0].Status.Or("") != want.refund {
			t.Errorf("a %s is %s (sparse %s) with %+v, want %+v", eventType, p.Status, sparse.Status, refunds, want)
		}
		if part := refunds[0].Value.Or(p.Value); eventType == asaas.EventPaymentPartiallyRefunded && part.Cmp(p.Value) >= 0 {
			t.Errorf("the part of a %s is %s of %s", eventType, part, p.Value)
		}
	}
	event, err := asaas.Parse(asaastest.Event("INTERNAL_TRANSFER_DEBIT"))
	if err != nil {
		t.Fatal(err)
	}
	if data, _ := json.Marshal(event); !bytes.Contains(data, []byte(`"value":-`)) {
		t.Errorf("the amount of a debit is not negative: %s", data)
	}
}

// Asaas's ids and addresses as they are since November 2026.
func TestIDsAndAddressesLookLikeAsaass(t *testing.T) {
	t.Parallel()
	e := payment(t, asaastest.Event(asaas.EventPaymentSplitDone))
	if !chargeID.MatchString(e.Payment.ID) || e.Payment.Chargeback.Or(asaas.Chargeback{}).Payment.Or("") != e.Payment.ID {
		t.Errorf("the charge is %s, and that of its chargeback another", e.Payment.ID)
	}
	for _, url := range []string{e.Payment.InvoiceURL, e.Payment.BankSlipURL.Or(""), e.Payment.TransactionReceiptURL.Or("")} {
		if !strings.HasPrefix(url, "https://www.asaas.com/000/") {
			t.Errorf("the address is %s", url)
		}
	}
	if splits := e.Payment.Split.Or(nil); len(splits) != 1 || splits[0].ID.Or("") != e.SplitID() || splits[0].Status.Or("") != asaas.SplitStatusDone {
		t.Errorf("the event is about the split %s, of %+v", e.SplitID(), splits)
	}
}

func payment(t *testing.T, body []byte) *asaas.PaymentEvent {
	t.Helper()
	e, err := asaas.Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	return e.(*asaas.PaymentEvent)
}

func ExampleEvent() {
	body := asaastest.Event("PAYMENT_RECEIVED",
		asaastest.Set("payment.id", "pay_1_a1B2c3D4e5F6g7"),
		asaastest.Set("payment.value", 10.5),
		asaastest.Set("payment.externalReference", nil))

	event, err := asaas.Parse(body)
	if err != nil {
		fmt.Println(err)
		return
	}
	p := event.(*asaas.PaymentEvent).Payment
	fmt.Println(p.ID, p.Value, p.Status, p.ExternalReference.IsNull())
	// Output: pay_1_a1B2c3D4e5F6g7 10.50 RECEIVED true
}

// A handler is tested with the database that it writes to, see package
// idemtest; this one only prints.
func ExampleRequest() {
	events := asaas.NewDispatcher("the token")
	events.OnPaymentReceived(func(_ context.Context, _ pgx.Tx, e *asaas.PaymentEvent) error {
		fmt.Println(e.Payment.ID, "is paid")
		return nil
	})
	receive := func(w http.ResponseWriter, r *http.Request) { // stands for idem.NewInbox(pool, events)
		e, err := events.Open(r)
		if err == nil {
			err = events.Dispatch(r.Context(), nil, e)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
		}
	}

	body := asaastest.Event("PAYMENT_RECEIVED", asaastest.Set("payment.id", "pay_1_a1B2c3D4e5F6g7"))
	w := httptest.NewRecorder()
	receive(w, asaastest.Request("/webhooks/asaas", "the token", body))
	fmt.Println(w.Code)

	w = httptest.NewRecorder()
	receive(w, asaastest.Request("/webhooks/asaas", "another token", body))
	fmt.Println(w.Code)
	// Output:
	// pay_1_a1B2c3D4e5F6g7 is paid
	// 200
	// 401
}

func ExampleSparse() {
	body := asaastest.Sparse("PIX_AUTOMATIC_RECURRING_ELIGIBILITY_UPDATED", asaastest.Set("id", "evt_1"))
	fmt.Println(string(body))
	// Output: {"id":"evt_1","event":"PIX_AUTOMATIC_RECURRING_ELIGIBILITY_UPDATED","dateCreated":"2026-08-08 20:45:13","eligibility":{"status":"ELIGIBLE"}}
}

func ExampleSet() {
	body := asaastest.Sparse("PAYMENT_CONFIRMED",
		asaastest.Set("payment.creditCard.creditCardBrand", asaas.CreditCardBrandVisa), // makes payment.creditCard
		asaastest.Set("payment.split.0.walletId", "wallet-1"),                          // makes payment.split
		asaastest.Set("payment.split.1", map[string]any{"walletId": "wallet-2", "fixedValue": 5}),
		asaastest.Set("payment.netValue", json.RawMessage(`"9.90"`))) // a number becomes a string

	var sent struct {
		Payment struct{ CreditCard, Split, NetValue json.RawMessage }
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%s\n%s\n%s\n", sent.Payment.CreditCard, sent.Payment.Split, sent.Payment.NetValue)
	// Output:
	// {"creditCardBrand":"VISA"}
	// [{"walletId":"wallet-1"},{"fixedValue":5,"walletId":"wallet-2"}]
	// "9.90"
}

func ExampleSet_mistake() {
	defer func() { fmt.Println(recover()) }()
	asaastest.Event("PIX_AUTOMATIC_RECURRING_ELIGIBILITY_UPDATED", asaastest.Set("eligibility.state", "ELIGIBLE"))
	// Output: asaastest: PIX_AUTOMATIC_RECURRING_ELIGIBILITY_UPDATED: there is no field eligibility.state; eligibility has: status
}

func ExampleAdd() {
	body := asaastest.Event("PAYMENT_RECEIVED", asaastest.Add("payment.antifraud", map[string]int{"score": 7}))
	fmt.Println(bytes.Contains(body, []byte(`"antifraud":{"score":7}`)))
	// Output: true
}

func ExampleDelete() {
	event, err := asaas.Parse(asaastest.Event("PAYMENT_RECEIVED", asaastest.Delete("payment.creditCard")))
	fmt.Println(event.(*asaas.PaymentEvent).Payment.CreditCard.IsZero(), err)
	// Output: true <nil>
}

func ExampleTypes() {
	types := asaastest.Types()
	fmt.Println(types[:3])
	// Output: [PAYMENT_CREATED PAYMENT_UPDATED PAYMENT_AUTHORIZED]
}
