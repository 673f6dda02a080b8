// Package idemrabbitmq publishes messages to RabbitMQ, and consumes them, with the
// application's own connections of github.com/rabbitmq/amqp091-go.
//
// # In front of Postgres
//
//	provider → relay.New → Publisher → queue → Consume → relay.To → Inbox → handlers
//
// The provider gets its 200 once the queue has the event on disk, also while Postgres
// is unavailable:
//
//	dial := func() (*amqp.Connection, error) { return amqp.Dial(url) }
//	publisher := idemrabbitmq.NewPublisher(dial, "", "webhooks")
//	if err := publisher.Check(ctx); err != nil {
//		log.Print(err) // confirmed messages can be lost
//	}
//	http.Handle("POST /webhooks/asaas", relay.New(events, publisher, secret))
//
// In the same program or in others:
//
//	err := idemrabbitmq.Consume(ctx, dial, "webhooks", relay.To(inbox, secret))
//
// # Behind Postgres
//
//	handler → Outbox.Emit → Postgres → outbox's workers → Publisher → exchange → others
//
//	outbox := outbox.New(pool, "shop", idemrabbitmq.NewPublisher(dial, "events", "orders"))
//
// # The queue
//
// This package declares nothing. Of the queue it needs:
//
//   - It is durable, and neither auto-delete nor exclusive. Best is a quorum queue on
//     three nodes. A publisher to the exchange "" refuses other queues, also in its Check,
//     and a consumer logs a warning. Neither can see a policy that lets messages expire,
//     or that drops them when the queue is full.
//   - From RabbitMQ 4.0 on, a quorum queue drops a message after 20 deliveries: declare
//     it with the argument x-delivery-limit -1. Before 4.0 leave the argument out: there
//     is no limit by default, and -1 means 0. A message is delivered that often because
//     its consumers were killed or lost their connections; events with failing handlers
//     are parked in Postgres. Or give the queue a dead letter exchange, and an alert
//     on it.
//   - x-single-active-consumer keeps the order: see below.
//   - consumer_timeout, 30 minutes by default, is how long a consumer may keep a message.
//     If Postgres is unavailable for longer, the broker delivers it to another one.
//     Nothing is lost by that, but each time counts for the delivery limit.
//   - With x-overflow set to reject-publish, a queue that is full refuses messages, and
//     the provider delivers again. The default, drop-head, loses the oldest.
//
// # Order
//
// Declare the queue with x-single-active-consumer. Of any number of processes that
// consume it, one then gets all messages. It handles those of a Key in order, and
// different Keys at the same time. When it stops, it lets its handlers end before the
// next one gets a message. That suffices for an [idem.Inbox].
//
// Without it, processes do not wait for each other: one may store a later event of a Key
// before another stores an earlier one. The inbox processes those that it has by the
// provider's time, so the later one may be processed first. Use that where handlers are
// right in any order.
//
// For several consumers at work, bind N such queues to an exchange of type x-consistent-hash, which is
// a plugin of RabbitMQ's, and let RoutingKey return the Key. Another N moves Keys to other
// queues: first let the consumers empty the old ones. After a lost connection, messages that
// were not acknowledged may be delivered behind later ones; those are duplicates of messages that
// are handled by then, or that are still to be handled in their order.
//
// # Content of a message
//
// The body is the Body. The attributes of a [CloudEvent] are headers with the prefix
// "cloudEvents:". The properties message-id and type are the ID and the Type, if they
// have at most 255 bytes, for consumers that do not read those headers.
//
// # Connections
//
// A [Dial] opens one connection for each publisher and each consumer: RabbitMQ slows
// down the connections of publishers, and acknowledgements must not wait behind them.
// Give DialConfig a Heartbeat: without one it takes the server's, of a minute.
//
// # Tests
//
// The package is tested with RabbitMQ 3.10.8, one node, and queues of both kinds. To run
// its tests against yours:
//
//	IDEMRABBITMQ_URL=amqp://… go test ./...
//
// [CloudEvent]: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md
package idemrabbitmq
