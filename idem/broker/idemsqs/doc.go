// Package idemsqs publishes messages to Amazon SQS, and consumes them, with the
// application's own client of github.com/aws/aws-sdk-go-v2/service/sqs.
//
// # In front of Postgres
//
//	provider → relay.New → Publisher → queue → Consume → relay.To → Inbox → handlers
//
// The provider gets its 200 once SQS has the event, also while Postgres is unavailable:
//
//	client := sqs.NewFromConfig(config)
//	publisher := idemsqs.NewPublisher(client, queueURL)
//	if err := publisher.Check(ctx); err != nil {
//		log.Print(err) // confirmed messages can be lost
//	}
//	http.Handle("POST /webhooks/asaas", relay.New(events, publisher, secret))
//
// In the same program or in others:
//
//	err := idemsqs.Consume(ctx, client, queueURL, relay.To(inbox, secret))
//
// # Behind Postgres
//
//	handler → Outbox.Emit → Postgres → outbox's workers → Publisher → queue → others
//
//	outbox := outbox.New(pool, "shop", idemsqs.NewPublisher(client, queueURL))
//
// # The queue
//
// This package creates nothing. Of the queue it needs:
//
//   - If it has a redrive policy, a maxReceiveCount of 100 or more, and an alarm on the
//     dead letter queue: SQS moves a message there after so many deliveries. Failures of
//     handlers do not count: they are tried again without a delivery, and parked in
//     Postgres. Each process counts that ends or is killed while it has the
//     message. Moving a message from a FIFO queue breaks its order.
//   - A MessageRetentionPeriod of 14 days: SQS deletes older messages, after 4 days by
//     default. That is how long Postgres may be unavailable: Check names less than 4 days.
//   - Messages of at most 1 MiB with their attributes, or of the queue's
//     MaximumMessageSize if that is less. Let the relay's MaxBody be below. A larger
//     message is an error immediately: have an Inbox receive types whose events may be
//     larger, as Asaas's CHECKOUT events with pictures are, at a webhook of its own.
//   - For more than 300 messages a second through a FIFO queue, high throughput: a
//     DeduplicationScope of messageGroup and a FifoThroughputLimit of perMessageGroupId. A
//     request carries one message.
//   - The rights sqs:SendMessage to publish, and sqs:GetQueueAttributes for
//     [Publisher.Check], which looks at the first two of these; sqs:ReceiveMessage,
//     sqs:DeleteMessage and sqs:ChangeMessageVisibility to consume.
//
// # Order
//
// A standard queue delivers in any order. An [idem.Inbox] processes the events that it has
// by the provider's time, but a later event may be stored, and processed, before an
// earlier one is stored.
//
// Where that matters, use a FIFO queue.
// It delivers the messages of a Key in order, and no two at the same time, however many
// processes consume. Their message group is the hash of the Source and the Key, and
// their deduplication ID that of the Source and the ID. SQS accepts a message and drops it
// if one with that ID was sent in the last five minutes, also if it was replayed on
// purpose.
//
// # Content of a message
//
// The body is the Body, if that is text that SQS takes. Otherwise it is encoded with base64,
// and the attribute contentencoding is "base64". The attributes of a [CloudEvent] are
// message attributes with the prefix "ce-".
//
// # Tests
//
// The package is tested with sqstest, a server that follows SQS's documentation. It has
// not been tested with AWS itself. To do that, on queues that the tests make and delete:
//
//	IDEMSQS_REGION=sa-east-1 AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… go test ./...
//
// [CloudEvent]: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md
package idemsqs
