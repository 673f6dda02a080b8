package idemrabbitmq

import (
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/paghooks/paghooks/idem/broker"
)

// prefix begins the headers with a CloudEvent's attributes.
const prefix = "cloudEvents:"

// maxShort is the length of AMQP's short strings.
const maxShort = 255

// maxHeader is the length of a header. All of them have to fit into one frame.
const maxHeader = 1 << 10

// publishing is the message as it is published.
func publishing(m broker.Message) (amqp.Publishing, error) {
	p := amqp.Publishing{DeliveryMode: amqp.Persistent, Headers: amqp.Table{}, Timestamp: m.Time, Body: m.Body}
	for name, value := range m.CloudEvent() {
		if len(value) > maxHeader {
			return p, fmt.Errorf("%w: its %s is longer than %d bytes", broker.ErrTooLarge, name, maxHeader)
		}
		p.Headers[prefix+name] = value
	}
	// For people, and for consumers that know no CloudEvents.
	if len(m.ID) <= maxShort {
		p.MessageId = m.ID
	}
	if len(m.Type) <= maxShort {
		p.Type = m.Type
	}
	return p, nil
}

// message returns the message that was published, by this package or by others.
func message(d amqp.Delivery) broker.Message {
	attributes := map[string]string{}
	for name, value := range d.Headers {
		if text, ok := value.(string); ok {
			if name, ok := strings.CutPrefix(name, prefix); ok {
				attributes[name] = text
			}
		}
	}
	m := broker.MessageOf(attributes, d.Body)
	if attributes["id"] == "" {
		m.ID, m.Type, m.Time = d.MessageId, d.Type, d.Timestamp
	}
	return m
}
