package zeltapay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/zeltapay"
	"github.com/paghooks/paghooks/zeltapay/zeltapaytest"
)

func ExampleVerify() {
	body := []byte(`{"eventId":"evt_1","type":"webhook.ping","ok":true}`)
	r := httptest.NewRequest("POST", "/webhooks/zeltapay", strings.NewReader(string(body)))
	zeltapay.Sign(r.Header, body, "the secret", time.Now())

	fmt.Println(zeltapay.Verify(r.Header, body, "the secret"))

	err := zeltapay.Verify(r.Header, body, "another secret")
	if refusal, ok := errors.AsType[*idem.Refusal](err); ok {
		fmt.Println(refusal.Reason)
	}
	// Output:
	// <nil>
	// wrong_signature
}

// One of the two texts is pinned, and a signature is good for a minute.
func ExampleFormat() {
	scheme := zeltapay.SchemeHMAC
	scheme.Texts, scheme.Tolerance = []string{string(zeltapay.FormatPrefixed)}, time.Minute
	events := zeltapay.NewDispatcher("new secret", "old secret") // during a rotation
	events.Scheme = scheme
	h, body := make(http.Header), []byte(`{}`)
	zeltapay.Sign(h, body, "old secret", time.Now())
	fmt.Println(events.Verify(h, body))
	// Output: <nil>
}

func ExampleSign() {
	body := []byte(`{"eventId":"evt_1","type":"webhook.ping"}`)
	h := make(http.Header)
	zeltapay.Sign(h, body, "the secret", time.Unix(1767225600, 0))

	fmt.Println(h.Get("Zeltapay-Signature")[:20])
	fmt.Println(h.Get("Zeltapay-Timestamp"))
	fmt.Println(h.Get("Zeltapay-Event-Id"), h.Get("Zeltapay-Event-Type"))
	// Output:
	// t=1767225600, v1=9ca
	// 1767225600
	// evt_1 webhook.ping
}

func ExampleFormat_Sign() {
	h, body := make(http.Header), []byte(`{}`)
	zeltapay.FormatPlain.Sign(h, body, "the secret", time.Now())
	fmt.Println(zeltapay.Verify(h, body, "the secret"))
	// Output: <nil>
}

func ExampleParse() {
	for _, body := range []string{
		`{"eventId":"evt_1","type":"payment.success","transaction":{"amount":2500,"currency":"USD"}}`,
		`{"eventId":"evt_2","type":"webhook.ping","ok":true}`,
		`{"eventId":"evt_3","type":"payment_link.archived"}`,
	} {
		e, err := zeltapay.Parse([]byte(body))
		if err != nil {
			fmt.Println(err)
			continue
		}
		switch e := e.(type) {
		case *zeltapay.PaymentEvent:
			amount, _ := e.Amount()
			fmt.Println(amount, e.Currency(), "paid")
		case *zeltapay.PingEvent:
			fmt.Println("ping", e.OK.Or(false))
		case *zeltapay.UnknownEvent:
			fmt.Println("unknown:", string(e.Raw))
		}
	}
	// Output:
	// 2500 USD paid
	// ping true
	// unknown: {"eventId":"evt_3","type":"payment_link.archived"}
}

func ExampleIdentify() {
	flat := zeltapay.Identify([]byte(`{"eventId":"evt_1","type":"payment.success","paymentLinkId":"pl_1"}`))
	fmt.Println(flat.ID, flat.Key)

	nested := zeltapay.Identify([]byte(`{"type":"payment.success","paymentLink":{"id":"pl_1"},"transaction":{"id":"txn_1"}}`))
	fmt.Println(nested.ID, nested.Key)

	unreadable := zeltapay.Identify([]byte(`not JSON`))
	fmt.Println(unreadable.ID[:14])
	// Output:
	// evt_1 pl_1
	// payment.success:txn_1 pl_1
	// sha256:62b8125
}

// The methods of a PaymentEvent say the same of both layouts.
func ExamplePaymentEvent() {
	for _, body := range []string{
		`{"eventId": "evt_1", "type": "payment.success", "paymentLinkId": "pl_1",
		  "transaction": {"externalPaymentId": "ext_1", "amount": 2500, "paidAt": "2026-01-15T10:30:00.000Z"},
		  "customer": {"customerEmail": "ana@example.com"}, "metadata": {"orderId": "A-1"}}`,
		`{"type": "payment.success", "paymentLink": {"id": "pl_1", "amount": 2500, "metadata": {"orderId": "A-1"}},
		  "transaction": {"id": "txn_1", "completedAt": "2026-01-15T10:30:00.000Z"},
		  "customer": {"email": "ana@example.com"}}`,
	} {
		event, err := zeltapay.Parse([]byte(body))
		if err != nil {
			fmt.Println(err)
			continue
		}
		e := event.(*zeltapay.PaymentEvent)
		amount, _ := e.Amount()
		order, _ := e.LinkMetadata().String("orderId")
		fmt.Println(e.LinkID(), amount, e.PaidAt(), e.CustomerEmail(), order, e.TransactionID())
	}
	// Output:
	// pl_1 2500 2026-01-15T10:30:00.000Z ana@example.com A-1 ext_1
	// pl_1 2500 2026-01-15T10:30:00.000Z ana@example.com A-1 txn_1
}

