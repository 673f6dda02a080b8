// Package idemnats publishes messages to NATS JetStream, and consumes them, with the
// application's own connection of github.com/nats-io/nats.go.
//
// # In front of Postgres
//
//	provider → relay.New → Publisher → stream → Consume → relay.To → Inbox → handlers
//
// The provider gets its 200 once the stream has confirmed the event, also while
// Postgres is unavailable:
//
//	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true))
//	js, err := jetstream.New(nc)
//	stream, err := js.CreateOrUpdateStream(ctx, config) // see below
//	publisher, err := idemnats.NewPublisher(js, stream, "webhooks")
//	if err := publisher.Check(ctx); err != nil {
//		log.Print(err) // confirmed messages can be lost
//	}
//	http.Handle("POST /webhooks/asaas", relay.New(events, publisher, secret))
//
// In the same program or in others:
//
//	consumer, err := stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
//		Durable: "inbox", AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: -1,
//		MaxAckPending: 1, // one message at a time keeps the order, see below
//	})
//	err = idemnats.Consume(ctx, consumer, relay.To(inbox, secret))
//
// Consume acknowledges a message once the inbox has stored the event, and waits for the
// server's answer. Until then it asks the server for more time. The inbox drops
// duplicates, so any number of processes may consume. MaxAckPending of the consumer
// bounds how many messages they have together.
//
// # Behind Postgres
//
//	handler → Outbox.Emit → Postgres → outbox's workers → Publisher → stream → others
//
//	outbox := outbox.New(pool, "shop", publisher)
//
// # The stream
//
// This package creates nothing. The stream must be on disk, and should refuse what it
// cannot keep:
//
//	config := jetstream.StreamConfig{
//		Name: "webhooks", Subjects: []string{"webhooks"}, Replicas: 3,
//		Retention: jetstream.WorkQueuePolicy, // a message is deleted once it is acknowledged
//		Discard:   jetstream.DiscardNew,      // a full stream is a 503, not a loss
//		MaxBytes:  10 << 30,
//		AllowAtomicPublish: true,             // NATS 2.12 and later
//	}
//
// NewPublisher refuses a stream that confirms messages before they are on disk, and
// [Publisher.Check] names all other settings that would lose messages.
//
// By default a server confirms messages before it writes them to the disk, which it does
// every two minutes. If the power fails, it loses events that were answered with 200; a
// cluster does, too, if all of it loses power. Clients cannot see that setting: set it
// in the configuration of each server.
//
//	jetstream { store_dir: /data, sync_interval: always }
//
// Then every message costs a write to the disk. With AllowAtomicPublish, messages that
// are published at the same time share one. With several replicas the servers share
// writes in any case.
//
// A message that is larger than the server's max_payload, 1 MiB by default, or than the
// stream's MaxMsgSize, is an error immediately. A relay's message is the provider's body
// and a few hundred bytes: let max_payload be above [idem.Endpoint].MaxBody, by
// default 1 MiB too, or give the relay a Fallback. Otherwise the provider delivers
// such an event in vain until it gives up.
//
// # Order
//
// A consumer with a MaxAckPending of 1 keeps the stream's order, however many processes
// consume, stop or are killed: that suffices for an [idem.Inbox], and for an
// [idem.Processor], which orders nothing. The server sends the next message once it has
// the acknowledgment of the last one. So a message costs the round trips of both and the
// inbox's commit, and after a process was killed all of them wait for AckWait, which is
// 30 seconds by default.
//
// For more messages at a time, divide the stream into partitions. Each has a consumer
// that has one message at a time, and every process calls Consume for all of them:
//
//	publisher.Partitions = 8 // the stream has Subjects: []string{"webhooks.*"}
//	consumer, err := stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
//		Durable: "p0", FilterSubject: "webhooks.0", MaxAckPending: 1,
//		AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: -1,
//	})
//
// Without partitions, a consumer with a larger MaxAckPending keeps no order. The messages that a
// killed process had come again after AckWait, behind later messages of its Keys, and
// processes that consume beside each other do not wait for each other. The inbox
// processes the events that it has by the provider's time, but a later event may be
// stored, and processed, before an earlier one is stored. Use that where handlers are
// right in any order.
//
// # Content of a message
//
// Messages are CloudEvents in binary mode: the data is the Body, and the attributes are
// headers with the prefix "ce-", percent-encoded as they are in HTTP. The header
// Nats-Msg-Id is the message's Source and ID: the stream drops a message that it has
// received within its Duplicates window.
//
// # Tests
//
// The tests run nats-server 2.15 in process, and pass on a real 2.9.10, which takes no
// batches. To run them against yours, with JetStream and a max_payload below 2 MiB:
//
//	IDEMNATS_URL=nats://127.0.0.1:4222 go test -run TestJetStream .
//
// Those that restart the server or have it hang use their own in any case.
package idemnats
