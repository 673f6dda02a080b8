package zeltapaytest_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

var layouts = []zeltapaytest.Layout{zeltapaytest.Flat, zeltapaytest.Nested}

func TestEveryBodyIsAnEventOfItsOwn(t *testing.T) {
	t.Parallel()
	ids := make(map[string]bool)
	made := 0
	for _, eventType := range zeltapaytest.Types() {
		for _, layout := range layouts {
			for range 50 {
				ids[zeltapay.Identify(layout.Event(eventType)).ID] = true
				ids[zeltapay.Identify(layout.Sparse(eventType)).ID] = true
				made += 2
			}
		}
	}
	if len(ids) != made {
		t.Errorf("%d bodies have %d ids", made, len(ids))
	}
}

func TestLayoutsAreAsDocumented(t *testing.T) {
	t.Parallel()
	for layout, parts := range map[zeltapaytest.Layout]struct{ with, without []string }{
		zeltapaytest.Flat: {
			[]string{`"paymentLinkId":"pl_`, `"externalPaymentId"`, `"paidAt"`, `"customerEmail"`},
			[]string{`"paymentLink":`, `"completedAt"`, `"email"`},
		},
		zeltapaytest.Nested: {
			[]string{`"paymentLink":{"id":"pl_`, `"transaction":{"id":"txn_`, `"completedAt"`, `"email"`},
			[]string{`"paymentLinkId"`, `"accountId"`, `"paidAt"`, `"currency"`, `"customerEmail"`},
		},
	} {
		body := layout.Event("payment.success")
		for _, part := range parts.with {
			if !bytes.Contains(body, []byte(part)) {
				t.Errorf("%s lacks %s: %s", layout, part, body)
			}
		}
		for _, part := range parts.without {
			if bytes.Contains(body, []byte(part)) {
				t.Errorf("%s has %s: %s", layout, part, body)
			}
		}
	}
}

func TestAPingIsTheSameInEveryLayout(t *testing.T) {
	t.Parallel()
	id := zeltapaytest.Set("eventId", "evt_1")
	flat, nested := zeltapaytest.Flat.Event("webhook.ping", id), zeltapaytest.Nested.Event("webhook.ping", id)
	if !bytes.Equal(flat, nested) || !bytes.Equal(flat, zeltapaytest.Event("webhook.ping", id)) {
		t.Errorf("pings differ:\n%s\n%s", flat, nested)
	}
}

func TestRequestsAreSignedNowWithAllHeaders(t *testing.T) {
	t.Parallel()
	for _, layout := range layouts {
		body := layout.Event("payment.success", zeltapaytest.Set("eventId", "evt_1"))
		r := zeltapaytest.Request("/", "a secret", body)
		if err := zeltapay.Verify(r.Header, body, "a secret"); err != nil {
			t.Errorf("%s: %v", layout, err)
		}
		for name, want := range map[string]string{
			"Content-Type":              "application/json",
			"Zeltapay-Event-Id":         "evt_1",
			"Zeltapay-Event-Type":       "payment.success",
			"Zeltapay-Delivery-Attempt": "1",
		} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", layout, name, got, want)
			}
		}
	}
}

func TestABodyWithoutAnIDGetsOneInItsHeader(t *testing.T) {
	t.Parallel()
	body := zeltapaytest.Nested.Event("payment.success", zeltapaytest.Delete("eventId"))
	id := zeltapaytest.Request("/", "a secret", body).Header.Get("Zeltapay-Event-Id")
	if !strings.HasPrefix(id, "evt_") {
		t.Errorf("the header has %q", id)
	}
	if _, err := zeltapay.NewDispatcher("a secret").Open(zeltapaytest.Request("/", "a secret", body)); err != nil {
		t.Error(err)
	}
}

func TestMistakesSayWhatThereIs(t *testing.T) {
	t.Parallel()
	for want, mistake := range map[string]func(){
		`zeltapaytest: there is no event type "payment.failed"; there are: payment.success, webhook.ping`: func() {
			zeltapaytest.Event("payment.failed")
		},
		"zeltapaytest: payment.success: there is no field paymentLinkId; the body has: eventId, type, createdAt, paymentLink, transaction, customer": func() {
			zeltapaytest.Nested.Sparse("payment.success", zeltapaytest.Set("paymentLinkId", "pl_1"))
		},
		"zeltapaytest: webhook.ping: ok is a boolean, and the value given is a string; give a json.RawMessage to send it all the same": func() {
			zeltapaytest.Event("webhook.ping", zeltapaytest.Set("ok", "yes"))
		},
	} {
		panics(t, want, mistake)
	}
}

func TestMetadataTakesEveryName(t *testing.T) {
	t.Parallel()
	for layout, path := range map[zeltapaytest.Layout]string{
		zeltapaytest.Flat: "metadata", zeltapaytest.Nested: "paymentLink.metadata",
	} {
		for _, change := range []zeltapaytest.Change{
			zeltapaytest.Set(path+".sku", "vase-7"),
			zeltapaytest.Set(path, map[string]any{"sku": "vase-7", "gift": true}),
			zeltapaytest.Set(path, zeltapay.Metadata{"sku": []byte(`"vase-7"`)}),
		} {
			event, err := zeltapay.Parse(layout.Event("payment.success", change))
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := event.(*zeltapay.PaymentEvent).LinkMetadata().String("sku"); got != "vase-7" {
				t.Errorf("%s: sku is %q", layout, got)
			}
		}
	}
}

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
