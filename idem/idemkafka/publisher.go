package idemkafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// Publisher publishes messages to a topic. Messages of one Source and Key are in one partition,
// in the order in which they were published.
type Publisher struct {
	client *kgo.Client
	topic  string
}

var _ idem.Publisher = (*Publisher)(nil)

// NewPublisher returns a publisher to a topic, which must exist. Several may share a
// client.
//
// It returns an error if the client is configured to have messages confirmed before
// all in-sync replicas have them, to place them without regard to their keys, or to
// wait for Flush. The defaults are right.
func NewPublisher(client *kgo.Client, topic string) (*Publisher, error) {
	keyed := &kgo.Record{Topic: topic, Key: []byte("key")}
	partitioner, _ := client.OptValue(kgo.RecordPartitioner).(kgo.Partitioner)
	switch {
	case topic == "":
		return nil, errors.New("idemkafka: a publisher needs the name of its topic")
	case client.OptValue(kgo.RequiredAcks) != kgo.AllISRAcks():
		return nil, errors.New("idemkafka: the client has messages confirmed before all in-sync replicas have them: leave kgo.RequiredAcks and kgo.DisableIdempotentWrite out")
	case client.OptValue(kgo.ManualFlushing) == true:
		return nil, errors.New("idemkafka: the client publishes nothing before Flush: leave kgo.ManualFlushing out")
	case partitioner != nil && !partitioner.ForTopic(topic).RequiresConsistency(keyed):
		return nil, errors.New("idemkafka: the client's partitioner ignores keys, and messages of a Key would lose their order: leave kgo.RecordPartitioner out")
	}
	return &Publisher{client, topic}, nil
}

// Publish implements [idem.Publisher]: it returns nil once all in-sync replicas have the
// message. That is as many copies as the topic's min.insync.replicas, at least: see
// [Publisher.Check].
//
// It returns when ctx ends. The client may still have the message, and publish it when
// the brokers are back: it is in the topic twice if it is published again meanwhile.
func (p *Publisher) Publish(ctx context.Context, m idem.Message) error {
	r := record(p.topic, m)
	confirmed := make(chan error, 1)
	go func() { // of a message that was sent it waits for the answer, whatever ctx says
		confirmed <- pgtx.Protect(func() error { return p.client.ProduceSync(ctx, r).FirstErr() }) // the client has hooks of the application's
	}()
	select {
	case err := <-confirmed:
		return p.explain(err, len(m.Body))
	case <-ctx.Done():
		return p.explain(ctx.Err(), len(m.Body))
	}
}

func (p *Publisher) explain(err error, size int) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge):
		return fmt.Errorf("idemkafka: a message of %d bytes is too large for topic %q: raise its max.message.bytes and the client's kgo.ProducerBatchMaxBytes: %w", size, p.topic, err)
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID):
		return fmt.Errorf("idemkafka: there is no topic %q: create it: %w", p.topic, err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fmt.Errorf("idemkafka: the brokers have not confirmed a message, and may still do: see that they run, that topic %q exists, and that min.insync.replicas of its replicas are in sync: %w", p.topic, err)
	default:
		return fmt.Errorf("idemkafka: publishing to topic %q: %w", p.topic, err)
	}
}
