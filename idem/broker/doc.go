// Package broker consumes messages from any broker: a [Consumer] passes them to a
// function, those of an entity in order, calls it again until it succeeds, and asks the
// broker for more time meanwhile. Subpackage brokertest has the tests that every module
// for a broker passes.
//
// Most programs need only one of these modules, and of this package the settings in
// [Consumer]:
//
//	idemrabbitmq  RabbitMQ
//	idemkafka     Kafka
//	idemsqs       Amazon SQS
//
// They are used alike. Each has a Publisher, and its Check asks the broker whether messages
// that it has confirmed can be lost: call it once at the start, and log the error, or
// stop. Each has a Consume, and ConsumeWith with settings. While its queue does not exist,
// Consume logs that, and tries again until it does.
//
// For another broker, write a [Publisher] with a Publish that returns once the broker
// has the message on disk, or an error with [ErrTooLarge], and a receive function for
// [Consumer.Consume].
//
// # In front of Postgres
//
//	provider → relay.New → broker → Consume → relay.To → Inbox → handlers
//
// The relay verifies and publishes, and the provider gets its 200 also while Postgres
// is unavailable. A message is acknowledged once the inbox has stored it. The inbox
// drops duplicates, so the broker may deliver a message more than once. With its
// WorkFirst, a message is acknowledged once the first try has succeeded, or its event is
// stored.
//
// Let only relays publish to the queue. A forged message reaches no handler, but SQS
// drops a message with an ID that it has had lately: a forged one keeps the genuine
// one out.
//
// # Order
//
// An inbox orders the events that it has stored by the provider's time. It cannot wait
// for one that is still in the broker: if a later event of the same Key is stored
// first, it may be processed first. This cannot happen as long as events of a Key are
// stored one after the other, in the broker's order:
//
//   - One process that consumes does that for its own messages.
//   - Where several consume, and order matters, the broker must deliver no two messages
//     of a Key at the same time. The documentation of each module says how.
//
// # Behind Postgres
//
//	handler → Outbox.Emit → Postgres → outbox's workers → Publisher → broker → others
//
// See [outbox.Outbox]. Messages of one Key are published in order.
package broker
