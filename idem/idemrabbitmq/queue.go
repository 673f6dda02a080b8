package idemrabbitmq

import (
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"
)

// checkQueue returns an error if a queue does not keep its messages: because it is not
// durable, is deleted with its last consumer, or belongs to one connection. It returns
// nil for a queue that does not exist, and if the broker does not say, as for one whose
// name it has made (amq.gen-…).
//
// The only way to ask is to declare the queue: the broker compares, and says what
// differs. The declaration has an argument that no queue can have, so it never makes
// one. The broker objects to that argument last.
func checkQueue(conn *amqp.Connection, queue string) error {
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
