package idemrabbitmq

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/paghooks/paghooks/idem/broker"
)

// inFlight is the number of messages that may wait for their confirmation.
const inFlight = 1024

// channel publishes with confirmations until it is lost.
type channel struct {
	conn *amqp.Connection
	*amqp.Channel
	cause func() error // why it is lost; waits for that

	room      chan struct{}    // has an element for each message without an answer
	returns   chan amqp.Return // has room for as many, so that none is dropped
	numbers   atomic.Uint64
	answers   atomic.Uint64
	abandoned atomic.Bool
	blocked   *atomic.Pointer[string] // why the broker blocks publishers of the connection, or nil

	mu       sync.Mutex
	returned map[string]amqp.Return // by correlation id
}

func openChannel(conn *amqp.Connection) (*channel, error) {
	ch, err := conn.Channel()
	if err == nil {
		err = ch.Confirm(false)
	}
	if err != nil {
		return nil, fmt.Errorf("opening a channel: %w", err)
	}
	c := &channel{
		conn: conn, Channel: ch, cause: causeOf(ch), blocked: watch(conn),
		room: make(chan struct{}, inFlight), returns: make(chan amqp.Return, inFlight), returned: make(map[string]amqp.Return),
	}
	ch.NotifyReturn(c.returns)
	return c, nil
}

// causeOf returns a function that waits for the end of a channel, and returns why.
func causeOf(ch *amqp.Channel) func() error {
	closed := ch.NotifyClose(make(chan *amqp.Error, 1))
	return sync.OnceValue(func() error {
		if err := <-closed; err != nil {
			return err
		}
		return amqp.ErrClosed
	})
}

// watch returns why the broker blocks publishers of the connection, until that ends.
func watch(conn *amqp.Connection) *atomic.Pointer[string] {
	reason := &atomic.Pointer[string]{}
	blocked := conn.NotifyBlocked(make(chan amqp.Blocking, 1))
	go func() {
		for b := range blocked {
			if b.Active {
				reason.Store(&b.Reason)
			} else {
				reason.Store(nil)
			}
		}
	}()
	return reason
}

func (c *channel) isLost() bool { return c.IsClosed() || c.abandoned.Load() }

// abandon gives up a connection, one that does not answer long before its heartbeat does.
func (c *channel) abandon() {
	if !c.abandoned.Swap(true) {
		go hangUp(c.conn)
	}
}

// lossError says that the channel was closed before the answer came.
type lossError struct{ cause error }

func (e lossError) Error() string { return "the channel to the broker was lost: " + e.cause.Error() }
func (e lossError) Unwrap() error { return e.cause }

// final tells that another channel would be closed for the same reason.
func (e lossError) final() bool {
	err, ok := errors.AsType[*amqp.Error](e.cause)
	return ok && (err.Code == amqp.NotFound || err.Code == amqp.AccessRefused)
}

var tooLarge = regexp.MustCompile(`message size \d+ is larger than.* max size (\d+)`)

// maxBody is the size of the largest body that the broker takes, if another one was larger and
// closed the channel; else 0.
func (e lossError) maxBody() int64 {
	if e.cause == nil {
		return 0
	}
	match := tooLarge.FindStringSubmatch(e.Error())
	if match == nil {
		return 0
	}
	limit, _ := strconv.ParseInt(match[1], 10, 64)
	return limit
}

// errNoAnswer says that the broker has not answered any caller for a while.
var errNoAnswer = errors.New("the broker has confirmed nothing in that time")

// silence is the least length of that while.
const silence = 2 * time.Second

// publish publishes a message and waits for the broker's answer, at most until ctx
// ends. The write is not bound by ctx, nor is the wait for the answer: either may last
// until the connection ends, in a goroutine that keeps its room.
func (c *channel) publish(ctx context.Context, exchange, key string, m amqp.Publishing) error {
	start, before := time.Now(), c.answers.Load()
	select {
	case c.room <- struct{}{}:
	case <-ctx.Done():
		return c.late(ctx, start, before)
	}
	answer := make(chan error, 1)
	go func() {
		answer <- c.confirm(exchange, key, m)
		<-c.room
	}()
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		return c.late(ctx, start, before)
	}
}

// late says why there is no answer before ctx has ended.
func (c *channel) late(ctx context.Context, start time.Time, before uint64) error {
	if reason := c.blocked.Load(); reason != nil {
		return fmt.Errorf("the broker blocks publishers because it is %s: %w", *reason, ctx.Err())
	}
	if c.answers.Load() == before && time.Since(start) >= silence {
		return fmt.Errorf("%w: %w", errNoAnswer, ctx.Err())
	}
	return fmt.Errorf("the broker has not confirmed it in time: %w", ctx.Err())
}

// confirm publishes a message and waits for the broker's answer.
func (c *channel) confirm(exchange, key string, m amqp.Publishing) error {
	m.CorrelationId = strconv.FormatUint(c.numbers.Add(1), 36)
	confirmation, err := c.PublishWithDeferredConfirm(exchange, key, true, false, m)
	if err != nil {
		if !c.IsClosed() { // it is about to be: the write has failed
			c.abandon()
		}
		return lossError{err}
	}
	acked := confirmation.Wait()
	if r, ok := c.wasReturned(m.CorrelationId); ok {
		c.answers.Add(1)
		return fmt.Errorf("%w for it (%s): bind one to exchange %q with the routing key %q", broker.ErrNoQueue, r.ReplyText, exchange, key)
	}
	switch {
	case acked:
		c.answers.Add(1)
		return nil
	case c.IsClosed():
		return lossError{c.cause()}
	default:
		c.answers.Add(1)
		return errors.New("the broker refuses it (basic.nack): a queue is full, or has no leader")
	}
}

// wasReturned reports whether the broker has returned a message that it has confirmed. A
// return comes before the confirmation, so it is among the returns by now.
func (c *channel) wasReturned(id string) (amqp.Return, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		select {
		case r, ok := <-c.returns:
			if ok {
				c.returned[r.CorrelationId] = r
				continue
			}
		default:
		}
		r, ok := c.returned[id]
		delete(c.returned, id)
		return r, ok
	}
}
