package drift_test

import (
	"fmt"

	"github.com/paghooks/paghooks/idem/drift"
)

func Example() {
	type Payment struct {
		ID string `json:"id"`
	}
	type PaymentEvent struct {
		Payment Payment `json:"payment"`
	}
	var watch drift.Watch // a dispatcher has one
	watch.Observe = func(f drift.Finding) { fmt.Println("new:", f.Path, f.Kind) }
	for _, body := range []string{
		`{"payment":{"id":"pay_1","tax":{"value":1.50}}}`,
		`{"payment":{"id":"pay_2","tax":{"value":2.50}}}`,
	} {
		watch.Look("PAYMENT_RECEIVED", new(PaymentEvent), false, []byte(body))
	}
	for _, f := range watch.Findings() {
		fmt.Println(f.EventType, f.Path, f.Kind, f.Count)
	}
	// Output:
	// new: payment.tax unknown_field
	// PAYMENT_RECEIVED payment.tax unknown_field 2
}

func ExampleCheck() {
	type Payment struct {
		ID    string `json:"id"`
		Value int    `json:"value"`
	}
	type PaymentEvent struct {
		Payment Payment `json:"payment"`
	}
	// What encoding/json made of {"payment":{"id":"pay_1","value":null}}.
	event := &PaymentEvent{Payment{ID: "pay_1", Value: 0}}
	fmt.Println(drift.Check(event, []byte(`{"payment":{"id":"pay_1","value":null}}`)))
	// Output:
	// drift: payment.value is null, and zero would be a guess: look for a newer version of this module
}
