package broker

import (
	"context"
	"errors"
	"time"
)

// Message is a message of a broker: an event of the application's own, emitted by a
// handler, or a provider's event on its way from a relay to a consumer.
type Message struct {
	Source string // the name of its source; an outbox and a relay set it

	ID   string    // unique within the Source; if empty, Emit of the outbox makes one
	Type string    // the event: "order.paid"; not empty
	Key  string    // the entity that it is about, an order for example, of which messages are published in order; may be empty
	Time time.Time // when it happened, or by the database's clock when it was emitted; zero if that is not known
	Body []byte
}

// CloudEvent returns the message's attributes as in [CloudEvents 1.0], for the binary
// mode of a transport: over HTTP their names get the prefix "ce-", over Kafka
// "ce_", over AMQP "cloudEvents:". The Key is the subject.
//
// [CloudEvents 1.0]: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md
func (m Message) CloudEvent() map[string]string {
	attributes := map[string]string{"specversion": "1.0", "id": m.ID, "source": m.Source, "type": m.Type}
	if m.Key != "" {
		attributes["subject"] = m.Key
	}
	if !m.Time.IsZero() {
		attributes["time"] = m.Time.UTC().Format(time.RFC3339Nano)
	}
	return attributes
}

// MessageOf returns the message with a CloudEvent's attributes, without their prefix,
// and its body. A field without its attribute is zero, as is a Time that does not
// parse.
func MessageOf(attributes map[string]string, body []byte) Message {
	at, _ := time.Parse(time.RFC3339Nano, attributes["time"])
	return Message{
		Source: attributes["source"], ID: attributes["id"], Type: attributes["type"], Key: attributes["subject"],
		Time: at, Body: body,
	}
}

// Publisher publishes messages to a broker, or to anything else. An implementation must
// be safe for use by many goroutines.
type Publisher interface {
	// Publish returns nil once the broker has confirmed the message, which is then on
	// its disk or wherever the application trusts it to be. It returns when ctx ends.
	// After an error it is called again later, so a message may be published more
	// than once, with the same ID. An error with [ErrTooLarge] says that each
	// other attempt fails, too.
	Publish(ctx context.Context, m Message) error
}

// ErrTooLarge is in the error of a publisher with a broker that does not take a message of that
// size. Until the broker's limit is raised, other attempts fail, too. The publishers of
// the modules return it immediately. A [Publisher] around one may return
// idem.NoRetry of it, so that an outbox parks the message without other
// attempts, or keep the Body elsewhere and publish where it is.
var ErrTooLarge = errors.New("the message is too large")

// ErrNoQueue is in the error of a publisher with a broker that has no queue, topic or stream for
// the message. After other errors an outbox takes the broker for unavailable.
var ErrNoQueue = errors.New("there is no such queue")
