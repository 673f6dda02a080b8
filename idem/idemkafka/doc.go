// Package idemkafka publishes messages to Kafka, and consumes them, with the
// application's own clients of github.com/twmb/franz-go.
//
// # In front of Postgres
//
//	provider → idem.Relay → Publisher → topic → Consume → idem.Relayed → Inbox → handlers
//
// The provider gets its 200 once all in-sync replicas have the event, also while
// Postgres is away:
//
//	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...))
//	publisher, err := idemkafka.NewPublisher(client, "webhooks")
//	if err := publisher.Check(ctx); err != nil {
//		log.Print(err) // what is confirmed may be lost with one broker
//	}
//	http.Handle("POST /webhooks/asaas", idem.NewRelay(events, publisher, secret))
//
// In the same program or another one, with a client of its own:
//
//	client, err := kgo.NewClient(
//		kgo.SeedBrokers(seeds...), kgo.ConsumerGroup("shop"), kgo.ConsumeTopics("webhooks"),
//		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
//	)
//	err = idemkafka.Consume(ctx, client, idem.Relayed(inbox, secret))
//	client.Close()
//
// # Behind Postgres
//
//	handler → Outbox.Emit → Postgres → outbox's workers → Publisher → topic → others
//
//	publisher, err := idemkafka.NewPublisher(client, "orders")
//	outbox := idem.NewOutbox(pool, "shop", publisher)
//
// Others read CloudEvents in Kafka's binary mode: attributes are headers with the
// prefix "ce_", the value is the body. A message may be there twice, with the same
// ce_id.
//
// # Create the topic
//
// This package creates nothing. Of the topic it needs:
//
//   - A replication factor of 3, min.insync.replicas of 2, and no unclean leader
//     election. Otherwise a broker that is lost takes events with it that were answered
//     with 200: [Publisher.Check] tells. Kafka confirms what several brokers have in
//     memory, not what is on disk: put them where they do not lose power together, or
//     set flush.messages to 1.
//   - Retention that is longer than Postgres may ever be away. Kafka deletes what is
//     older, consumed or not, 7 days by default. So is offsets.retention.minutes.
//   - max.message.bytes of at least the relay's MaxBody and 4 kB more, and the same in
//     the client's kgo.ProducerBatchMaxBytes, or else a Fallback for the relay. The
//     default of both is 1 MB. What is larger is refused immediately.
//   - cleanup.policy delete. Compaction would keep only the last event of an entity.
//
// # Order
//
// A record's key is the message's Source and Key, so an entity's messages are in one
// partition, which one consumer has. Those of one key are handled in order, one after
// the other, and others beside them, also in the same partition. That suffices for an
// [idem.Processor], and has an [idem.Inbox] store them as they were delivered. With more
// partitions keys move to others: let the old ones run dry first.
//
// # Offsets and rebalances
//
// Every second, or every five if handlers are slow, no handler runs for a moment. Then
// the offsets are committed, and the group may rebalance. A partition's offset is that
// of its first message that is not done. So nothing is lost; what was done after it, or
// since the last commit of a process that was killed, is delivered again, as a
// duplicate. Messages that wait here for a partition that was taken away are dropped.
//
// The others wait for a slow handler then: give slow work to an inbox, whose Accept
// takes milliseconds. A handler's context ends after half of kgo.RebalanceTimeout, 60
// seconds by default, and it is called again later.
//
// A message whose handler fails is tried again for as long as it takes, and keeps the
// offset of its partition where it is, but delays only those with the same key. When
// 64 messages wait for such ones, nothing more is polled. With [idem.Relayed] that
// lasts only while Postgres is away: poison is parked there, and done.
//
// # When the brokers are away
//
// The client of a publisher tries again without end, by default. A message whose
// context ends, after the 8 seconds of a [idem.Relay] say, may already be sent; then
// the client keeps it, publishes it when the brokers are back, and it is there twice
// if the provider has delivered it again. The consumer drops the duplicate. The client
// keeps up to kgo.MaxBufferedRecords, 50,000, and refuses more in time:
// kgo.MaxBufferedBytes says how much memory that is. With
// kgo.AllowIdempotentProduceCancellation it forgets them instead, within seconds.
//
// A consumer's client connects again by itself.
//
// # Tested with
//
// This package is tested with kfake of franz-go, a broker in Go that speaks Kafka's
// protocol, rebalances of all three kinds included. It is not tested against Kafka
// itself. To do that, with a broker whose auto.create.topics.enable is false:
//
//	IDEMKAFKA_SEEDS=127.0.0.1:9092 go test -run TestBroker .
package idemkafka
