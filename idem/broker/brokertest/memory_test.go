//go:build long

package brokertest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/brokertest"
)

const (
	ackTimeout = 4 * time.Second // extended eight times as often, however busy the machine is
	oversize   = 64 << 10
)

// memory is a broker in this process. It delivers the messages of a Key one after the
// other, and again when they are not done in time.
type memory struct {
	mu       sync.Mutex
	messages []*message
	changed  chan struct{} // closed at the next change
	hangs    chan struct{} // closed while the broker answers; nil hangs
}

type message struct {
	broker.Message
	until time.Time // a consumer has it
}

var errGone = errors.New("the message is another consumer's")

// whenItAnswers does something to the broker once that does not hang.
func (b *memory) whenItAnswers(ctx context.Context, do func() error) error {
	for {
		b.mu.Lock()
		hangs := b.hangs
		if hangs == nil {
			defer b.mu.Unlock()
			return do()
		}
		b.mu.Unlock()
		select {
		case <-hangs:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// change wakes those that wait for a message.
func (b *memory) change() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// Publish implements [broker.Publisher].
func (b *memory) Publish(ctx context.Context, m broker.Message) error {
	if len(m.Body) > oversize {
		return fmt.Errorf("memory: %s %s is not published: %w", m.Type, m.ID, broker.ErrTooLarge)
	}
	return b.whenItAnswers(ctx, func() error {
		b.messages = append(b.messages, &message{Message: m})
		b.change()
		return nil
	})
}

func (b *memory) consume(ctx context.Context, handle broker.Handle) error {
	c := broker.Consumer{ExtendEvery: ackTimeout / 8, Logger: slog.New(slog.DiscardHandler)}
	return c.Consume(ctx, b.receive, handle)
}

func (b *memory) receive(ctx context.Context) (d broker.Delivery, err error) {
	for {
		var changed chan struct{}
		err := b.whenItAnswers(ctx, func() error { d, changed = b.next(), b.changed; return nil })
		if err != nil || d.Done != nil {
			return d, err
		}
		select {
		case <-changed:
		case <-time.After(ackTimeout / 4): // one may have expired
		case <-ctx.Done():
			return d, ctx.Err()
		}
	}
}

// next returns the first free message of a Key of which no message is taken.
func (b *memory) next() (d broker.Delivery) {
	now := time.Now()
	taken := map[string]bool{}
	for _, m := range b.messages {
		free := now.After(m.until) && (m.Key == "" || !taken[m.Key])
		taken[m.Key] = true
		if !free {
			continue
		}
		m.until = now.Add(ackTimeout)
		mine := m.until
		hold := func(until time.Time) func(context.Context) error {
			return func(ctx context.Context) error {
				return b.whenItAnswers(ctx, func() error {
					at := slices.Index(b.messages, m)
					switch {
					case at < 0 || m.until != mine:
						return errGone
					case until.IsZero():
						b.messages = slices.Delete(b.messages, at, at+1)
						b.change()
					default:
						m.until, mine = until, until
					}
					return nil
				})
			}
		}
		return broker.Delivery{
			Message: m.Message,
			Done:    hold(time.Time{}),
			Return:  hold(now),
			Extend:  func(ctx context.Context) error { return hold(time.Now().Add(ackTimeout))(ctx) },
		}
	}
	return d
}

func (b *memory) hang(testing.TB) (resume func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	hangs := make(chan struct{})
	b.hangs = hangs
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.hangs = nil
		close(hangs)
	}
}

func (b *memory) restart(testing.TB) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.messages {
		m.until = time.Time{}
	}
}

type nowhere struct{}

func (nowhere) Publish(_ context.Context, m broker.Message) error {
	return fmt.Errorf("memory: %s %s is not published: %w", m.Type, m.ID, broker.ErrNoQueue)
}

func TestABrokerThatKeepsItsPromisesPasses(t *testing.T) {
	t.Parallel()
	brokertest.Run(t, brokertest.Broker{Open: func(testing.TB) brokertest.Queue {
		b := &memory{changed: make(chan struct{})}
		return brokertest.Queue{
			Publisher: b, Consume: b.consume, AckTimeout: ackTimeout, Ordered: true, Oversize: oversize,
			Nowhere: nowhere{}, Restart: b.restart, Hang: b.hang,
		}
	}})
}
