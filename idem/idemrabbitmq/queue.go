package idemrabbitmq

import (
	"errors"
	"fmt"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/paghooks/paghooks/idem/broker"
)

// checkQueue returns an error if a queue does not keep its messages: because it is not
// durable, is deleted with its last consumer, or belongs to one connection. It returns
// nil for a queue that does not exist. The broker does not tell users that may not
// configure the queue, and no user about one with a name that it has made (amq.gen-…).
//
// The only way to ask is to declare the queue: the broker compares, and names the argument that
// differs. The declaration has an argument that no queue can have, so it never makes
// one. The broker objects to that argument last.
func checkQueue(conn *amqp.Connection, queue string) (told bool, err error) {
	ch, err := conn.Channel()
	if err != nil {
		return false, fmt.Errorf("opening a channel: %w", err)
	}
	defer ch.Close()
	_, err = ch.QueueDeclare(queue, true, false, false, false, amqp.Table{"x-expires": "never"})
	objection, ok := errors.AsType[*amqp.Error](err)
	if !ok {
		return false, err
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
			return true, fmt.Errorf("queue %q %s and would lose messages: declare another one that is durable", queue, o.difference)
		}
	}
	return objection.Code != amqp.AccessRefused, nil
}

// findQueue returns an error if there is no such queue.
func findQueue(conn *amqp.Connection, queue string) error {
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("opening a channel: %w", err)
	}
	defer ch.Close()
	if _, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil); err != nil {
		return fmt.Errorf("looking for queue %q: %w", queue, explainAbsent(err))
	}
	return nil
}

// explainAbsent adds a remedy to the error of a missing queue, or no
// exchange.
func explainAbsent(err error) error {
	if objection, ok := errors.AsType[*amqp.Error](err); ok && objection.Code == amqp.NotFound {
		return fmt.Errorf("%w: declare it: %w", broker.ErrNoQueue, err)
	}
	return err
}
