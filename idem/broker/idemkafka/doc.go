// Package idemkafka publishes messages to Kafka, and consumes them, with the
// application's own clients of github.com/twmb/franz-go.
//
// # In front of Postgres
//
//	provider → relay.New → Publisher → topic → Consume → relay.To → Inbox → handlers
//
// The provider gets its 200 once all in-sync replicas have the event, also while
// Postgres is unavailable:
//
//	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...))
//	publisher, err := idemkafka.NewPublisher(client, "webhooks")
//	if err := publisher.Check(ctx); err != nil {
//		log.Print(err) // confirmed messages can be lost
//	}
//	http.Handle("POST /webhooks/asaas", relay.New(events, publisher, secret))
//
// In the same program or in others, with a client of its own:
//
//	client, err := kgo.NewClient(
//		kgo.SeedBrokers(seeds...), kgo.ConsumerGroup("shop"), kgo.ConsumeTopics("webhooks"),
//		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
//	)
//	err = idemkafka.Consume(ctx, client, relay.To(inbox, secret))
//	client.Close()
//
// # Behind Postgres
//
//	handler → Outbox.Emit → Postgres → outbox's workers → Publisher → topic → others
//
//	publisher, err := idemkafka.NewPublisher(client, "orders")
//	outbox := outbox.New(pool, "shop", publisher)
//
// # The topic
//
// This package creates nothing. Of the topic it needs:
//
//   - A replication factor of 3, min.insync.replicas of 2, and no unclean leader
//     election. Otherwise the loss of one broker loses events that were answered with
//     200. Kafka confirms messages that several brokers have in memory, not on disk: put
//     them where they do not lose power together, or set flush.messages to 1.
//   - Retention that is longer than Postgres may ever be unavailable, and no
//     retention.bytes. Kafka deletes older messages, consumed or not, after 7 days by
//     default. The same holds for offsets.retention.minutes.
//   - max.message.bytes of at least the relay's MaxBody and 4 kB more, and the same in
//     the client's kgo.ProducerBatchMaxBytes. The default of both is 1 MB, that of MaxBody
//     16 MiB, for Asaas's CHECKOUT events with pictures. A larger message is an error
//     immediately, and the delivery fails.
//   - cleanup.policy delete. Compaction would keep only the last event of an entity.
//
// [Publisher.Check] looks at these, but not at flush.messages, offsets.retention.minutes
// and the sizes.
//
// # Order
//
// A record's key is the message's Source and Key, so the messages of an entity are in one
// partition, and each partition has one consumer. Messages with the same key are handled
// in order, one after the other; others are handled beside them, also those of the same
// partition. So an [idem.Inbox] stores the events of an entity in
// the topic's order, however many processes consume. If you add partitions, keys move to
// others: first let the consumers finish the messages that are there.
//
// # Content of a message
//
// Messages are CloudEvents in Kafka's binary mode: the value is the Body, and the
// attributes are headers with the prefix "ce_". A message may be in the topic twice, with
// the same ce_id.
//
// # Offsets and rebalances
//
// Every second, or every five seconds if handlers are slow, Consume waits until no handler
// runs. Then it commits the offsets and lets the group rebalance. A partition's offset is
// that of its first message that is not done. So nothing is lost: messages behind that
// one which are done, or were since the last commit of a process that was killed, are
// delivered again as duplicates. When a partition is revoked, its messages that wait here
// are dropped; another consumer gets them.
//
// One slow handler makes all others wait at that time: give slow work to an inbox. Its
// Accept takes milliseconds. A handler's context ends after half of kgo.RebalanceTimeout,
// which is 60 seconds by default, and the handler is called again later.
//
// A message that its handler fails on is tried again for as long as it takes. It keeps the
// offset of its partition where it is, but delays only messages with the same key. When
// 64 messages wait, nothing more is polled. With relay.To that lasts only while
// Postgres is unavailable: events that handlers keep failing on are parked there.
//
// # When the brokers are unavailable
//
// By default the client of a publisher tries again without end. A message with a context that
// ends, after the 8 seconds of a relay for example, may already be sent. The
// client keeps it then, and publishes it when the brokers are back. If the provider has
// delivered the event again, it is in the topic twice, and the consumer drops the
// duplicate. The client keeps up to kgo.MaxBufferedRecords, 50,000, and refuses more
// before their contexts end; kgo.MaxBufferedBytes bounds the memory. With
// kgo.AllowIdempotentProduceCancellation it drops them instead, within seconds.
//
// A consumer's client connects again by itself.
//
// # Tests
//
// This package is tested with kfake of franz-go, a broker in Go that speaks Kafka's
// protocol, rebalances of all three kinds included. It is not tested against Kafka
// itself. To do that, with a broker whose auto.create.topics.enable is false:
//
//	IDEMKAFKA_SEEDS=127.0.0.1:9092 go test -run TestBroker .
package idemkafka
