// Package zeltapay receives the webhooks of Zelta Pay: it verifies deliveries, decodes
// events, and takes each to its handler, once, in a Postgres transaction.
//
// # Receive payments
//
// The application stores an order, and puts the order's id into the metadata of
// the payment link that it makes. Register typed handlers, and give the dispatcher
// to [idem.NewInbox], which answers first and then works. The rows that a handler writes
// through tx take effect exactly once per event, however often the event is delivered:
//
//	events := zeltapay.NewDispatcher(os.Getenv("ZELTAPAY_WEBHOOK_SECRET"))
//	events.OnPaymentSuccess(paid)
//	inbox := idem.NewInbox(pool, events)
//	http.Handle("POST /webhooks/zeltapay", inbox)
//	err := idem.Serve(ctx, &http.Server{Addr: ":8080"}, inbox)
//
//	// paid stores a payment, and sets its order to the sum of its payments.
//	func paid(ctx context.Context, tx pgx.Tx, e *zeltapay.PaymentEvent) error {
//		cents, _ := e.Amount()
//		order, ok := e.LinkMetadata().String("orderId")
//		if !ok {
//			return idem.NoRetry(fmt.Errorf("link %s names no order", e.LinkID())) // made in the dashboard: parked, and health is red
//		}
//		…
//	}
//
// The program in examples/zeltapay has the whole function, with its tables. Compare the sum with the
// order's total before you ship: an event says that something was paid, and not that it was enough.
//
// If Zelta Pay sends a payment in both of its layouts, that is two events with the same
// link and two ids of the transaction. To count it once, add up each layout of a link
// apart, and let one of them count, as the program does.
//
// # Payments whose events never came
//
// [Client.Completed] reads the payment links that were paid, for a program that compares them with its
// payments once a day. Zelta Pay has no list of events, and its dead-letter queue keeps those that it
// could not deliver for 30 days.
//
// # Test payments
//
// A payment.success with transaction.isTest true moved no money. It is
// acknowledged, with a line in the log, and reaches no handler; it is not stored,
// so that nothing replays it later. For a test environment set
// AllowTest of the [Dispatcher]: its type is then [EventTestPayment], and the handler of
// payment.success gets it. In the nested layout, and before Zelta Pay's version
// 1.1.0, no known field marks a test payment: give tests an account and a secret of
// their own.
//
// The secret is shown once, when the webhook is created in the dashboard.
//
// # Only verify
//
//	err := zeltapay.Verify(r.Header, body, secret) // body as received, before anything parses it
//
// With other settings (tolerance, clock, format), use the Verify method of a [Dispatcher] that has
// them: see [Format]. Headers may also come another way, from
// a queue or a function's event, and in lower case.
//
// # Only parse, in a worker
//
//	e, err := zeltapay.Parse(body)
//	switch e := e.(type) {
//	case *zeltapay.PaymentEvent:
//	case *zeltapay.PingEvent:
//	case *zeltapay.UnknownEvent: // e.Raw
//	}
//
// [Identify] names a body's event for [idem.Inbox.Accept].
//
// # Two layouts of one event
//
// Zelta Pay documents payment.success in two shapes, flat in English and
// nested in Spanish, and it is not known which one is delivered. [PaymentEvent]
// takes both. Its methods read either:
//
//	amount, ok := e.Amount()                     // transaction.amount or paymentLink.amount
//	order, ok := e.LinkMetadata().String("orderId") // metadata or paymentLink.metadata
//
// Its fields are those that only one layout has. Each is a [value.Optional]: a
// value, null, or absent. A payment in a layout that is neither, or without an
// amount, is parked, and reaches no handler; one that lacks other fields is handled.
//
// # Rotate a secret
//
//	events := zeltapay.NewDispatcher(newSecret, oldSecret)
//
// # Several accounts
//
//	events := zeltapay.NewDispatcher()
//	events.Accounts = func(r *http.Request) ([]idem.Credentials, error) {
//		return []idem.Credentials{
//			{Scope: "live", Secrets: []string{liveSecret}},
//			{Scope: "test", Secrets: []string{testSecret}},
//		}, nil
//	}
//
// The secret that verifies decides the event's Scope, which [idem.EventFrom]
// returns to a handler. An account that was there before the others keeps having no scope:
// its secret stays with NewDispatcher. With a scope that is introduced later, each event
// that comes again is a new event, and is done twice, unless the events are moved first:
// see operator.Operator.PlanRescope.
//
// # Test your endpoint
//
// Package zeltapaytest makes bodies in both layouts, and requests that verify.
// To sign a body of your own:
//
//	r := httptest.NewRequest("POST", "/webhooks/zeltapay", bytes.NewReader(body))
//	zeltapay.Sign(r.Header, body, secret, time.Now())
//
// # Ids of events
//
// The eventId of the signed body names an event. A payment.success without
// one, as the nested layout may be, is named by its transaction; any other body
// without one by its content, see [idem.BodyID]. The Zeltapay-Event-Id header
// never does.
//
// Tests that follow Zelta Pay's guide post one body again and again, under
// several ids in that header. Here that is one event: the first delivery is
// answered {"received":true}, the others {"received":true,"duplicate":true},
// and the handler runs once. For several events, give each body an eventId of
// its own, as zeltapaytest.Event does.
//
// # Zelta Pay's deliveries
//
// Zelta Pay takes any 2xx as received. After 408, 429, 5xx or a timeout it delivers
// again; after any other 4xx the event goes to the dead-letter queue at once,
// and waits there for up to 30 days until a person replays it. So with a wrong secret
// every event goes there: watch for refusals.
//
// The delays between the retries are documented as 5 s and then doubled up to
// 160 s, which is over within 8 minutes, and as spread over 24 hours. Count on
// 8 minutes: after a longer outage, look into the dead-letter queue.
//
// Zelta Pay promises no order of deliveries. See
// https://docs-pay.zelta.dev/guides/webhooks/delivery.
//
// # Where the documentation contradicts itself
//
//   - The signed string is t=<timestamp>.<body> on one page and
//     <timestamp>.<body> on another: either verifies, and a [Format] pins one.
//   - The signature header is t=…, v1=…, but a quick start compares it as bare
//     hexadecimal digits: that is refused, unless Scheme of the Dispatcher is [SchemeHMAC2].
//   - Zeltapay-Timestamp may stand beside t, and which of them counts is not
//     said: the signed t does.
//   - The guide on duplicates names events by the Zeltapay-Event-Id header,
//     which is not signed: an attacker that captures a delivery could repeat it under
//     another id. Here the signed body counts. A header that differs, be it
//     Zeltapay-Event-Id, -Event-Type or Zeltapay-Timestamp, is not refused: it
//     is logged once and reported by Drift of the Dispatcher. Its StrictHeaders
//     refuses it.
//   - Every event is said to have createdAt, but the sample of webhook.ping has
//     none: it is optional, and events fall back to their own time.
//   - An event for expired links is hinted at, without a name or a body: it
//     would reach [Dispatcher.OnUnknown], or be kept for Replay, and
//     Drift would report it.
package zeltapay

//go:generate go run -C ../gen . -spec ../spec/zeltapay.yaml -package ../zeltapay
