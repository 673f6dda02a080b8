// Package idemnats is NATS JetStream for package idem: a [Publisher] that returns once a
// stream has confirmed a message, and [Consume].
//
// # Make a stream that keeps its word
//
// The client is the application's own. It must not give up connecting, and the stream
// must be on disk:
//
//	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true))
//	js, err := jetstream.New(nc)
//	stream, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
//		Name: "hooks", Subjects: []string{"hooks"}, Replicas: 3,
//		Retention: jetstream.WorkQueuePolicy, // a message is deleted when it is done
//		Discard:   jetstream.DiscardNew,      // a full stream is a 503, not a loss
//		MaxBytes:  10 << 30,
//		AllowAtomicPublish: true,             // NATS 2.12 and later
//	})
//
// By default a server writes messages to the disk every two minutes, and confirms them
// before. Losing power then loses events that the provider had a 200 for, in a cluster
// too if it is lost in all of it. Clients cannot see that setting: set it in the
// configuration of each server.
//
//	jetstream { store_dir: /data, sync_interval: always }
//
// Then every message costs a write to the disk. With AllowAtomicPublish, messages that
// are published at the same time share one. With several replicas the servers
// do that in any case.
//
// # In front of Postgres
//
//	provider → idem.Relay → Publisher → stream → Consume → idem.Relayed → Inbox → handlers
//
//	publisher, err := idemnats.NewPublisher(js, stream, "hooks")
//	relay := idem.NewRelay(dispatcher, publisher, secret)
//	http.Handle("POST /webhooks/asaas", relay)
//
// and in the same program or in others:
//
//	consumer, err := stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
//		Durable: "inbox", AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: -1,
//	})
//	err = idemnats.Consume(ctx, consumer, idem.Relayed(inbox, secret))
//
// Consume tells the server that a message is done once the inbox has it, and waits for
// the server's answer. While it is not done, the server is asked for more time. The
// inbox drops duplicates, so any number of processes may consume. A MaxAckPending of the
// consumer bounds how many messages they have together.
//
// One process stores the events of a Key in their order. Several do not wait for each
// other: the inbox orders what it has, but a later event may be stored, and processed,
// before an earlier one is stored. Where that matters, use partitions, as below.
//
// # Behind Postgres
//
//	handler → Outbox.Emit → Postgres → outbox's workers → Publisher → stream → others
//
//	outbox := idem.NewOutbox(pool, "shop", publisher)
//
// Messages are CloudEvents in binary mode: the attributes are headers such as ce-id,
// percent-encoded as they are in HTTP. The header Nats-Msg-Id is the message's Source
// and ID, so that the stream drops what is published again within its Duplicates
// window.
//
// # In order
//
// For a Processor, which orders nothing, and for an inbox that several processes consume
// into, the server has to keep the order of each Key: divide the stream into partitions,
// each with a consumer that has one message at a time, and call Consume for all of them in
// every process.
//
//	publisher.Partitions = 8 // the stream has Subjects: []string{"hooks.*"}
//	consumer, err := stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{
//		Durable: "p0", FilterSubject: "hooks.0", MaxAckPending: 1,
//		AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: -1,
//	})
//
// # What cannot be published
//
// A message that is larger than the server's max_payload, 1 MiB by default, or than the
// stream's MaxMsgSize, is an error immediately. A relay's message is the provider's body
// and a few hundred bytes: let max_payload be above [idem.Receiving].MaxBody, whose
// default is 1 MiB too, or give the relay a Fallback. Otherwise the provider delivers such
// an event in vain until it gives up. A server that does not answer is an error when the
// context of Publish ends.
//
// # Tested against
//
// The tests run nats-server 2.15 in process, and pass on a real 2.9.10, which takes no
// batches. To run them against yours, with JetStream and a max_payload below 2 MiB:
//
//	IDEMNATS_URL=nats://127.0.0.1:4222 go test -run TestJetStream .
//
// Those that restart the server or have it hang use their own in any case.
package idemnats
