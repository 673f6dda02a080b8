// Package asaas receives the webhooks of Asaas: it verifies deliveries, decodes
// events, and takes each to its handler, once, in a Postgres transaction.
//
// # Index of events
//
// Each event type has an On… method named after it. Event types about the same
// thing share a struct, and so can share a handler:
//
//   - [PaymentEvent]: charges; OnPaymentReceived and the like
//   - [SubscriptionEvent], [CheckoutEvent]: the sources of charges
//   - [PixAutomaticAuthorizationEvent], [PixAutomaticInstructionEvent],
//     [PixAutomaticEligibilityEvent]: charges by Pix Automático
//   - [InvoiceEvent]: notas fiscais
//   - [TransferEvent], [BillEvent], [MobilePhoneRechargeEvent]: money that
//     leaves the account
//   - [InternalTransferEvent]: money that moves inside of Asaas
//   - [AnticipationEvent]: money that comes early
//   - [BalanceEvent]: money that is blocked
//   - [AccountStatusEvent], [AccessTokenEvent]: the account and its API keys
//   - [UnknownEvent]: types that are newer than this package
//   - [Withdrawal]: no event but the question whether money may leave, at a URL of its own: package withdrawal answers it
//
// # Receive events
//
// Each event carries the whole charge. [Dispatcher.OnPayment] gets all of them, and package charges copies the newest
// into the row of its charge: your function sets an order to the sum of its charges.
//
//	events := asaas.NewDispatcher(os.Getenv("ASAAS_WEBHOOK_TOKEN"))
//	events.OnPayment(charges.Orders(paid)) // go doc github.com/paghooks/paghooks/asaas/charges
//	events.OnPaymentOverdue(remind)        // one type, in the same transaction
//	inbox := idem.NewInbox(pool, events)
//	http.Handle("POST /webhooks/asaas", inbox)
//	err := idem.Serve(ctx, &http.Server{Addr: ":8080"}, inbox)
//
// When a handler returns nil, its event is done for good. An update that
// changed no row is no error to Postgres. Return an error for it, and the event is
// tried again and at last parked, which turns health red.
//
// The inbox answers first and works afterwards, as Asaas asks of integrators.
// With its WorkFirst, a delivery makes a first try before the answer, at a third of
// the cost. An event that fails is stored and answered 200 all the same.
//
// # Several events of one charge
//
// Exactly once is for each event, and a charge has several, which may come late and in any order: a card payment
// is CONFIRMED a month before it is RECEIVED, Pix is only RECEIVED, and a chargeback that is won brings both again.
// Value is the value of the charge in each of them, also in a refund's. So neither an amount for each event nor one
// for each charge and type is right: book money by package charges. Handlers of single types are for side effects.
//
// The function AnyOrder of package idemtest delivers a charge's events to your
// handlers in every order; Lives of package asaastest are the documented lives of charges, with their true ends.
//
// # Fields with two spellings
//
// A field that Asaas spells in two ways is two fields, and has a method that
// reads both: [BalanceEvent.Block], [Discount.LastDay], [Payment.AllSplits],
// [CheckoutSplit.Percentage], [AccessToken.WhyDisabled].
//
// # Only verify, only parse
//
// In a receiver of your own, or at the edge, [Verify] reports whether a delivery is genuine. Give it, and
// [NewDispatcher], the old and the new token while you change it at Asaas. In a worker that reads verified bodies from
// a queue:
//
//	event, err := asaas.Parse(body)
//	switch e := event.(type) {
//	case *asaas.PaymentEvent: …
//	case *asaas.UnknownEvent: … // newer than this package
//	}
//
// e.Check(body) reports whether the amount, the status and the like were sent at
// all. A dispatcher does that before it calls a handler. To process the events of such a queue once each:
//
//	inbox.Accept(ctx, asaas.Identify(body))
//
// # Several accounts
//
// Event ids are unique within an account, not beyond it. Give each account (and
// the sandbox) a scope, from its first event on. Either by URL:
//
//	events.Accounts = func(r *http.Request) ([]idem.Credentials, error) {
//		return accountsNamed(r.Context(), r.PathValue("account"))
//	}
//
// The standard library's mux sets r.PathValue, and so does chi. With another router
// set it yourself; otherwise every delivery is an error, because its account
// has no scope:
//
//	c.Request.SetPathValue("account", c.Param("account"))   // gin
//	c.Request().SetPathValue("account", c.Param("account")) // echo
//	r.SetPathValue("account", c.Params("account"))          // fiber, inside of adaptor.HTTPHandlerFunc
//
// Or by token, if all of them post to one URL: return every account, and the
// token decides. [idem.EventFrom] returns the scope to a handler.
//
// [Clients] lists all accounts with their API keys, for package webhook and the command asaas-queue: see
// docs/sub-accounts.md.
//
// An account that was there before the others keeps having no scope: its token stays
// with NewDispatcher. With a scope that is introduced later, each event that comes again is
// a new event, and is done twice. Move the events first: see
// operator.Operator.PlanRescope, and idem help rescope.
//
// # Behind a proxy
//
// To take events from Asaas's published addresses only, name the header in
// which your proxy writes where a request came from:
//
//	events.AllowFrom = asaas.OfficialAddresses()
//	events.ClientAddrHeader = "X-Forwarded-For"
//
// # Events that are newer than this package
//
// An event without a handler is acknowledged and kept, see
// [idem.Inbox.Replay]. To handle those that this package does not know:
//
//	events.OnUnknown(func(ctx context.Context, tx pgx.Tx, e *asaas.UnknownEvent) error { … })
//
// Drift of the dispatcher lists the fields and values that Asaas sends and this package does not know.
//
// # Get a queue going again
//
// If deliveries fail, Asaas slows down the webhook's queue, and after a while stops it. [Client.Webhooks] shows it. Fix
// the cause first; then [Recover] proves the way to the receiver, resumes the queue, and replays parked events:
//
//	client, err := asaas.NewClient(asaas.Production, os.Getenv("ASAAS_API_KEY"))
//	for progress, err := range asaas.Recover(ctx, client, webhookID, token, inbox) {
//		if err != nil {
//			return err // the receiver is not sound yet, or fails again
//		}
//		log.Print(progress)
//	}
//
// From a shell (package asaas/cmd/queue makes the same command with your handlers):
//
//	go run github.com/paghooks/paghooks/asaas/cmd/asaas-queue status
//	go run github.com/paghooks/paghooks/asaas/cmd/asaas-queue recover ID
//
// Asaas deletes an event after 14 days. Reconcile of package charges then reads the charges, and books missed events.
//
// Package webhook compares the webhook at Asaas with the handlers and repairs it, watches it, and rotates its token. To
// notice a broken receiver before its queue stops, have [NewCanary] deliver an event of its own, and alert on package
// health. To rehearse all of this, run asaas/cmd/asaas-fake serve, a local Asaas.
//
// # Test your handlers
//
// Package asaastest makes a body for each event type, all events of one charge,
// and requests that verify.
//
// # Money, dates and fields that may be missing
//
// Amounts are exact: [Money] is a decimal, [Decimal.Cents] its whole cents, and
// a [Percent] is no amount. A [Date] or [DateTime] keeps the text that was sent,
// in whichever of Asaas's spellings, and its Time method reads it; a time without
// a zone is Brasília's.
//
// A field that may be null or missing is a [value.Optional]. All of them are
// arguments of tx.Exec as they are, are scanned from a row, and fit a struct of
// sqlc's or of pgx.RowToStructByName. Enums are open: a value that this package
// does not know is delivered as it is.
//
// An event without its entity, or without the entity's id, amount or status,
// is parked: no handler gets an amount of 0 that Asaas did not send. Any other
// field that Asaas leaves out or makes null is handled, and reported as drift.
//
// # Asaas's deliveries
//
// Asaas waits 10 seconds for an answer, and takes exactly 200 for success. It sends a
// failed delivery again, after growing pauses. After 15 failures in a row it stops the
// whole queue of the webhook until a person resumes it, and it deletes events that have
// waited for 14 days. It may send any event twice, with the same id. See https://docs.asaas.com/docs/sobre-os-webhooks.
package asaas

//go:generate go run -C ../gen . -spec ../spec/asaas.yaml -package ../asaas
