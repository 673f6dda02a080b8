package idemkafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/paghooks/paghooks/idem/broker"
)

// Publisher publishes messages to a topic. Messages of one Source and Key are in one partition,
// in the order in which they were published.
type Publisher struct {
	client *kgo.Client
	topic  string
}

var _ broker.Publisher = (*Publisher)(nil)

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

// Publish implements [broker.Publisher]: it returns nil once all in-sync replicas have the
// message. That is as many copies as the topic's min.insync.replicas, at least: see
// [Publisher.Check].
//
// It returns when ctx ends. The client may still have the message, and publish it when
// the brokers are back: it is in the topic twice if it is published again meanwhile.
func (p *Publisher) Publish(ctx context.Context, m broker.Message) error {
	r := record(p.topic, m)
	confirmed := make(chan error, 1)
	go func() { // of a message that was sent it waits for the answer, even after ctx has ended
		confirmed <- broker.Protect(func() error { return p.client.ProduceSync(ctx, r).FirstErr() }) // the client has hooks of the application's
	}()
	var err error
	select {
	case err = <-confirmed:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("idemkafka: %s %s is not published to topic %q: %w", m.Type, m.ID, p.topic, explain(err, len(m.Body)))
	}
	return nil
}

// explain adds a remedy to an error.
func explain(err error, size int) error {
	switch {
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge):
		return fmt.Errorf("%w with its %d bytes: raise the topic's max.message.bytes and the client's kgo.ProducerBatchMaxBytes: %w", broker.ErrTooLarge, size, err)
	case isAbsent(err):
		return fmt.Errorf("%w: create it as a topic: %w", broker.ErrNoQueue, err)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return fmt.Errorf("the brokers have not confirmed it, and may still do: see that they run, that the topic exists, and that min.insync.replicas of its replicas are in sync: %w", err)
	}
	return err
}

// isAbsent reports whether an error says that there is no topic.
func isAbsent(err error) bool {
	return errors.Is(err, kerr.UnknownTopicOrPartition) || errors.Is(err, kerr.UnknownTopicID)
}
