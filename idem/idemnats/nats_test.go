package idemnats_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/brokertest"
	"github.com/paghooks/paghooks/idem/idemnats"
)

// realServer names a NATS server to run the suite against, instead of one in process.
const realServer = "IDEMNATS_URL"

const (
	ackTimeout = 3 * time.Second
	maxPayload = 256 << 10
)

func TestMain(m *testing.M) { brokertest.Main(m, openAddress) }

// natsServer is a server in this process, with its data in a folder.
type natsServer struct {
	options *server.Options
	running *server.Server
}

func startServer(t testing.TB) *natsServer {
	t.Helper()
	port, err := brokertest.FreePort() // the same after a restart
	if err != nil {
		t.Fatal(err)
	}
	s := &natsServer{options: &server.Options{
		Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: t.TempDir(), SyncAlways: true,
		MaxPayload: maxPayload, NoSigs: true, NoLog: true,
	}}
	s.start(t)
	t.Cleanup(s.stop)
	return s
}

func (s *natsServer) start(t testing.TB) {
	t.Helper()
	options := *s.options
	running, err := server.NewServer(&options)
	if err != nil {
		t.Fatal(err)
	}
	running.Start()
	if !running.ReadyForConnections(time.Minute) {
		t.Fatal("the NATS server does not start")
	}
	s.running = running
}

func (s *natsServer) stop() {
	s.running.Shutdown()
	s.running.WaitForShutdown()
}

func (s *natsServer) restart(t testing.TB) { s.stop(); s.start(t) }

func connect(t testing.TB, url string) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(url, options()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// options returns the options that the package's documentation recommends.
func options() []nats.Option {
	return []nats.Option{nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond), nats.RetryOnFailedConnect(true)}
}

// layout is a way to consume a stream.
type layout struct {
	partitions int // each has a consumer
	pending    int // the MaxAckPending of each consumer; 0 is the server's default
}

// openNew makes a stream of that name with its durable consumers.
func openNew(t testing.TB, js jetstream.JetStream, name string, l layout, batches bool) {
	t.Helper()
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: name, Subjects: []string{name, name + ".*"}, Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew,
		AllowAtomicPublish: batches,
	})
	if err != nil {
		t.Fatal(err)
	}
	for p := range l.partitions {
		config := jetstream.ConsumerConfig{
			Durable: fmt.Sprintf("c%d", p), AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackTimeout, MaxDeliver: -1, MaxAckPending: l.pending,
		}
		if l.partitions > 1 {
			config.FilterSubject = fmt.Sprintf("%s.%d", name, p)
		}
		if _, err := stream.CreateConsumer(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
}

// openQueue opens a stream that openNew has made.
func openQueue(ctx context.Context, js jetstream.JetStream, name string, l layout) (q brokertest.Queue, err error) {
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return q, err
	}
	publisher, err := idemnats.NewPublisher(js, stream, name)
	if err != nil {
		return q, err
	}
	publisher.Partitions = l.partitions
	nowhere, err := idemnats.NewPublisher(js, stream, "nowhere."+name)
	if err != nil {
		return q, err
	}
	var consumers []jetstream.Consumer
	for p := range l.partitions {
		c, err := stream.Consumer(ctx, fmt.Sprintf("c%d", p))
		if err != nil {
			return q, err
		}
		consumers = append(consumers, c)
	}
	return brokertest.Queue{
		Publisher: publisher, Nowhere: nowhere, AckTimeout: ackTimeout, Oversize: maxPayload, Ordered: l.pending == 1,
		Address: fmt.Sprintf("%s %s %d %d", js.Conn().ConnectedUrl(), name, l.partitions, l.pending),
		Consume: func(ctx context.Context, handle broker.Handle) error {
			ended := make(chan error)
			for _, c := range consumers {
				go func() { ended <- idemnats.Consume(ctx, c, handle) }()
			}
			var all error
			for range consumers {
				all = errors.Join(all, <-ended)
			}
			return all
		},
	}, nil
}

// openAddress opens the queue of a Queue's Address in another process.
func openAddress(address string) (q brokertest.Queue, err error) {
	var url, name string
	var l layout
	if _, err := fmt.Sscan(address, &url, &name, &l.partitions, &l.pending); err != nil {
		return q, err
	}
	nc, err := nats.Connect(url, options()...)
	if err != nil {
		return q, err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return q, err
	}
	return openQueue(context.Background(), js, name, l)
}

// open opens a new queue: on a real server if there is one, else on one in process.
func open(l layout, batches bool) func(testing.TB) brokertest.Queue {
	return func(t testing.TB) brokertest.Queue {
		t.Helper()
		url := os.Getenv(realServer)
		if url == "" {
			return openOwn(l, batches)(t)
		}
		js := connect(t, url)
		name := "idemnats_" + strings.NewReplacer("/", "_", ".", "_").Replace(t.Name())
		_ = js.DeleteStream(t.Context(), name) // left by a test that was killed
		openNew(t, js, name, l, batches)
		t.Cleanup(func() { _ = js.DeleteStream(context.Background(), name) })
		q, err := openQueue(t.Context(), js, name, l)
		if err != nil {
			t.Fatal(err)
		}
		q.Oversize = int(js.Conn().MaxPayload())
		return q
	}
}

// openOwn opens a new queue on a server of the test's own, behind a proxy.
func openOwn(l layout, batches bool) func(testing.TB) brokertest.Queue {
	return func(t testing.TB) brokertest.Queue {
		t.Helper()
		s := startServer(t)
		proxy := brokertest.NewProxy(t, s.running.Addr().String())
		js := connect(t, "nats://"+proxy.Address())
		openNew(t, js, "hooks", l, batches)
		q, err := openQueue(t.Context(), js, "hooks", l)
		if err != nil {
			t.Fatal(err)
		}
		q.Restart, q.Hang = s.restart, func(testing.TB) func() { return proxy.Hang() }
		return q
	}
}

func TestJetStream(t *testing.T) {
	t.Parallel()
	one := layout{partitions: 1, pending: 1} // as in the package's first example
	brokertest.Run(t, brokertest.Broker{Open: open(one, true), OpenOwn: openOwn(one, true)})
}

func TestJetStreamWithManyMessagesAtATime(t *testing.T) {
	t.Parallel()
	many := layout{partitions: 1}
	brokertest.Run(t, brokertest.Broker{Open: open(many, true), OpenOwn: openOwn(many, true)})
}

func TestJetStreamWithPartitions(t *testing.T) {
	t.Parallel()
	three := layout{partitions: 3, pending: 1}
	brokertest.Run(t, brokertest.Broker{Open: open(three, false), OpenOwn: openOwn(three, false)})
}
