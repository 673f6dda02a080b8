// Package zeltapaytest makes Zelta Pay's webhooks for the tests of your
// handlers: a body for each event type, in both layouts that Zelta Pay
// documents, and the signed request that delivers it.
//
// # Test a handler
//
//	func TestOrderIsPaid(t *testing.T) {
//		body := zeltapaytest.Event("payment.success",
//			zeltapaytest.Set("transaction.amount", 2990),
//			zeltapaytest.Set("metadata.orderId", "A-1"))
//		w := httptest.NewRecorder()
//		processor.ServeHTTP(w, zeltapaytest.Request("/webhooks/zeltapay", secret, body))
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
// [Sparse] leaves out what Zelta Pay may leave out, and makes null what may be
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
//
// A mistake in a test, such as a path that does not exist, panics and lists
// what does.
//
// # What the values are
//
// Made up by this module's generator from its spec of Zelta Pay's webhooks, the
// same in every run, for nobody who exists.
package zeltapaytest
