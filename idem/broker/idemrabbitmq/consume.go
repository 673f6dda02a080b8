package idemrabbitmq

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/paghooks/paghooks/idem/broker"
)

// Consume passes the messages of a queue to handle until ctx ends, as
// [broker.Consumer.Consume] does. A message is acknowledged once handle has returned
// nil. Any number of calls, in any number of processes, may share a queue. The broker
// sends each up to four messages for each of the Handlers. When the connection is lost,
// Consume dials again.
//
// If the queue would lose its messages, see [NewPublisher], Consume logs a warning. While it
// does not exist, Consume logs that every few seconds. Once it does, Consume goes on.
func Consume(ctx context.Context, dial Dial, queue string, handle broker.Handle) error {
	return ConsumeWith(ctx, broker.Consumer{}, dial, queue, handle)
}

// ConsumeWith is [Consume] with settings. ExtendEvery does not apply: RabbitMQ gives
// handlers its consumer_timeout and no more.
func ConsumeWith(ctx context.Context, settings broker.Consumer, dial Dial, queue string, handle broker.Handle) error {
	settings = settings.WithDefaults()
	s := &subscription{dial: dial, queue: queue, prefetch: min(4*settings.Handlers, math.MaxUint16), logger: settings.Logger}
	defer s.close()
	return settings.Consume(ctx, s.receive, handle)
}

// subscription receives the messages of a queue, one connection after the other.
type subscription struct {
	dial     Dial
	queue    string
	prefetch int
	logger   *slog.Logger

	conn       *amqp.Connection // nil if there is none
	channel    *amqp.Channel
	cause      func() error // why the channel is closed; waits for that
	deliveries <-chan amqp.Delivery
}

// receive waits for the next delivery. ctx is the same each time.
func (s *subscription) receive(ctx context.Context) (broker.Delivery, error) {
	if s.conn == nil {
		if err := s.open(ctx); err != nil {
			return broker.Delivery{}, err
		}
	}
	select {
	case d, ok := <-s.deliveries:
		if ok {
			return delivery(d), nil
		}
	case <-ctx.Done():
		return broker.Delivery{}, ctx.Err()
	}
	err := s.ended()
	s.close()
	return broker.Delivery{}, err
}

// ended says why there are no more deliveries.
func (s *subscription) ended() error {
	if s.channel.IsClosed() {
		return fmt.Errorf("idemrabbitmq: the channel to queue %q was lost: %w", s.queue, s.cause())
	}
	return fmt.Errorf("idemrabbitmq: the broker has ended the subscription to queue %q: it was deleted, or is moving", s.queue)
}

// open subscribes, and does not wait for a broker that hangs.
func (s *subscription) open(ctx context.Context) error {
	type result struct {
		subscription
		err error
	}
	opened := make(chan result, 1)
	go func(s subscription) {
		err := s.subscribe(ctx)
		opened <- result{s, err}
	}(*s)
	select {
	case r := <-opened:
		if r.err == nil {
			*s = r.subscription
		}
		return r.err
	case <-ctx.Done():
		go func() { r := <-opened; r.close() }()
		return ctx.Err()
	}
}

// subscribe connects, and has the broker send messages until the connection is closed.
func (s *subscription) subscribe(ctx context.Context) (err error) {
	defer func() {
		if err != nil {
			s.close()
			err = fmt.Errorf("idemrabbitmq: consuming queue %q: %w", s.queue, explainAbsent(err))
		}
	}()
	if s.conn, err = connect(s.dial); err != nil {
		return err
	}
	if _, err := checkQueue(s.conn, s.queue); err != nil {
		_ = broker.Protect(func() error { s.logger.WarnContext(ctx, "idemrabbitmq: "+err.Error()); return nil })
	}
	if s.channel, err = s.conn.Channel(); err != nil {
		return err
	}
	s.cause = causeOf(s.channel)
	if err = s.channel.Qos(s.prefetch, 0, false); err != nil {
		return err
	}
	s.deliveries, err = s.channel.Consume(s.queue, "", false, false, false, false, nil)
	return err
}

// close has the broker deliver all unacknowledged messages again, at once. Nothing
// else may: a consumer that was canceled, or a message that was rejected, would let
// another consumer have later messages while handlers run here.
func (s *subscription) close() {
	if s.conn != nil {
		hangUp(s.conn)
		s.conn = nil
	}
}

func delivery(d amqp.Delivery) broker.Delivery {
	return broker.Delivery{
		Message: message(d),
		Done:    func(ctx context.Context) error { return within(ctx, func() error { return d.Ack(false) }) },
	}
}

// within calls f, which writes to a connection that may hang, and waits until ctx ends.
func within(ctx context.Context, f func() error) error {
	ended := make(chan error, 1)
	go func() { ended <- f() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the connection to the broker hangs: %w", ctx.Err())
	}
}

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
