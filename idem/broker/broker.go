package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
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

// Handle processes one message. After an error it is called again with the same
// message, later. relay.To returns one.
type Handle = func(ctx context.Context, m Message) error

// Delivery is a message that a broker has delivered to a consumer. Done, Extend and
// Return are nil if the broker has no such operation. Return is nil, too, if the broker
// would give the message to another consumer while this one has others of its Key: then
// receive's connection gives all of them back when it is closed.
type Delivery struct {
	Message Message

	// Deliveries with the same Lane are handled in the order in which they were
	// received, one after the other. Default: the Message's Key. If that is empty,
	// too, the delivery is handled in any order.
	Lane string

	// Handle, if set, handles the message instead of the function that Consume got,
	// and usually calls it. It may return nil without that call if the broker has
	// given the message to another consumer.
	Handle Handle

	Done   func(ctx context.Context) error // acknowledges the message
	Extend func(ctx context.Context) error // asks the broker for more time
	Return func(ctx context.Context) error // returns the message to the broker, to be delivered again soon
}

// Consumer passes the messages of a broker to a function. The exported fields are
// settings, also for ConsumeWith of each module; the zero value has the defaults.
type Consumer struct {
	// Handlers is the number of messages that are handled at the same time. Up to four times
	// as many are received; those that are not being handled wait here. Default: 16.
	Handlers int

	// ExtendEvery is the pause between two calls of Extend, for each message that was
	// received and is not done. Default: 10 seconds.
	ExtendEvery time.Duration

	// StopTimeout is the time in which messages may still be handled once the context of
	// Consume has ended. Default: 10 seconds.
	StopTimeout time.Duration

	// Logger gets a line for each failure, without bodies. Default: slog.Default().
	Logger *slog.Logger
}

// received is the number of deliveries that are received for each of the Handlers.
const received = 4

// Consume calls receive for one delivery after the other, and handle with each, until
// ctx ends. Then it receives no more, gives handlers StopTimeout to return, and returns
// the other messages to the broker. It returns an error only if handlers did not return
// in time.
//
// receive waits for a delivery. After an error, when the broker is unavailable for
// example, it is called again after a pause, and must connect again by itself.
//
// If its handler fails or panics, a message is handled again, after a pause that grows
// to 5 seconds, and before the next one of its Lane.
func (c Consumer) Consume(ctx context.Context, receive func(context.Context) (Delivery, error), handle Handle) error {
	c = c.WithDefaults()
	handling, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	r := &run{
		Consumer: c, handle: handle, ctx: ctx, handling: handling,
		room: make(chan struct{}, received*c.Handlers), handlers: make(chan struct{}, c.Handlers), last: make(map[string]chan struct{}),
	}
	r.receiveAll(receive)
	return r.stop(cancel)
}

