package idemnats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/paghooks/paghooks/idem/broker"
)

// Consume passes the messages of a durable consumer to handle until ctx ends, as
// [broker.Consumer.Consume] does. A message is acknowledged once handle has returned
// nil. Any number of calls, in any number of processes, may share a consumer.
//
// While the consumer or its stream does not exist, because it was deleted since consumer
// was looked up, Consume logs that every few seconds. Once one with the same name exists,
// it goes on.
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
	s := &subscription{consumer: consumer, stop: stop, ended: make(chan struct{})}
	context.AfterFunc(ctx, s.end)
	err := settings.Consume(ctx, s.receive, handle)
	<-s.ended
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

// ahead is the number of messages that the server sends before they are received. They are not
// extended until then: if handlers are that slow, they come again, as duplicates.
const ahead = 16

// pullTime is the time for which a request for messages is good. One that is lost is made
// again after that.
const pullTime = 5 * time.Second

// subscription receives the messages of one call of Consume.
type subscription struct {
	consumer jetstream.Consumer
	stop     func()        // ends Consume
	closed   error         // the connection is closed for good
	ended    chan struct{} // closed once the server sends no more

	mu       sync.Mutex
	messages jetstream.MessagesContext // nil before the first, and after it has failed
}

// receive waits for the next message.
func (s *subscription) receive(ctx context.Context) (broker.Delivery, error) {
	m, err := s.next(ctx)
	if errors.Is(err, nats.ErrConnectionClosed) {
		s.closed = fmt.Errorf("idemnats: consuming: %w", closedForGood(err))
		s.stop()
	}
	if err != nil {
		return broker.Delivery{}, s.explain(ctx, err)
	}
	return broker.Delivery{
		Message: message(m.Headers(), m.Data()),
		Done:    m.DoubleAck,
		Extend:  func(context.Context) error { return m.InProgress() },
		Return:  func(ctx context.Context) error { return s.nak(ctx, m) },
	}, nil
}

func (s *subscription) next(ctx context.Context) (jetstream.Msg, error) {
	messages, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	m, err := messages.Next(jetstream.NextContext(ctx))
	if err != nil && ctx.Err() == nil && !errors.Is(err, jetstream.ErrNoHeartbeat) {
		messages.Stop()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.messages = nil
	}
	return m, err
}

// lookTime is the time in which the server must say if there is a consumer.
const lookTime = time.Second

// explain says if there is no consumer: for the client that is a server that is silent.
func (s *subscription) explain(ctx context.Context, err error) error {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	_, infoErr := s.consumer.Info(ctx)
	if errors.Is(infoErr, jetstream.ErrConsumerNotFound) || errors.Is(infoErr, jetstream.ErrStreamNotFound) {
		of := s.consumer.CachedInfo()
		return fmt.Errorf("idemnats: there is no consumer %s of stream %s: create it: %w", of.Name, of.Stream, err)
	}
	return fmt.Errorf("idemnats: receiving messages: %w", err)
}

// open subscribes, unless ctx has ended.
func (s *subscription) open(ctx context.Context) (messages jetstream.MessagesContext, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.messages == nil && ctx.Err() == nil {
		s.messages, err = s.consumer.Messages(jetstream.PullMaxMessages(ahead), jetstream.PullExpiry(pullTime))
	}
	if s.messages == nil {
		return nil, cmp.Or(err, ctx.Err())
	}
	return s.messages, nil
}

// nak returns a message to the server, once that sends no more: otherwise it would
// come here again.
func (s *subscription) nak(ctx context.Context, m jetstream.Msg) error {
	select {
	case <-s.ended:
	case <-ctx.Done():
	}
	return m.Nak()
}

// endTime is the time in which the server must learn that it is to send no more.
const endTime = 4 * time.Second

// end has the server send no more, and returns the messages that it has sent ahead.
func (s *subscription) end() {
	s.mu.Lock()
	messages := s.messages
	s.mu.Unlock()
	var unread []jetstream.Msg
	if messages != nil {
		ctx, cancel := context.WithTimeout(context.Background(), endTime)
		defer cancel()
		messages.Drain()
		for m, err := messages.Next(jetstream.NextContext(ctx)); err == nil; m, err = messages.Next(jetstream.NextContext(ctx)) {
			unread = append(unread, m)
		}
	}
	close(s.ended)
	for _, m := range unread {
		_ = m.Nak() // it comes again in any case
	}
}
