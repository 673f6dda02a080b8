// Package asaastest makes Asaas's webhooks for the tests of your handlers: a
// body for each event type that package asaas knows, and the request that
// delivers it.
//
// # Test a handler
//
//	func TestOrderIsPaid(t *testing.T) {
//		body := asaastest.Event("PAYMENT_RECEIVED",
//			asaastest.Set("payment.id", "pay_1"),
//			asaastest.Set("payment.value", 29.90))
//		w := httptest.NewRecorder()
//		processor.ServeHTTP(w, asaastest.Request("/webhooks/asaas", token, body))
//		… // status 200, and the order is paid
//	}
//
// [Event] makes an event of its own each time. To deliver one again, send the
// same body again.
//
// # Test with as little as possible
//
// [Sparse] leaves out what Asaas may leave out, and makes null what may be
// null. A handler that takes both bodies of its event types takes what Asaas
// sends:
//
//	for _, body := range [][]byte{asaastest.Event(eventType), asaastest.Sparse(eventType)} { … }
//
// # Change a body
//
// [Set], [Add] and [Delete] name fields by their path in the JSON:
//
//	asaastest.Set("payment.externalReference", nil)            // null
//	asaastest.Set("payment.status", asaas.PaymentStatusReceived)
//	asaastest.Set("payment.split.0.walletId", "a wallet")      // the first split
//	asaastest.Delete("payment.creditCard")
//	asaastest.Add("payment.antifraud", "new")                  // newer than this module
//	asaastest.Set("payment.value", json.RawMessage(`"29.90"`)) // Asaas changed a type
//
// A mistake in a test, such as a path that does not exist, panics and lists
// what does.
//
// # All event types
//
//	for _, eventType := range asaastest.Types() { … }
//
// # What the values are
//
// Made up by this module's generator from its spec of Asaas's webhooks, the
// same in every run, for nobody who exists. They are plausible one by one, not
// together: [Event] fills every field that events of its type are known to
// have, so that a charge is paid by boleto, by card and by Pix at once. What
// the event type says holds: the charge of a PAYMENT_RECEIVED is RECEIVED, that
// of a PAYMENT_DELETED is deleted.
package asaastest
