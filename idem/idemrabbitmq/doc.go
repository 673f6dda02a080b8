// Package idemrabbitmq publishes messages to RabbitMQ, and consumes them, with the
// application's own connections of github.com/rabbitmq/amqp091-go.
//
// # In front of Postgres
//
//	provider → idem.Relay → Publisher → queue → Consume → idem.Relayed → Inbox → handlers
//
// The provider gets its 200 once the queue has the event on disk, also while Postgres
// is away:
//
//	dial := func() (*amqp.Connection, error) { return amqp.Dial(url) }
//	publisher := idemrabbitmq.NewPublisher(dial, "", "webhooks")
//	http.Handle("POST /webhooks/asaas", idem.NewRelay(events, publisher, secret))
//
//	err := idemrabbitmq.Consume(ctx, dial, "webhooks", idem.Relayed(inbox, secret))
//
// # Behind Postgres
//
//	handler → Outbox.Emit → Postgres → outbox's workers → Publisher → exchange → others
//
//	outbox := idem.NewOutbox(pool, "shop", idemrabbitmq.NewPublisher(dial, "events", "orders"))
//
// # Declare the queue
//
// This package declares nothing. Of the queue it needs:
//
//   - It is durable, and neither auto-delete nor exclusive. Best is a quorum queue on
//     three nodes. A publisher to the exchange "" refuses other queues, a consumer
//     warns of them; that a policy lets messages expire, or drops them when the queue
//     is full, nobody is told.
//   - From RabbitMQ 4.0 on a quorum queue drops a message after 20 deliveries. Declare
//     it with the argument x-delivery-limit -1 there: poison is parked in Postgres, and
//     a message that is delivered so often is one whose consumers were killed or lost
//     their connections. Leave the argument out before 4.0: those drop none by
//     themselves, and take -1 for 0. Or give the queue a dead letter exchange, and an
//     alert on it.
//   - consumer_timeout, 30 minutes by default, is the longest that Postgres may be away
//     before the broker delivers to another consumer what one has kept trying. Nothing
//     is lost by that, but each time counts for the delivery limit.
//   - With x-overflow set to reject-publish a queue that is full refuses messages, and
//     the provider keeps them. The default, drop-head, loses the oldest.
//
// # Order
//
// Consumers that give messages to an [idem.Inbox] need no order: it sorts an entity's
// events by the provider's time. So any number of consumers may share the queue.
//
// With x-single-active-consumer one consumer gets all messages, and handles those of a
// Key in order, others beside them; that suffices for an [idem.Processor]. To have
// several, bind N such queues to an exchange of type x-consistent-hash, which is a
// plugin of RabbitMQ's, and let RoutingKey return the Key. Another N moves keys to
// other queues: let the old ones run dry first. Messages that were given back when a
// connection was lost come after some of those behind them; they are duplicates of
// what is handled by then, or of what is still to be handled in its order.
//
// # Connections
//
// A [Dial] opens one connection for each publisher and each consumer: RabbitMQ slows
// down the connections of publishers, and acknowledgements must not wait behind them.
// Give DialConfig a Heartbeat: without one it takes the server's, of a minute.
//
// The package is tested with RabbitMQ 3.10.8, one node, and queues of both kinds. To run its
// tests against yours: IDEMRABBITMQ_URL=amqp://… go test ./...
package idemrabbitmq
