// Package broker is what the modules for brokers have in common: [Consumer] takes
// messages from any broker and gives them to a function, in order where that matters,
// again until it succeeds, and with more time from the broker meanwhile. Its
// subpackage brokertest has the tests that every module passes.
//
// Most programs need only a module: idemnats, idemrabbitmq, idemkafka or idemsqs, all
// beside this package. Use this one for a broker that has no module: write a
// [idem.Publisher] whose Publish returns once the message is on disk, and a receive
// function for [Consumer.Consume].
//
// # In front of Postgres
//
//	provider → idem.Relay → broker → Consume → idem.Relayed → Inbox → handlers
//
// The relay verifies and publishes, and the provider gets its 200 while Postgres is
// away. A message is done for the broker once the inbox has it; the inbox drops
// duplicates, so the broker may deliver as often as it likes.
//
// The inbox orders the events that it has by the provider's time. It cannot wait for one
// that it does not have: an event that the broker delivers later than the next one of
// its Key may be processed later. One process that consumes stores the events of a Key as
// the broker delivers them. Where several do, and order matters, have the broker
// deliver no two messages of a Key at the same time: the modules say how.
//
// # Behind Postgres
//
//	handler → Outbox.Emit → Postgres → outbox's workers → Publisher → broker → others
//
// See [idem.Outbox]. Messages of one Key are published in order.
package broker
