package idemrabbitmq

import (
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// keeps returns an error if a queue does not keep its messages: because it is not
// durable, is deleted with its last consumer, or belongs to one connection. It returns
// nil if that cannot be told, because the broker has made the name (amq.gen-…) say, and
// for a queue that does not exist.
//
// Only declaring a queue tells what it is like: the broker compares, and says what
// differs. The declaration has an argument that no queue can have, so that it never
// makes one, and the broker objects to that argument last.
func keeps(conn *amqp.Connection, queue string) error {
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("opening a channel: %w", err)
	}
	defer ch.Close()
	_, err = ch.QueueDeclare(queue, true, false, false, false, amqp.Table{"x-expires": "never"})
	objection, ok := errors.AsType[*amqp.Error](err)
	if !ok {
		return err
	}
	for _, o := range []struct {
		code             int
		says, difference string
	}{
		{amqp.PreconditionFailed, "inequivalent arg 'durable'", "is not durable"},
		{amqp.PreconditionFailed, "inequivalent arg 'auto_delete'", "is deleted with its last consumer (auto-delete)"},
		{amqp.ResourceLocked, "exclusive", "belongs to one connection (exclusive)"},
	} {
		if objection.Code == o.code && strings.Contains(objection.Reason, o.says) {
			return fmt.Errorf("queue %q %s and would lose messages: declare another one that is durable", queue, o.difference)
		}
	}
	return nil
}
