package idemrabbitmq

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/paghooks/paghooks/idem/broker"
)

// Dial opens a new connection. It is called again after each loss, and the caller closes
// the connection. [amqp.Dial] in a function suffices.
//
// The connection must not recover by itself: leave [amqp.Config]'s Recovery nil, else
// it is refused. A recovered channel counts its deliveries from 1 again, so that the
// acknowledgement of an earlier delivery settles another message, which is then lost.
type Dial func() (*amqp.Connection, error)

// Publisher publishes messages to an exchange: persistent and mandatory ones, which the
// broker confirms. The messages of many goroutines share one channel, so the broker
// writes them to its disk together.
//
// The exported fields are settings: change them before the first message.
type Publisher struct {
	// RoutingKey returns the routing key of a message, which is at most 255 bytes
	// long. For an exchange of type x-consistent-hash let it return the message's
	// Key. Default: the one that [NewPublisher] got.
	RoutingKey func(broker.Message) string

	dial          Dial
	exchange, key string

	mu     sync.Mutex
	latest *opening
	closed bool

	maxBody atomic.Int64 // the broker's max_message_size, once a message of this connection was larger; else 0
}

var _ broker.Publisher = (*Publisher)(nil)

// NewPublisher returns a publisher to an exchange with a routing key. For the exchange
// "" that is the name of a queue. It does not connect until the first message is
// published.
//
// The queue must be durable, and neither auto-delete nor exclusive. A publisher to the
// exchange "" checks that, if its user may configure the queue, and refuses to publish to
// another one; see also [Publisher.Check]. Queues behind other exchanges cannot be checked.
func NewPublisher(dial Dial, exchange, routingKey string) *Publisher {
	return &Publisher{dial: dial, exchange: exchange, key: routingKey}
}

// Check asks the broker whether a message that it has confirmed can be lost. It returns
// an error that names each thing that would lose messages and the change that prevents it, or that
// the broker did not tell. It changes nothing, and connects as the first Publish does.
// Call it once at the start, and log the error, or stop.
//
// It names a queue that does not exist, and one that is not durable, is auto-delete or
// exclusive. The broker tells that if its user may configure the queue. It does not tell
// whether a policy or an argument lets messages expire, or drops them from a queue that
// is full or after so many deliveries: see the package's documentation. Nor does it tell
// which queues an exchange other than "", or a RoutingKey, routes to: then Check only
// connects.
func (p *Publisher) Check(ctx context.Context) error {
	c, err := p.channel(ctx)
	if err == nil && p.hasQueue() {
		err = within(ctx, func() error {
			told, err := checkQueue(c.conn, p.key)
			if err == nil {
				err = findQueue(c.conn, p.key)
			}
			if err == nil && !told {
				err = fmt.Errorf("the broker does not tell this user whether queue %q keeps its messages: let the user configure it", p.key)
			}
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("idemrabbitmq: %w", err)
	}
	return nil
}

// hasQueue reports whether all messages go to one queue with a known name.
func (p *Publisher) hasQueue() bool { return p.exchange == "" && p.RoutingKey == nil }

// opening is a channel that is being opened, or was.
type opening struct {
	done    chan struct{}
	channel *channel
	err     error
}

// useless tells that another channel has to be opened.
func (o *opening) useless() bool {
	select {
	case <-o.done:
		return o.err != nil || o.channel.isLost()
	default:
		return false
	}
}

// attempts is the number of channels that a message is published on while they are lost: the first one
// that is too large for the broker takes its channel from others, and a broker that is
// restarted may be back.
const attempts = 5

// Publish implements [broker.Publisher]: it returns nil once every queue that the message
// was routed to has it on disk, a quorum queue on those of most of its replicas.
//
// It returns an error if the message goes to no queue, if the broker refuses it,
// because a queue is full for example, or if it is larger than the broker's
// max_message_size. The broker tells that limit once a message is larger; from then on,
// until the connection is lost, no other such message is sent. While the broker hangs, or blocks publishers for lack of memory or
// disk, Publish waits until ctx ends. If the connection is lost meanwhile, it connects
// and publishes again.
func (p *Publisher) Publish(ctx context.Context, m broker.Message) error {
	key := p.key
	if p.RoutingKey != nil {
		key = p.RoutingKey(m)
	}
	out, err := publishing(m)
	if err == nil && len(key) > maxShort {
		err = fmt.Errorf("%w: its routing key is longer than %d bytes", broker.ErrTooLarge, maxShort)
	}
	for n := 1; err == nil; n++ {
		var c *channel
		if c, err = p.channel(ctx); err == nil {
			err = p.checkSize(m)
		}
		if err != nil {
			break
		}
		err = c.publish(ctx, p.exchange, key, out)
		loss, lost := errors.AsType[lossError](err)
		if limit := loss.maxBody(); limit > 0 {
			p.maxBody.Store(limit)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, errNoAnswer):
			c.abandon()
		case lost && !loss.final() && n < attempts:
			err = p.checkSize(m) // nil if another message is the cause, or the broker
		}
	}
	return fmt.Errorf("idemrabbitmq: %s %s is not published: %w", m.Type, m.ID, explainAbsent(err))
}

// checkSize returns an error for a message that the broker is known not to take. It would close the channel, which is
// that of others, too.
func (p *Publisher) checkSize(m broker.Message) error {
	if limit := p.maxBody.Load(); limit > 0 && int64(len(m.Body)) > limit {
		return fmt.Errorf("%w: its %d bytes are more than the broker's max_message_size, which is %d: raise that, or lower the relay's MaxBody", broker.ErrTooLarge, len(m.Body), limit)
	}
	return nil
}

// channel returns the open channel, or waits for one.
func (p *Publisher) channel(ctx context.Context) (*channel, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errors.New("the publisher is closed")
	}
	o := p.latest
	if o == nil || o.useless() {
		if o != nil && o.err == nil {
			if !o.channel.IsClosed() || o.channel.conn.IsClosed() { // the next broker may take more
				p.maxBody.Store(0)
			}
			o.channel.abandon() // its connection, too
		}
		o = &opening{done: make(chan struct{})}
		p.latest = o
		go p.open(o)
	}
	p.mu.Unlock()
	select {
	case <-o.done:
		return o.channel, o.err
	case <-ctx.Done():
		return nil, fmt.Errorf("the broker lets nobody connect: %w", ctx.Err())
	}
}