func ExampleNewDispatcher() {
	events := zeltapay.NewDispatcher("the secret")
	events.OnPaymentSuccess(func(ctx context.Context, tx pgx.Tx, e *zeltapay.PaymentEvent) error {
		cents, _ := e.Amount()
		order, ok := e.LinkMetadata().String("orderId") // sent when the link was made
		if !ok {
			return nil // a link made by hand in the dashboard, not one of ours
		}
		_, err := tx.Exec(ctx, `insert into payments (transaction, order_id, cents) values ($1, $2, $3) on conflict do nothing`,
			e.TransactionID(), order, cents)
		return err // the program in examples/zeltapay adds them up, and compares the sum with the order's total
	})
	// http.Handle("POST /webhooks/zeltapay", idem.NewInbox(pool, events))

	fmt.Println(events.Types())
	// Output: [payment.success]
}

// One endpoint for two accounts: the secret tells them apart.
func ExampleDispatcher_accounts() {
	events := zeltapay.NewDispatcher()
	events.Accounts = func(*http.Request) ([]idem.Credentials, error) {
		return []idem.Credentials{
			{Scope: "live", Secrets: []string{"live secret"}},
			{Scope: "test", Secrets: []string{"test secret"}},
		}, nil
	}

	body := []byte(`{"eventId":"evt_1","type":"payment.success"}`)
	r := httptest.NewRequest("POST", "/webhooks/zeltapay", bytes.NewReader(body))
	zeltapay.Sign(r.Header, body, "test secret", time.Now())
	e, err := events.Open(r)
	fmt.Println(e.Scope, e.ID, err)
	// Output: test evt_1 <nil>
}

func ExampleDispatcher_OnUnknown() {
	events := zeltapay.NewDispatcher("the secret")
	events.OnUnknown(func(_ context.Context, _ pgx.Tx, e *zeltapay.UnknownEvent) error {
		fmt.Println("no handler knows", e.Type)
		return nil
	})

	e := zeltapay.Identify([]byte(`{"eventId":"evt_1","type":"payment_link.archived"}`))
	if err := events.Dispatch(context.Background(), nil, e); err != nil { // an inbox does this
		fmt.Println(err)
	}
	// Output: no handler knows payment_link.archived
}

// The links that were paid, to compare with the payments that events have brought.
func ExampleClient_Completed() {
	fake := zeltapaytest.New() // in place of zeltapay.NewClient(os.Getenv("ZELTAPAY_API_KEY"))
	defer fake.Close()
	fake.Emit(zeltapaytest.Event("payment.success", zeltapaytest.Set("paymentLinkId", "pl_1"), zeltapaytest.Set("transaction.amount", 9900)))
	for link, err := range fake.Client().Completed(context.Background()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		order, _ := link.Metadata.String("orderId")
		fmt.Println(link.ID, link.Amount, order)
	}
	// Output: pl_1 9900 A-1001
}

func ExampleTime() {
	sent := zeltapay.Time("2026-01-15T10:30:00.000Z")
	instant, err := sent.Time()
	fmt.Println(sent, instant.Unix(), err)
	// Output: 2026-01-15T10:30:00.000Z 1768473000 <nil>
}

func ExampleMetadata_String() {
	m := zeltapay.Metadata{"orderId": []byte(`"A-1"`), "seats": []byte(`2`), "coupon": []byte(`null`)}
	for _, key := range []string{"orderId", "seats", "coupon", "absent"} {
		value, ok := m.String(key)
		fmt.Printf("%s: %q %t\n", key, value, ok)
	}
	// Output:
	// orderId: "A-1" true
	// seats: "2" true
	// coupon: "" false
	// absent: "" false
}

// What Zelta Pay sends and this package does not know is told. The merchant's
// own metadata is not looked at.
func ExampleDispatcher_Drift() {
	events := zeltapay.NewDispatcher("whsec_…")
	for _, body := range []string{
		`{"eventId":"evt_1","type":"payment.refunded"}`,
		`{"eventId":"evt_2","type":"payment.success","paymentLinkId":"pl_1","transaction":{"amount":"1500","fee":45},"metadata":{"order":7}}`,
	} {
		_ = events.Dispatch(context.Background(), nil, zeltapay.Identify([]byte(body)))
	}
	for _, f := range events.Drift() {
		fmt.Println(f.EventType, f.Path, f.Kind)
	}
	// Output:
	// payment.refunded  unknown_event
	// payment.success transaction.amount changed_type
	// payment.success transaction.fee unknown_field
}
