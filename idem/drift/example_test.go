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
		watch.Look("PAYMENT_RECEIVED", new(PaymentEvent), nil, []byte(body))
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
		Value int `json:"value"`
	}
	type PaymentEvent struct {
		Payment Payment `json:"payment"`
	}
	for _, body := range []string{`{"payment":{"value":0}}`, `{"payment":{"value":null}}`} {
		var e PaymentEvent // encoding/json makes the same of both bodies
		fmt.Println(drift.Check([]byte(body), []drift.Essential{
			{Zero: e.Payment.Value == 0, Paths: []string{"payment.value"}},
		}))
	}
	// Output:
	// <nil>
	// drift: payment.value is null, and the event is nothing without it: look for a newer version of this module
}