// redial is the least time that a failure to connect lasts, so that callers that try
// again immediately do not keep a broker from starting.
const redial = 200 * time.Millisecond

// open opens a channel on a connection of its own.
func (p *Publisher) open(o *opening) {
	defer close(o.done)
	start := time.Now()
	var conn *amqp.Connection
	if conn, o.err = connect(p.dial); o.err == nil && p.hasQueue() {
		_, o.err = checkQueue(conn, p.key)
	}
	if o.err == nil {
		o.channel, o.err = openChannel(conn)
	}
	if o.err != nil {
		if conn != nil {
			go hangUp(conn)
		}
		time.Sleep(redial - time.Since(start))
	}
}

// Close closes the connection. Messages that are not confirmed yet are not published
// as far as their callers know.
func (p *Publisher) Close() error {
	p.mu.Lock()
	p.closed = true
	o := p.latest
	p.mu.Unlock()
	if o == nil {
		return nil
	}
	<-o.done
	if o.err == nil {
		hangUp(o.channel.conn)
	}
	return nil
}

// connect dials, and refuses a connection that recovers by itself.
func connect(dial Dial) (*amqp.Connection, error) {
	var conn *amqp.Connection
	err := broker.Protect(func() (err error) { conn, err = dial(); return err }) // the application's, in a goroutine of ours
	if _, ok := errors.AsType[*url.Error](err); ok {
		return nil, errors.New("the broker's URL cannot be read: percent-encode what is special in its password") // the error has the password
	}
	if err == nil && conn == nil {
		err = errors.New("Dial has returned no connection, and no error")
	}
	if err != nil {
		return nil, fmt.Errorf("connecting to the broker: %w", err)
	}
	if conn.IsRecoveryEnabled() {
		go hangUp(conn)
		return nil, errors.New("the connection recovers by itself, and would then acknowledge messages that nobody has handled: leave Recovery out of its amqp.Config")
	}
	return conn, nil
}

// hangUpTime is the time in which the broker must confirm that a connection is closed.
const hangUpTime = 2 * time.Second

// hangUp closes a connection. Its deadline also ends writes that hang.
func hangUp(conn *amqp.Connection) { _ = conn.CloseDeadline(time.Now().Add(hangUpTime)) }

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
