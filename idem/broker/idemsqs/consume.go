package idemsqs

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/paghooks/paghooks/idem/broker"
)

// Consume passes the messages of a queue to handle until ctx ends, as
// [broker.Consumer.Consume] does. A message is deleted once handle has returned nil. Any
// number of calls, in any number of processes, may share a queue.
//
// A message that is being handled, or waits for that, stays invisible to others for up to
// 12 hours, which is SQS's limit. Then it is delivered again. If the process is killed,
// or has just received messages when ctx ends, they are delivered again after 30 seconds.
//
// While the queue does not exist, Consume logs that every few seconds. Once it does,
// Consume goes on.
func Consume(ctx context.Context, client *sqs.Client, queueURL string, handle broker.Handle) error {
	return ConsumeWith(ctx, broker.Consumer{}, client, queueURL, handle)
}

// ConsumeWith is [Consume] with settings. ExtendEvery also decides the visibility timeout
// of each message, which is three times as long, in whole seconds.
func ConsumeWith(ctx context.Context, settings broker.Consumer, client *sqs.Client, queueURL string, handle broker.Handle) error {
	settings = settings.WithDefaults()
	s := &subscription{client: client, url: queueURL, visible: int32(min(max(1, 3*settings.ExtendEvery/time.Second), twelveHours))}
	err := settings.Consume(ctx, s.receive, handle)
	s.returnAll(ctx)
	return err
}

// twelveHours is the longest that SQS hides a message, in seconds.
const twelveHours = 12 * 60 * 60

// subscription receives the messages of a queue.
type subscription struct {
	client  *sqs.Client
	url     string
	visible int32 // seconds until others see a message again

	waiting []types.Message // received, and not yet given to a handler
	until   time.Time       // too late for them: others may see them soon
}

const (
	most    = 10 // the most messages that SQS gives at once
	longest = 20 // the longest that a request may wait for messages, in seconds
)

// receive waits for the next message.
func (s *subscription) receive(ctx context.Context) (broker.Delivery, error) {
	for {
		if len(s.waiting) > 0 && time.Now().After(s.until) {
			s.waiting = nil // all handlers were busy for so long; these come again
		}
		if len(s.waiting) > 0 {
			next := s.waiting[0]
			s.waiting = s.waiting[1:]
			return s.delivery(next), nil
		}
		out, err := s.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &s.url, MaxNumberOfMessages: most, WaitTimeSeconds: longest, VisibilityTimeout: s.visible,
			MessageAttributeNames:       []string{"All"},
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameMessageGroupId},
		})
		if err != nil {
			return broker.Delivery{}, fmt.Errorf("idemsqs: receiving messages from %s: %w", s.url, explain(err))
		}
		s.waiting = out.Messages
		s.until = time.Now().Add(time.Duration(s.visible) * time.Second / 2) // in time to extend one
	}
}

func (s *subscription) delivery(r types.Message) broker.Delivery {
	return broker.Delivery{
		Message: message(r),
		Lane:    r.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)],
		Done: func(ctx context.Context) error {
			_, err := s.client.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &s.url, ReceiptHandle: r.ReceiptHandle})
			return err
		},
		Extend: func(ctx context.Context) error { return s.show(ctx, r, s.visible) },
		Return: func(ctx context.Context) error { return s.show(ctx, r, 0) },
	}
}

// show has others see a message after so many seconds.
func (s *subscription) show(ctx context.Context, r types.Message, seconds int32) error {
	_, err := s.client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{
		QueueUrl: &s.url, ReceiptHandle: r.ReceiptHandle, VisibilityTimeout: seconds,
	})
	return err
}

// returnAll returns the messages that were received and that no handler got. If that fails, the messages
// are delivered again later.
func (s *subscription) returnAll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	for _, r := range s.waiting {
		_ = s.show(ctx, r, 0)
	}
}