// WithDefaults returns the settings with their defaults, for a module that needs one before [Consumer.Consume].
func (c Consumer) WithDefaults() Consumer {
	if c.Handlers <= 0 {
		c.Handlers = 16
	}
	if c.ExtendEvery <= 0 {
		c.ExtendEvery = 10 * time.Second
	}
	if c.StopTimeout <= 0 {
		c.StopTimeout = 10 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// run is one call of Consume.
type run struct {
	Consumer
	handle   Handle
	ctx      context.Context // ends when no more is to be begun
	handling context.Context // ends when handlers must end
	room     chan struct{}   // has an element for each delivery that was received and is neither done nor returned
	handlers chan struct{}   // has an element for each that is being handled
	settled  sync.WaitGroup

	mu   sync.Mutex
	last map[string]chan struct{} // closed once the last delivery of a lane is done or returned
}

// receiveAll receives until ctx ends.
func (r *run) receiveAll(receive func(context.Context) (Delivery, error)) {
	for failed := 0; r.ctx.Err() == nil; {
		select {
		case r.room <- struct{}{}:
		case <-r.ctx.Done():
			return
		}
		var d Delivery
		err := Protect(func() (err error) { d, err = receive(r.ctx); return err })
		if err != nil {
			<-r.room
			failed++
			if r.ctx.Err() == nil {
				r.log("messages cannot be received, which is tried again", Message{}, err)
				pause(r.ctx, failed)
			}
			continue
		}
		failed = 0
		r.begin(d)
	}
}

// begin has a delivery settled, which is done or returned, after the one before it in
// its lane.
func (r *run) begin(d Delivery) {
	if d.Lane == "" {
		d.Lane = d.Message.Key
	}
	before, settled := r.follow(d.Lane)
	r.settled.Go(func() {
		defer func() {
			r.leave(d.Lane, settled)
			<-r.room
		}()
		stop := r.extend(d)
		<-before // also when it is returned: no other consumer may have it earlier
		handled := r.settle(d)
		stop()
		if handled {
			r.tell(d, "a message is handled, and the broker could not be told: it will come again", d.Done)
		} else {
			r.tell(d, "a message could not be given back: it will come again later", d.Return)
		}
	})
}

// follow adds a delivery to a lane. before is closed once the delivery before it is
// settled, or immediately if there is none; settled is for its own end.
func (r *run) follow(lane string) (before <-chan struct{}, settled chan struct{}) {
	settled = make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.last[lane]
	if last == nil || lane == "" {
		last = make(chan struct{})
		close(last)
	}
	r.last[lane] = settled
	return last, settled
}

func (r *run) leave(lane string, settled chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(settled)
	if r.last[lane] == settled {
		delete(r.last, lane)
	}
}

// settle handles a delivery until that succeeds, or no more is to be begun.
func (r *run) settle(d Delivery) (handled bool) {
	handle := r.handle
	if d.Handle != nil {
		handle = d.Handle
	}
	for failed := 0; r.ctx.Err() == nil; {
		select {
		case r.handlers <- struct{}{}:
		case <-r.ctx.Done():
			continue
		}
		err := <-pgtx.Start(func() error { return handle(r.handling, d.Message) })
		<-r.handlers
		if err == nil {
			return true
		}
		failed++
		r.log("a message could not be handled, which is tried again", d.Message, err)
		pause(r.ctx, failed)
	}
	return false
}

// settleTime is the time in which a broker must confirm that a message is done.
const settleTime = 5 * time.Second

// tell calls a function of the delivery. If it fails, the broker delivers the message
// again.
func (r *run) tell(d Delivery, failure string, f func(context.Context) error) {
	if f == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), settleTime)
	defer cancel()
	if err := Protect(func() error { return f(ctx) }); err != nil {
		r.log(failure, d.Message, err)
	}
}

// extend asks for more time, until stop is called, which waits, or handlers must have ended.
func (r *run) extend(d Delivery) (stop func()) {
	if d.Extend == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(r.handling)
	var asking sync.WaitGroup
	asking.Go(func() {
		ticker := time.NewTicker(r.ExtendEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				r.tell(d, "the broker could not be asked for more time: the message may come again", d.Extend)
			case <-ctx.Done():
				return
			}
		}
	})
	return func() { cancel(); asking.Wait() }
}

// stop waits for the messages that are being handled, and cancels them after StopTimeout.
func (r *run) stop(cancel context.CancelFunc) error {
	ended := make(chan struct{})
	go func() { r.settled.Wait(); close(ended) }()
	late := time.AfterFunc(r.StopTimeout, cancel)
	defer late.Stop()
	select {
	case <-ended:
		return nil
	case <-time.After(r.StopTimeout + settleTime):
		return fmt.Errorf("broker: %d handlers did not return when they were stopped: they must end with their context", len(r.handlers))
	}
}

func (r *run) log(message string, m Message, err error) {
	attrs := []slog.Attr{slog.String("error", err.Error())}
	if m.ID != "" {
		attrs = append(attrs, slog.String("source", m.Source), slog.String("id", m.ID), slog.String("type", m.Type))
	}
	_ = Protect(func() error { r.Logger.LogAttrs(r.ctx, slog.LevelError, "broker: "+message, attrs...); return nil })
}

// pause waits after so many failures in a row, unless ctx ends.
func pause(ctx context.Context, failed int) {
	timer := time.NewTimer(min(100*time.Millisecond<<min(failed-1, 6), 5*time.Second))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Protect calls f, and returns its error. A panic is an error with its stack, also one
// of a method of the error that f returns. A module for a broker calls in it any function that
// the application may have written, a logger or a hook of a client for example: in a
// goroutine of the module's, a panic would end the program.
func Protect(f func() error) error { return pgtx.Protect(f) }
