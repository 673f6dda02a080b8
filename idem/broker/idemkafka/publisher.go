package idemkafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

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

// Check asks the brokers whether a message that they have confirmed can be lost. It
// returns an error that names each thing that would lose messages and the change that prevents it,
// or that the brokers did not tell. It changes nothing. Call it once at the start, and
// log the error, or stop.
//
// It names a topic that does not exist, one with messages that are lost with one broker, and
// one that deletes messages that no consumer has read: because it is compacted, full, or
// keeps them for less than 4 days, in which Postgres may be unavailable.
//
// The brokers must let the client describe the topic and its configuration.
func (p *Publisher) Check(ctx context.Context) error {
	replicas := p.checkReplicas(ctx)
	if isAbsent(replicas) {
		return replicas
	}
	return errors.Join(replicas, p.checkSettings(ctx))
}

func (p *Publisher) checkReplicas(ctx context.Context) error {
	topics, err := describe(ctx, p.client, p.topic)
	if err != nil {
		return fmt.Errorf("idemkafka: asking for the replicas of topic %q: %w", p.topic, err)
	}
	for _, t := range topics {
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return fmt.Errorf("idemkafka: topic %q: %w", p.topic, explain(err, 0))
		}
		for _, partition := range t.Partitions {
			if n := len(partition.Replicas); n < 2 {
				return fmt.Errorf("idemkafka: partition %d of topic %q has %d replica, and is lost with its broker: have a replication factor of 3", partition.Partition, p.topic, n)
			}
		}
	}
	return nil
}

// describe asks the brokers for topics, and has them create none.
func describe(ctx context.Context, client *kgo.Client, topics ...string) ([]kmsg.MetadataResponseTopic, error) {
	request := kmsg.NewPtrMetadataRequest()
	for _, name := range topics {
		topic := kmsg.NewMetadataRequestTopic()
		topic.Topic = &name
		request.Topics = append(request.Topics, topic)
	}
	response, err := request.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	return response.Topics, nil
}

func (p *Publisher) checkSettings(ctx context.Context) error {
	request := kmsg.NewPtrDescribeConfigsRequest()
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, p.topic
	request.Resources = append(request.Resources, resource)
	response, err := request.RequestWith(ctx, p.client)
	if err != nil {
		return fmt.Errorf("idemkafka: asking for the settings of topic %q: %w", p.topic, err)
	}
	var errs []error
	for _, r := range response.Resources {
		if err := kerr.ErrorForCode(r.ErrorCode); err != nil {
			errs = append(errs, fmt.Errorf("idemkafka: asking for the settings of topic %q: %w", p.topic, err))
		}
		for _, c := range r.Configs {
			if h, ok := hazards[c.Name]; ok && c.Value != nil && h.loses(*c.Value) {
				errs = append(errs, fmt.Errorf("idemkafka: %s of topic %q is %s: %s", c.Name, p.topic, *c.Value, h.why))
			}
		}
	}
	return errors.Join(errs...)
}

// longOutage is the shortest time for which a topic should keep messages: Postgres may be
// unavailable for a long weekend.
const longOutage = 4 * 24 * time.Hour

// hazards are the settings of a topic with which it can lose messages that are confirmed.
var hazards = map[string]struct {
	loses func(value string) bool
	why   string
}{
	"min.insync.replicas":            {func(v string) bool { return v == "1" }, "a message is confirmed once a single broker has it, so set it to 2"},
	"unclean.leader.election.enable": {func(v string) bool { return v == "true" }, "a replica that lacks confirmed messages may become the leader, so set it to false"},
	"cleanup.policy":                 {func(v string) bool { return strings.Contains(v, "compact") }, "of the messages with a key only the last is kept, so set it to delete"},
	"retention.bytes":                {func(v string) bool { return v != "-1" }, "a partition that is full loses its oldest messages, consumed or not, so set it to -1, and have an alert on the disks"},
	"retention.ms": {
		func(v string) bool {
			ms, err := strconv.ParseInt(v, 10, 64)
			return err == nil && ms >= 0 && ms < longOutage.Milliseconds()
		},
		fmt.Sprintf("older messages are deleted, consumed or not, so set it to how long Postgres may be unavailable, which is 4 days (%d) at least", longOutage.Milliseconds()),
	},
}

// prefix begins the headers with a CloudEvent's attributes.
const prefix = "ce_"

// record is a message in the binary mode of CloudEvents over Kafka. Its key decides on
// the partition.
func record(topic string, m broker.Message) *kgo.Record {
	r := &kgo.Record{Topic: topic, Value: m.Body}
	if m.Key != "" {
		r.Key = []byte(m.Source + "/" + m.Key)
	}
	for name, value := range m.CloudEvent() {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: prefix + name, Value: []byte(value)})
	}
	return r
}

// message returns the message of a record, published by this package or by others. A record that is no
// CloudEvent has a Body only.
func message(r *kgo.Record) broker.Message {
	attributes := make(map[string]string, len(r.Headers))
	for _, h := range r.Headers {
		if name, ok := strings.CutPrefix(h.Key, prefix); ok {
			attributes[name] = string(h.Value)
		}
	}
	return broker.MessageOf(attributes, r.Value)
}
