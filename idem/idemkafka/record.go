package idemkafka

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/paghooks/paghooks/idem/broker"
)

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
