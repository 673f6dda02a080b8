package zeltapaytest_test

import (
	"bytes"
	"fmt"

	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

func ExampleEvent() {
	body := zeltapaytest.Event("payment.success",
		zeltapaytest.Set("transaction.amount", 2990),
		zeltapaytest.Set("metadata.orderId", "A-1"))

	event, err := zeltapay.Parse(body)
	if err != nil {
		fmt.Println(err)
		return
	}
	e := event.(*zeltapay.PaymentEvent)
	amount, _ := e.Amount()
	order, _ := e.LinkMetadata().String("orderId")
	fmt.Println(amount, e.Currency(), "for order", order)
	// Output: 2990 USD for order A-1
}

// A handler should take both layouts.
func ExampleLayout_Event() {
	for _, layout := range []zeltapaytest.Layout{zeltapaytest.Flat, zeltapaytest.Nested} {
		event, err := zeltapay.Parse(layout.Event("payment.success"))
		if err != nil {
			fmt.Println(err)
			continue
		}
		e := event.(*zeltapay.PaymentEvent)
		order, _ := e.LinkMetadata().String("orderId")
		fmt.Println(layout, order, e.Currency() != "")
	}
	// Output:
	// flat A-1001 true
	// nested A-1001 false
}

func ExampleSparse() {
	fmt.Println(string(zeltapaytest.Sparse("payment.success", zeltapaytest.Set("eventId", "evt_1"))))
	// Output: {"eventId":"evt_1","type":"payment.success","paymentLinkId":"pl_770391321967","accountId":null,"transaction":{"externalPaymentId":null,"amount":5741,"currency":null,"paymentMethod":null,"concept":null,"isTest":null}}
}

func ExampleLayout_Sparse() {
	fmt.Println(string(zeltapaytest.Nested.Sparse("payment.success", zeltapaytest.Set("eventId", "evt_1"))))
	// Output: {"eventId":"evt_1","type":"payment.success","paymentLink":{"id":"pl_770391321967","amount":5741}}
}

func ExampleRequest() {
	body := zeltapaytest.Event("webhook.ping")
	r := zeltapaytest.Request("/webhooks/zeltapay", "the secret", body)
	fmt.Println(zeltapay.Verify(r.Header, body, "the secret"))
	fmt.Println(r.Method, r.URL, r.Header.Get("Zeltapay-Event-Type"))
	// Output:
	// <nil>
	// POST /webhooks/zeltapay webhook.ping
}

func ExampleSet() {
	body := zeltapaytest.Nested.Sparse("payment.success", zeltapaytest.Set("eventId", "evt_1"),
		zeltapaytest.Set("paymentLink.amount", 2990), // makes paymentLink
		zeltapaytest.Set("customer.email", nil))      // makes customer
	fmt.Println(string(body))
	// Output: {"eventId":"evt_1","type":"payment.success","paymentLink":{"id":"pl_770391321967","amount":2990},"customer":{"email":null}}
}

func ExampleAdd() {
	body := zeltapaytest.Event("webhook.ping", zeltapaytest.Add("livemode", true))
	fmt.Println(bytes.HasSuffix(body, []byte(`,"livemode":true}`)))
	// Output: true
}

func ExampleDelete() {
	body := zeltapaytest.Nested.Event("payment.success", zeltapaytest.Delete("eventId"))
	e := zeltapay.Identify(body)
	fmt.Println(e.ID[:20])
	// Output: payment.success:txn_
}

func ExampleTypes() {
	fmt.Println(zeltapaytest.Types())
	// Output: [payment.success webhook.ping]
}
