package idemrabbitmq_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/brokertest"
	"github.com/paghooks/paghooks/idem/broker/idemrabbitmq"
)

func newPublisher(t testing.TB, dial idemrabbitmq.Dial, exchange, key string) *idemrabbitmq.Publisher {
	t.Helper()
	p := idemrabbitmq.NewPublisher(dial, exchange, key)
	t.Cleanup(func() { p.Close() })
	return p
}

// next returns the next message of a queue.
func next(t testing.TB, url, queue string) amqp.Delivery {
	t.Helper()
	d, ok, err := channelOf(t, url).Get(queue, true)
	if err != nil || !ok {
		t.Fatalf("the queue has no message: %v", err)
	}
	return d
}

func count(t testing.TB, url, queue string) int {
	t.Helper()
	q, err := channelOf(t, url).QueueDeclarePassive(queue, true, false, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	return q.Messages
}

func TestAMessageIsPersistentAndCarriesItsAttributes(t *testing.T) {
	t.Parallel()
	url := sharedURL(t)
	queue := declare(t, url, nil)
	at := time.Date(2026, 11, 20, 12, 0, 0, 5000, time.UTC)
	long := strings.Repeat("é", 200) // longer than AMQP's short strings
	for _, m := range []broker.Message{
		{Source: "shop", ID: "a&1/2", Type: "order.paid", Key: "ordem 7 ✓", Time: at, Body: []byte{0, 1, 0xff}},
		{Source: "shop", ID: long, Type: long, Key: long},
	} {
		if err := newPublisher(t, dialer(url), "", queue).Publish(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		d := next(t, url, queue)
		got := map[string]string{"body": string(d.Body)}
		for name, value := range d.Headers {
			got[name] = value.(string)
		}
		want := map[string]string{"body": string(m.Body)}
		for name, value := range m.CloudEvent() {
			want["cloudEvents:"+name] = value
		}
		if diff := cmp.Diff(want, got); diff != "" || d.DeliveryMode != amqp.Persistent {
			t.Errorf("published with delivery mode %d and (-want +got)\n%s", d.DeliveryMode, diff)
		}
	}
	if err := newPublisher(t, dialer(url), "", queue).Publish(t.Context(), broker.Message{Type: "x", Key: strings.Repeat("k", 2000)}); err == nil {
		t.Error("a key that no header may have is published")
	}
}

func TestManyCallersShareAChannel(t *testing.T) {
	t.Parallel()
	url := sharedURL(t)
	queue := declare(t, url, amqp.Table{"x-queue-type": "quorum"})
	var dials atomic.Int64
	p := newPublisher(t, func() (*amqp.Connection, error) { dials.Add(1); return amqp.Dial(url) }, "", queue)
	const callers, each = 64, 20
	var publishing sync.WaitGroup
	for range callers {
		publishing.Go(func() {
			for range each {
				if err := p.Publish(t.Context(), broker.Message{Type: "paid", ID: "the same"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	publishing.Wait()
	if n := dials.Load(); n != 1 {
		t.Errorf("%d connections were opened, want 1", n)
	}
	if n := count(t, url, queue); n != callers*each {
		t.Errorf("the queue has %d messages, want %d", n, callers*each)
	}
}

// Messages that are returned and messages that are not share a channel here.
func TestOnlyWhatHasAQueueIsPublished(t *testing.T) {
	t.Parallel()
	url := sharedURL(t)
	queue := declare(t, url, nil)
	p := newPublisher(t, dialer(url), "amq.direct", "")
	p.RoutingKey = func(m broker.Message) string { return queue + m.Key }
	if err := channelOf(t, url).QueueBind(queue, queue+"here", "amq.direct", false, nil); err != nil {
		t.Fatal(err)
	}
	var publishing sync.WaitGroup
	for n := range 400 {
		publishing.Go(func() {
			key := []string{"here", "nowhere"}[n%2]
			err := p.Publish(t.Context(), broker.Message{Type: "paid", ID: "the same", Key: key})
			if (err == nil) != (key == "here") {
				t.Errorf("publishing %s ended with %v", key, err)
			}
		})
	}
	publishing.Wait()
	if n := count(t, url, queue); n != 200 {
		t.Errorf("the queue has %d messages, want 200", n)
	}
}

// The first one that is too large takes its channel from others, which publish on another one. After that none is sent.
func TestMessagesThatAreTooLargeFailAloneAndAtOnce(t *testing.T) {
	t.Parallel()
	n := running(t, shared) // its limit is known
	queue := declare(t, n.url(), nil)
	var dials atomic.Int64
	p := newPublisher(t, func() (*amqp.Connection, error) { dials.Add(1); return amqp.Dial(n.url()) }, "", queue)
	large := broker.Message{Type: "large", Body: make([]byte, maxMessageSize+1)}
	publish := func(larges, smalls int) {
		var publishing sync.WaitGroup
		for range larges {
			publishing.Go(func() {
				if err := p.Publish(t.Context(), large); !errors.Is(err, broker.ErrTooLarge) || !strings.Contains(err.Error(), "max_message_size, which is 1048576") {
					t.Errorf("publishing %d bytes ended with %v", len(large.Body), err)
				}
			})
		}
		for range smalls {
			publishing.Go(func() {
				if err := p.Publish(t.Context(), broker.Message{Type: "small"}); err != nil {
					t.Error("beside one that is too large: ", err)
				}
			})
		}
		publishing.Wait()
	}
	publish(4, 64) // at the same time: the broker's limit is not known yet
	publish(0, 1)
	before := dials.Load()
	publish(400, 400)
	if now := dials.Load(); now != before {
		t.Errorf("%d more connections were opened for messages that the broker is known not to take", now-before)
	}
	if err := p.Publish(t.Context(), broker.Message{Type: "largest", Body: make([]byte, maxMessageSize)}); err != nil {
		t.Error("the largest that the broker takes: ", err)
	}
}

// Another node of the broker, or the same one after a restart, may take more.
func TestTheLimitOfABrokerIsForgottenWithItsConnection(t *testing.T) {
	t.Parallel()
	n := ownNode(t)
	queue := declare(t, n.url(), nil)
	var connections []*amqp.Connection
	p := newPublisher(t, func() (*amqp.Connection, error) {
		c, err := amqp.Dial(n.url())
		connections = append(connections, c)
		return c, err
	}, "", queue)
	large := broker.Message{Type: "large", Body: make([]byte, maxMessageSize+1)}
	for _, m := range []broker.Message{large, {Type: "small"}, large} {
		if err := p.Publish(t.Context(), m); errors.Is(err, broker.ErrTooLarge) != (m.Type == "large") {
			t.Errorf("publishing one that is %s ended with %v", m.Type, err)
		}
	}
	limit := func(bytes int) {
		n.ctl(t, "eval", fmt.Sprintf("application:set_env(rabbit, max_message_size, %d).", bytes))
	}
	limit(2 * maxMessageSize)
	defer limit(maxMessageSize)
	if err := connections[len(connections)-1].Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.Publish(t.Context(), large); err != nil {
		t.Error("after the broker's limit was raised: ", err)
	}
}

func TestWhatTheBrokerRefusesIsNotPublished(t *testing.T) {
	t.Parallel()
	url := sharedURL(t)
	full := declare(t, url, amqp.Table{"x-max-length": 1, "x-overflow": "reject-publish"})
	ch := channelOf(t, url)
	for _, q := range []struct {
		name                           string
		durable, autoDelete, exclusive bool
	}{
		{"memory", false, false, false},
		{"gone", true, true, false},
		{"exclusive", true, false, true},
	} {
		if _, err := ch.QueueDeclare(full+q.name, q.durable, q.autoDelete, q.exclusive, false, nil); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _, _ = ch.QueueDelete(full+q.name, false, false, false) })
	}
	if err := newPublisher(t, dialer(url), "", full).Publish(t.Context(), broker.Message{Type: "first"}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ exchange, key, want string }{
		{"", full, "a queue is full"},
		{"", full + "memory", "is not durable"},
		{"", full + "gone", "auto-delete"},
		{"", full + "exclusive", "exclusive"},
		{"", "idemrabbitmq/absent", "NO_ROUTE"},
		{"idemrabbitmq/absent", "", "no exchange"},
		{"", strings.Repeat("k", 256), "longer than 255"},
	} {
		err := newPublisher(t, dialer(url), test.exchange, test.key).Publish(t.Context(), broker.Message{Type: "second"})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("publishing to %q, %q ended with %v, want %q", test.exchange, test.key, err, test.want)
		}
	}
}

func TestAConnectionThatRecoversByItselfIsRefused(t *testing.T) {
	t.Parallel()
	url := sharedURL(t)
	dial := func() (*amqp.Connection, error) {
		return amqp.DialConfig(url, amqp.Config{Recovery: &amqp.Recovery{}})
	}
	if err := newPublisher(t, dial, "", declare(t, url, nil)).Publish(t.Context(), broker.Message{Type: "x"}); err == nil || !strings.Contains(err.Error(), "leave Recovery out") {
		t.Errorf("publishing ended with %v", err)
	}
}

func TestWithoutABrokerPublishingFailsSoon(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	p := newPublisher(t, func() (*amqp.Connection, error) { return nil, refused }, "", "q")
	if err := p.Publish(t.Context(), broker.Message{Type: "x"}); !errors.Is(err, refused) {
		t.Errorf("publishing ended with %v", err)
	}
	p.Close()
	if err := p.Publish(t.Context(), broker.Message{Type: "x"}); err == nil || errors.Is(err, refused) {
		t.Errorf("publishing after Close ended with %v", err)
	}
}

func TestAMessageIsPublishedThoughItsConnectionIsCut(t *testing.T) {
	t.Parallel()
	url := sharedURL(t)
	queue := declare(t, url, amqp.Table{"x-queue-type": "quorum"})
	var mu sync.Mutex
	var sockets []net.Conn
	p := newPublisher(t, func() (*amqp.Connection, error) {
		return amqp.DialConfig(url, amqp.Config{Dial: func(network, addr string) (net.Conn, error) {
			c, err := net.Dial(network, addr)
			mu.Lock()
			defer mu.Unlock()
			sockets = append(sockets, c)
			return c, err
		}})
	}, "", queue)
	var published atomic.Int64
	var publishing sync.WaitGroup
	for range 16 {
		publishing.Go(func() {
			for range 25 {
				if err := p.Publish(t.Context(), broker.Message{Type: "paid"}); err != nil {
					t.Error(err)
				}
				if published.Add(1) == 150 {
					mu.Lock()
					sockets[0].Close()
					mu.Unlock()
				}
			}
		})
	}
	publishing.Wait()
	if n := count(t, url, queue); n < 400 {
		t.Errorf("the queue has %d messages, want the 400 that were confirmed", n)
	}
	if len(sockets) != 2 {
		t.Errorf("%d connections were opened, want 2", len(sockets))
	}
}

// The broker does not read here, so that writes hang, too; amqp091-go's heartbeat
// cannot end them.
func TestAfterABrokerHasHungThereIsANewConnection(t *testing.T) {
	t.Parallel()
	n := ownNode(t)
	queue := declare(t, n.url(), nil)
	p := newPublisher(t, dialer(n.url()), "", queue)
	if err := p.Publish(t.Context(), broker.Message{Type: "before"}); err != nil {
		t.Fatal(err)
	}
	resume := n.hang(t)
	var publishing sync.WaitGroup
	for range 40 {
		publishing.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			start := time.Now()
			err := p.Publish(ctx, broker.Message{Type: "during", Body: make([]byte, maxMessageSize-1000)})
			if took := time.Since(start); err == nil || took > 20*time.Second {
				t.Errorf("while the broker hangs publishing ended after %s with %v", took, err)
			}
		})
	}
	publishing.Wait()
	resume()
	if err := p.Publish(t.Context(), broker.Message{Type: "after"}); err != nil {
		t.Error("after the broker has hung: ", err)
	}
}

func TestABrokerThatBlocksPublishersSaysWhy(t *testing.T) {
	t.Parallel()
	n := ownNode(t)
	queue := declare(t, n.url(), nil)
	p := newPublisher(t, dialer(n.url()), "", queue)
	if err := p.Publish(t.Context(), broker.Message{Type: "before"}); err != nil {
		t.Fatal(err)
	}
	n.ctl(t, "set_vm_memory_high_watermark", "0.000001")
	unblock := sync.OnceFunc(func() { n.ctl(t, "set_vm_memory_high_watermark", "0.4") })
	defer unblock()
	publish := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // in which the alarm arrives
		defer cancel()
		return p.Publish(ctx, broker.Message{Type: "during"})
	}
	err := publish()
	for err == nil { // the alarm takes a moment
		err = publish()
	}
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "low on memory") {
		t.Errorf("publishing ended with %v", err)
	}
	unblock()
	if err := p.Publish(t.Context(), broker.Message{Type: "after"}); err != nil {
		t.Error("after the alarm: ", err)
	}
}

// A goroutine of the package calls Dial: no other function could recover.
func TestADialThatPanicsOrReturnsNothingIsAnError(t *testing.T) {
	t.Parallel()
	for name, dial := range map[string]idemrabbitmq.Dial{
		"panic":   func() (*amqp.Connection, error) { panic("no settings") },
		"nothing": func() (*amqp.Connection, error) { return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := newPublisher(t, dial, "", "q").Publish(t.Context(), broker.Message{Type: "x"}); err == nil {
				t.Error("the message is published")
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			tried := make(chan struct{}, 100)
			settings := broker.Consumer{Logger: slog.New(slog.DiscardHandler)}
			ended := make(chan error, 1)
			go func() {
				ended <- idemrabbitmq.ConsumeWith(ctx, settings, func() (*amqp.Connection, error) { tried <- struct{}{}; return dial() }, "q", nil)
			}()
			brokertest.Next(t, tried)
			brokertest.Next(t, tried) // it goes on
			cancel()
			if err := brokertest.Next(t, ended); err != nil {
				t.Errorf("Consume ended with %v", err)
			}
		})
	}
}

func TestAPasswordThatIsNotEscapedIsNotShown(t *testing.T) {
	t.Parallel()
	dial := func() (*amqp.Connection, error) { return amqp.Dial("amqp://shop:hunter2/secret@127.0.0.1:1/") }
	err := newPublisher(t, dial, "", "q").Publish(t.Context(), broker.Message{Type: "x"})
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "percent-encode") {
		t.Errorf("publishing ended with %v", err)
	}
}

// The exchange was deleted: the broker closes a channel for each message, and leaves
// the connection.
func TestAChannelThatWasLostLeavesNothingBehind(t *testing.T) {
	url := sharedURL(t)
	p := newPublisher(t, dialer(url), "deleted", "q")
	lose := func() {
		if err := p.Publish(t.Context(), broker.Message{Type: "x"}); err == nil {
			t.Fatal("the message is published")
		}
	}
	lose()
	before := runtime.NumGoroutine()
	for range 50 {
		lose()
	}
	if now := runtime.NumGoroutine(); now > before+25 {
		t.Errorf("50 lost channels left %d goroutines", now-before)
	}
}
