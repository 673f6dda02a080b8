// Package asaastest makes Asaas's webhooks for the tests of your handlers: a
// body for each event type that package asaas knows, and the request that
// delivers it. For the tests of your application it has a whole Asaas, a [Fake],
// which delivers events by Asaas's rules and has its API for webhooks.
//
// # Test a handler
//
//	func TestOrderIsPaid(t *testing.T) {
//		body := asaastest.Event("PAYMENT_RECEIVED",
//			asaastest.Set("payment.id", "pay_1_a1B2c3D4e5F6g7"),
//			asaastest.Set("payment.value", 29.90))
//		w := httptest.NewRecorder()
//		inbox.ServeHTTP(w, asaastest.Request("/webhooks/asaas", token, body))
//		… // status 200, and the order is paid
//	}
//
// [Event] makes an event of its own each time. To deliver one again, send the
// same body again.
//
// # Test a charge's life
//
// The events of a [Charge] agree with each other, from its creation to its end:
//
//	charge := asaastest.NewCharge(asaas.BillingTypeCreditCard, asaas.Cents(12990))
//	charge.Payment.ExternalReference = value.Of("order-1")
//	for _, body := range [][]byte{charge.Created(), charge.Confirmed(), charge.Received(), charge.Refunded()} { … }
//
// There are overdue charges, chargebacks, payments in cash, splits and, with
// [NewInstallments], installment plans. A step that cannot happen panics.
//
// # Test with as little as possible
//
// [Sparse] leaves out the fields that Asaas may leave out, and makes those null that may be
// null. A handler that takes both bodies of its event types accepts each body that Asaas
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
// the paths that do.
//
// # All event types
//
//	for _, eventType := range asaastest.Types() { … }
//
// # Live through an outage
//
// A [Fake] queues events and delivers them with Asaas's waits, e-mails, pauses
// and deletions. Its clock moves only when the test says so, so that days pass
// in milliseconds, and every run is the same:
//
//	fake := asaastest.New()
//	defer fake.Close()
//	webhook := fake.AddWebhook(asaastest.Webhook{Handler: inbox, Token: token})
//	fake.Emit(asaastest.Event("PAYMENT_RECEIVED")) // an event happens at Asaas
//	fake.Settle()                                  // it is delivered; no time passes
//	fake.Advance(24 * time.Hour)                   // a day passes, with all that falls due in it
//	fake.Resume(webhook)                           // a person reactivates a paused queue
//
// A Webhook has a Handler, which is called in this process, or the URL of a
// server. With Handlers a fake works in a bubble of testing/synctest too; make
// it inside of the bubble.
//
// [Fake.Timeline] is all that happened, [Fake.Observe] is called with each entry as it happens.
//
// # Let deliveries go wrong
//
//	fake.Inject(asaastest.Concurrent, asaastest.LostAnswer|asaastest.SlowBody) // the next two attempts
//
// [Fault] has all faults: duplicates, concurrent copies, events that overtake others, lost
// answers, slow and cut bodies, wrong tokens.
//
// # Call the API
//
//	client := fake.Client()
//	err := client.RemoveBackoff(ctx, webhook)
//	fake.Settle() // the events are due, and now delivered
//
// A wait of that client is a wait in the fake's time, and delivers what falls
// due: asaas.Recover takes a moment. A fake from [NewServer] listens at its URL.
// Other clients reach any fake through its Transport.
//
// [Fake.InjectAPI] makes the next requests go wrong:
//
//	fake.InjectAPI(asaastest.APIPage(http.StatusBadGateway), asaastest.APILostAnswer)
//
// POST /v3/payments makes a charge, each time that it is called, and emits its PAYMENT_CREATED;
// [Fake.Charge] goes on from there:
//
//	made, err := client.CreatePayment(ctx, …)
//	fake.Emit(fake.Charge(made.ID).Received())
//
// # Have sub-accounts
//
//	seller := fake.AddAccount("seller") // or by POST /v3/accounts
//	client := fake.ClientOf(seller.APIKey)
//
// Each has webhooks, charges and a limit of requests of its own. An event belongs to the account that its
// account.id names: see Account of a [Charge].
//
// # Deliver to your server by hand
//
//	go run github.com/paghooks/paghooks/asaas/cmd/asaas-fake deliver PAYMENT_RECEIVED -to http://localhost:8080/webhooks/asaas
//
// To rehearse an outage by hand, have it serve a whole Asaas:
//
//	go run github.com/paghooks/paghooks/asaas/cmd/asaas-fake serve -to http://localhost:8080/webhooks/asaas
//
// # Unknown about Asaas
//
// The fake follows Asaas's documentation. Where that says nothing, or contradicts itself,
// do not rely on the fake's choice:
//
//   - Exactly 200 is success. Some pages say any 2xx.
//   - The failures in a row that pause a queue are those of one event, also of a NON_SEQUENTIALLY
//     webhook, which sends 10 events at once.
//   - removeBackoff can be called 5 times in a minute.
//   - An attempt takes no time on the fake's clock, not even one without an
//     answer.
//   - Resume and removeBackoff begin the count of failures anew, and
//     removeBackoff leaves a paused queue paused.
//   - penalizedRequestsCount is the failures in a row of the event that has most.
//   - A webhook that gets disabled keeps its queue, and sends it when it is
//     enabled again.
//   - Events in a queue are sent with the token, to the URL, that the webhook has
//     when they are sent, and with the same id to every webhook.
//   - The codes and texts of the API's errors, except for those of its key; the
//     answer of lists to a limit above 100, an offset below 0, or a status by which
//     charges cannot be listed, such as AUTHORIZED, which is 400; that PUT ignores
//     the fields that it does not take.
//   - That an account without Pix Automático is refused the PIX_AUTOMATIC_* types; see
//     [Fake].NoPixAutomatic.
//   - A charge that was made is listed at once; a mistake in the request is the first that is found; the
//     codes for splits; that a split of the net value is refused if it exceeds that.
//   - account.id of an event is the id of POST /v3/accounts and of /v3/myAccount/status.
//   - What becomes of a split after a refund or a chargeback of its charge: nothing, until you say so.
//   - One limit of the API counts all requests; Asaas has one per endpoint, too.
//
// # The values
//
// Made up by this module's generator from its spec of Asaas's webhooks, the
// same in every run, and belong to no real person. They are plausible one by one, not
// together: [Event] fills every field that events of its type are known to
// have, so that a charge is paid by boleto, by card and by Pix at once. The
// event type is respected: the charge of a PAYMENT_RECEIVED is RECEIVED, that
// of a PAYMENT_DELETED is deleted, the refund of a PAYMENT_PARTIALLY_REFUNDED is
// DONE. For bodies that agree in everything, make a [Charge].
package asaastest
