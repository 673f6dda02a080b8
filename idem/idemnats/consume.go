package idemnats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/paghooks/paghooks/idem/broker"
)

// Consume gives the messages of a durable consumer to handle until ctx ends, and tells
// the server that they are done once handle has returned nil. Then it returns nil.
// Any number of calls, in any number of processes, may share a consumer.
//
// It returns an error immediately if the consumer would lose messages: if its
// AckPolicy is not explicit, or it has a MaxDeliver. Later it returns one if the
// connection is closed for good, or if handlers did not return in time.
func Consume(ctx context.Context, consumer jetstream.Consumer, handle broker.Handle) error {
	return ConsumeWith(ctx, broker.Consumer{}, consumer, handle)
}

// ConsumeWith is [Consume] with settings. The default of ExtendEvery is a third of the
// consumer's AckWait.
func ConsumeWith(ctx context.Context, settings broker.Consumer, consumer jetstream.Consumer, handle broker.Handle) error {
	config := consumer.CachedInfo().Config
	if err := checkConsumer(config); err != nil {
		return err
	}
	if settings.ExtendEvery <= 0 {
		settings.ExtendEvery = ackWait(config) / 3
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s := &subscription{consumer: consumer, stop: stop}
	err := settings.Consume(ctx, s.receive, handle)
	s.giveBack()
	return errors.Join(err, s.closed)
}

func checkConsumer(c jetstream.ConsumerConfig) error {
	refuse := func(why string) error { return fmt.Errorf("idemnats: consumer %s %s", c.Name, why) }
	switch {
	case c.AckPolicy != jetstream.AckExplicitPolicy:
		return refuse("would lose messages that are not done: make it with AckExplicitPolicy")
	case c.MaxDeliver > 0:
		return refuse(fmt.Sprintf("would lose messages after %d deliveries: make it with MaxDeliver -1, events that fail too often are parked in Postgres", c.MaxDeliver))
	}
	return nil
}

// ackWait is the time after which the server delivers a message again.
func ackWait(c jetstream.ConsumerConfig) time.Duration {
	switch {
	case len(c.BackOff) > 0: // instead of AckWait
		return slices.Min(c.BackOff)
	case c.AckWait > 0:
		return c.AckWait
	}
	return 30 * time.Second
}

// ahead is how many messages the server sends before they are received. They are not
// extended until then: if handlers are that slow, they come again, as duplicates.
const ahead = 16

// subscription receives the messages of one call of Consume.
type subscription struct {
	consumer jetstream.Consumer
	messages jetstream.MessagesContext // nil before the first, and after it has ended
	stop     func()                    // ends Consume
	closed   error                     // the connection is closed for good
}

// receive waits for the next message.
func (s *subscription) receive(ctx context.Context) (broker.Delivery, error) {
	m, err := s.next(ctx)
	if errors.Is(err, nats.ErrConnectionClosed) {
		s.closed = fmt.Errorf("idemnats: the connection is closed for good: connect with nats.MaxReconnects(-1): %w", err)
		s.stop()
	}
	if err != nil {
		return broker.Delivery{}, err
	}
	return broker.Delivery{
		Message: messageOf(m.Headers(), m.Data()),
		Done:    m.DoubleAck,
		Extend:  func(context.Context) error { return m.InProgress() },
		Return:  func(context.Context) error { return m.Nak() },
	}, nil
}

func (s *subscription) next(ctx context.Context) (m jetstream.Msg, err error) {
	if s.messages == nil {
		if s.messages, err = s.consumer.Messages(jetstream.PullMaxMessages(ahead), jetstream.PullExpiry(5*time.Second)); err != nil {
			return nil, err
		}
	}
	m, err = s.messages.Next(jetstream.NextContext(ctx))
	if err != nil && ctx.Err() == nil && !errors.Is(err, jetstream.ErrNoHeartbeat) {
		s.messages.Stop()
		s.messages = nil
	}
	return m, err
}

// giveBackTime is how long giving back may take.
const giveBackTime = 5 * time.Second

// giveBack gives back what the server has sent ahead.
func (s *subscription) giveBack() {
	if s.messages == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), giveBackTime)
	defer cancel()
	s.messages.Drain()
	for {
		m, err := s.messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return
		}
		_ = m.Nak() // it comes again in any case
	}
}
