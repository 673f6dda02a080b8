package asaastest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/asaastest"
)

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
	receive := func(w http.ResponseWriter, r *http.Request) { // stands for idem.NewProcessor(pool, events)
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
