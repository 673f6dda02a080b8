package idemsqs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/paghooks/paghooks/idem/broker"
)

// Publisher publishes messages to a queue. The messages of many goroutines share
// requests, of up to 10 messages each.
type Publisher struct {
	client *sqs.Client
	url    string
	fifo   bool
	sends  broker.Batcher[types.SendMessageBatchRequestEntry]
}

var _ broker.Publisher = (*Publisher)(nil)

// maxSize is the size of the largest message, and of a request. The queue's
// MaximumMessageSize may be less.
const maxSize = 1 << 20

// NewPublisher returns a publisher to the queue with that URL. If its name ends with
// .fifo it keeps the order of the messages of each Key.
func NewPublisher(client *sqs.Client, queueURL string) *Publisher {
	p := &Publisher{client: client, url: queueURL, fifo: strings.HasSuffix(queueURL, ".fifo")}
	p.sends.Send, p.sends.Size, p.sends.MaxSize = limited(p.send), size, maxSize
	p.sends.MaxItems, p.sends.Requests = maxBatch, requests
	return p
}

// Publish implements [broker.Publisher]: it returns nil once SQS has stored the message in
// several places. A FIFO queue drops one with the same Source and ID as another of the
// last five minutes; then it returns nil, too.
//
// It returns an error immediately if the message is larger than 1 MiB with its
// attributes. A body that is no text, or has characters that SQS does not take, grows by
// a third: it is encoded with base64.
func (p *Publisher) Publish(ctx context.Context, m broker.Message) error {
	e := entry(m, p.fifo)
	err := error(nil)
	if n := size(e); n > maxSize {
		err = fmt.Errorf("%w: its %d bytes, with the attributes, are more than the %d that SQS takes: lower the relay's MaxBody", broker.ErrTooLarge, n, maxSize)
	} else {
		err = p.sends.Do(ctx, e)
	}
	if err != nil {
		return fmt.Errorf("idemsqs: %s %s is not published: %w", m.Type, m.ID, err)
	}
	return nil
}

// maxBatch is the number of entries in one request.
const maxBatch = 10

// requests is the number of requests of one kind in flight at the same time.
const requests = 16

// sendTime is the time that a request may take, with the client's retries.
const sendTime = 10 * time.Second

// limited has a request end after sendTime.
func limited[T any](send func(ctx context.Context, batch []T) []error) func(batch []T) []error {
	return func(batch []T) []error {
		ctx, cancel := context.WithTimeout(context.Background(), sendTime)
		defer cancel()
		return send(ctx, batch)
	}
}

// send sends up to 10 messages.
func (p *Publisher) send(ctx context.Context, batch []types.SendMessageBatchRequestEntry) []error {
	for i := range batch {
		batch[i].Id = new(strconv.Itoa(i))
	}
	out, err := p.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &p.url, Entries: batch})
	if _, ok := errors.AsType[*types.BatchRequestTooLong](err); ok && len(batch) > 1 { // the queue takes less than maxSize
		var all []error
		for i := range batch {
			all = append(all, p.send(ctx, batch[i:i+1])...)
		}
		return all
	}
	if err != nil {
		return fill(len(batch), explain(err))
	}
	return results(len(batch), len(out.Successful), func(i int) string { return *out.Successful[i].Id }, out.Failed)
}

// explain adds a remedy to the error of a missing queue.
func explain(err error) error {
	if _, ok := errors.AsType[*types.QueueDoesNotExist](err); ok {
		return fmt.Errorf("%w: create it, or correct its URL: %w", broker.ErrNoQueue, err)
	}
	return err
}

// results are the errors of a request's entries: an entry that the answer does not have
// is not done.
func results(entries, successful int, id func(int) string, failed []types.BatchResultErrorEntry) []error {
	all := fill(entries, errors.New("SQS has not answered for it"))
	set := func(id string, err error) {
		if i, convErr := strconv.Atoi(id); convErr == nil && i >= 0 && i < entries {
			all[i] = err
		}
	}
	for i := range successful {
		set(id(i), nil)
	}
	for _, f := range failed {
		set(*f.Id, refusal(f))
	}
	return all
}

// refusal is SQS's error about one entry.
func refusal(f types.BatchResultErrorEntry) error {
	var code, text string
	if f.Code != nil {
		code = *f.Code
	}
	if f.Message != nil {
		text = *f.Message
	}
	if strings.Contains(text, "shorter than") {
		return fmt.Errorf("%w for the queue: raise its MaximumMessageSize: SQS says %s: %s", broker.ErrTooLarge, code, text)
	}
	return fmt.Errorf("SQS says %s: %s", code, text)
}

func fill(n int, err error) []error {
	all := make([]error, n)
	for i := range all {
		all[i] = err
	}
	return all
}
