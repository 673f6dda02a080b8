// Package outbox publishes messages of the application to a broker, or to anything else,
// if and only if the transaction that emitted them commits.
//
// # Publish from a handler
//
// Make the outbox at start, emit in handlers, and have [idem.Serve] run its workers:
//
//	messages := outbox.New(pool, "shop", publisher)
//	events.OnPaymentReceived(func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
//		…
//		return messages.Emit(ctx, broker.Message{Type: "order.paid", Key: order, Body: body})
//	})
//	err := idem.Serve(ctx, server, inbox, messages)
//
// The modules idemrabbitmq, idemkafka and idemsqs have a publisher for one
// broker each; any other [broker.Publisher] will do.
//
// # Publish from elsewhere
//
// In a transaction of the application's own, [Outbox.EmitTx] does the same.
//
// # When messages do not arrive
//
// List, Replay, Requeue, Discard and Stats of the outbox work as for other events. While
// the broker is unavailable, or takes none of a Type, those messages wait, and health shows
// it as broker.
package outbox
