// Package zeltapaytest makes Zelta Pay's webhooks for the tests of your
// handlers: a body for each event type, in both layouts that Zelta Pay
// documents, the signed request that delivers it, and a fake Zelta Pay that
// delivers and retries.
//
// # Test a handler
//
//	func TestOrderIsPaid(t *testing.T) {
//		body := zeltapaytest.Event("payment.success",
//			zeltapaytest.Set("transaction.amount", 2990),
//			zeltapaytest.Set("metadata.orderId", "A-1"))
//		w := httptest.NewRecorder()
//		inbox.ServeHTTP(w, zeltapaytest.Request("/webhooks/zeltapay", secret, body))
//		… // status 200, and the order is paid
//	}
//
// [Event] makes an event of its own each time. To deliver one again, send the
// same body again.
//
// # Test the other layout
//
// It is not known which of the two layouts is delivered, so test with both:
//
//	for _, layout := range []zeltapaytest.Layout{zeltapaytest.Flat, zeltapaytest.Nested} {
//		body := layout.Event("payment.success")
//		…
//	}
//
// The package's own functions are those of [Flat].
//
// # Test with as little as possible
//
// [Sparse] leaves out the fields that Zelta Pay may leave out, and makes those null that may be
// null.
//
// # Change a body
//
// [Set], [Add] and [Delete] name fields by their path in the JSON:
//
//	zeltapaytest.Set("customer.customerEmail", nil) // null
//	zeltapaytest.Delete("customer.customerEmail")
//	zeltapaytest.Delete("eventId")                  // as the nested layout may be
//	zeltapaytest.Add("livemode", true)              // newer than this module
//	zeltapaytest.Set("transaction.isTest", true)    // a test payment, which needs AllowTest of the Dispatcher
//
// A mistake in a test, such as a path that does not exist, panics and lists
// the paths that do.
//
// # Test Zelta Pay's deliveries
//
// A [Fake] delivers events, retries them, and has a dead-letter queue, in a
// time of its own:
//
//	fake := zeltapaytest.New()
//	defer fake.Close()
//	events.Now = fake.Now // signatures are of the fake's time
//	fake.AddWebhook(zeltapaytest.Webhook{Secret: secret, Handler: inbox})
//
//	fake.Emit(zeltapaytest.Event("payment.success"))
//	fake.Advance(10 * time.Minute) // all its retries
//	fake.ReplayAll()               // what failed, from the dead-letter queue
//	fake.Settle()
//
// A Webhook with a URL gets real HTTP. Where its receiver has a clock of its own,
// set SigningTime to time.Now. In a bubble of testing/synctest, use a Handler.
//
// # Test faults
//
//	fake.Inject(zeltapaytest.LostAnswer, zeltapaytest.Concurrent) // the next two attempts
//	fake.Emit(body, other)
//	fake.Advance(time.Minute)
//	for _, e := range fake.Timeline() {
//		t.Log(e) // 2026-08-08 23:45:13 failed payment.success evt_1, attempt 1: 200, the answer was lost, next in 5s
//	}
//
// # Choose among contradictions
//
// Zelta Pay's pages show two strings to sign, and several schedules of retries:
//
//	fake.Format = zeltapay.FormatPlain
//	fake.Delays = []time.Duration{time.Hour, 6 * time.Hour, 17 * time.Hour}
//
// # Deliver to a server that runs
//
//	export ZELTAPAY_WEBHOOK_SECRET=…
//	go run github.com/paghooks/paghooks/zeltapay/cmd/zeltapay-fake deliver payment.success -to http://localhost:8080/webhooks/zeltapay
//
// To rehearse an outage by hand, have it serve, with retries and a dead-letter queue:
//
//	go run github.com/paghooks/paghooks/zeltapay/cmd/zeltapay-fake serve -to http://localhost:8080/webhooks/zeltapay
//
// # The values
//
// Made up by this module's generator from its spec of Zelta Pay's webhooks, the
// same in every run, and belong to no real person.
package zeltapaytest
