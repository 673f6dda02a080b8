// Package idemsqs sends messages to Amazon SQS, and receives them, with the
// application's own client of github.com/aws/aws-sdk-go-v2/service/sqs.
//
// # In front of Postgres
//
//	provider → idem.Relay → Publisher → queue → Consume → idem.Relayed → Inbox → handlers
//
// The provider gets its 200 once SQS has the event, also while Postgres is away:
//
//	client := sqs.NewFromConfig(config)
//	http.Handle("POST /webhooks/asaas", idem.NewRelay(events, idemsqs.NewPublisher(client, queueURL), secret))
//
//	err := idemsqs.Consume(ctx, client, queueURL, idem.Relayed(inbox, secret))
//
// # Behind Postgres
//
//	handler → Outbox.Emit → Postgres → outbox's workers → Publisher → queue → others
//
//	outbox := idem.NewOutbox(pool, "shop", idemsqs.NewPublisher(client, queueURL))
//
// # The queue
//
// A standard queue suffices where messages go to an [idem.Inbox], which sorts an
// entity's events by the provider's time. With a FIFO queue the messages of a Key are
// delivered in order, and no two at once: that suffices for an [idem.Processor], too.
// Their group is the hash of the Key, and their deduplication ID that of the Source
// and the ID, so SQS takes a message and drops it if one with that ID was sent in the
// last five minutes: also one that is replayed on purpose.
//
//   - A queue with a redrive policy moves a message to its dead letter queue after
//     maxReceiveCount deliveries. Failures of handlers do not count, they are tried
//     again in place, and poison is parked in Postgres; what counts is each process
//     that ends or is killed while it has the message. Set it to 100 or more, and an
//     alarm on the dead letter queue; moving a message from a FIFO queue breaks its
//     order.
//   - SQS deletes what is older than the queue's MessageRetentionPeriod, 4 days by
//     default: that is how long Postgres may be away. Set it to 14.
//   - A message has at most 1 MiB with its attributes, or the queue's
//     MaximumMessageSize if that is less: a relay's MaxBody should be below. A larger
//     one is an error at once.
//   - The client needs sqs:SendMessage to publish; sqs:ReceiveMessage, sqs:DeleteMessage
//     and sqs:ChangeMessageVisibility to consume.
//
// # What is in a message
//
// The body is as it is if it is text that SQS takes; otherwise it is encoded with
// base64, and the attribute contentencoding is "base64". The attributes of a
// [CloudEvent] are message attributes with the prefix "ce-".
//
// The package is tested with sqstest, a server that follows SQS's documentation, and
// has not been tested with AWS itself. To do that, on queues that the tests make and
// delete: IDEMSQS_REGION=sa-east-1 AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… go test ./...
//
// [CloudEvent]: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md
package idemsqs
