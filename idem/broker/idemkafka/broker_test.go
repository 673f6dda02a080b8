package idemkafka_test

import (
	"context"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/brokertest"
	"github.com/paghooks/paghooks/idem/broker/idemkafka"
)

// seedsVariable names the variable with the addresses of real brokers, divided by
// commas, for TestBroker.
const seedsVariable = "IDEMKAFKA_SEEDS"

// partitions is the number that a topic has in these tests.
const partitions = 4

// patience is the time that a test waits for something that must happen.
const patience = time.Minute

func TestMain(m *testing.M) {
	brokertest.Main(m, func(address string) (brokertest.Queue, error) {
		seeds, topic, _ := strings.Cut(address, " ")
		client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(seeds, ",")...))
		if err != nil {
			return brokertest.Queue{}, err
		}
		return newQueue(client, topic)
	})
}

func TestBroker(t *testing.T) {
	t.Parallel()
	open := openFake
	if seeds := os.Getenv(seedsVariable); seeds != "" {
		open = func(t testing.TB) brokertest.Queue { return openReal(t, strings.Split(seeds, ",")...) }
	}
	brokertest.Run(t, brokertest.Broker{Open: open})
}

// openFake opens a topic of a broker in this process.
func openFake(t testing.TB) brokertest.Queue {
	f := startFake(t)
	client := newClient(t, kgo.SeedBrokers(f.addresses...))
	if _, _, err := client.ProducerID(t.Context()); err != nil { // connects, so that no time-out of a test has to cover it
		t.Fatal(err)
	}
	q, err := newQueue(client, f.topic)
	if err != nil {
		t.Fatal(err)
	}
	q.Restart, q.Hang = f.restart, f.hang
	return q
}

// openReal opens a new topic of the brokers at seeds.
func openReal(t testing.TB, seeds ...string) brokertest.Queue {
	name := "idemkafka-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	client := newClient(t, kgo.SeedBrokers(seeds...))
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, -1
	create := kmsg.NewPtrCreateTopicsRequest()
	create.Topics = append(create.Topics, topic)
	response, err := create.RequestWith(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	if err := kerr.ErrorForCode(response.Topics[0].ErrorCode); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := deleteTopic(context.Background(), client, name); err != nil {
			t.Error(err)
		}
	})
	q, err := newQueue(client, name)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func deleteTopic(ctx context.Context, client *kgo.Client, name string) error {
	request := kmsg.NewPtrDeleteTopicsRequest()
	request.TopicNames = []string{name}
	topic := kmsg.NewDeleteTopicsRequestTopic()
	topic.Topic = &name
	request.Topics = append(request.Topics, topic)
	_, err := request.RequestWith(ctx, client)
	return err
}

// newQueue is a topic. client publishes to it.
func newQueue(client *kgo.Client, topic string) (brokertest.Queue, error) {
	seeds, _ := client.OptValue(kgo.SeedBrokers).([]string)
	publisher, err := idemkafka.NewPublisher(client, topic)
	if err != nil {
		return brokertest.Queue{}, err
	}
	nowhere, err := idemkafka.NewPublisher(client, "nowhere")
	if err != nil {
		return brokertest.Queue{}, err
	}
	return brokertest.Queue{
		Publisher: publisher,
		Nowhere:   nowhere,
		Consume: func(ctx context.Context, handle broker.Handle) error {
			client, err := kgo.NewClient(consuming(topic, seeds...)...)
			if err != nil {
				return err
			}
			defer client.Close()
			quiet := broker.Consumer{Logger: slog.New(slog.DiscardHandler)}
			return idemkafka.ConsumeWith(ctx, quiet, client, handle)
		},
		Address:    strings.Join(seeds, ",") + " " + topic,
		AckTimeout: 2 * time.Second, // there is none; so consumers rebalance while handlers are slow
		Ordered:    true,
		Oversize:   1 << 20,
	}, nil
}

// consuming are the options of a client that consumes. A member of its group that is
// killed is missed after 6 seconds, the least that brokers allow by default.
func consuming(topic string, seeds ...string) []kgo.Opt {
	return []kgo.Opt{
		kgo.SeedBrokers(seeds...), kgo.ConsumerGroup(topic), kgo.ConsumeTopics(topic),
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.SessionTimeout(6 * time.Second), kgo.HeartbeatInterval(200 * time.Millisecond),
	}
}

func newClient(t testing.TB, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseAllowingRebalance)
	return client
}

// fake is a broker in this process, with its stored records on disk.
type fake struct {
	*kfake.Cluster
	topic     string
	dir       string
	ports     []int // the same after a restart
	addresses []string
	changed   chan struct{} // has an element after a handler was called or has returned
}

func startFake(t testing.TB) *fake { return startFakeWith(t, partitions) }

func startFakeWith(t testing.TB, partitions int32) *fake {
	t.Helper()
	f := &fake{topic: "webhooks", dir: t.TempDir(), changed: make(chan struct{}, 1)}
	for range 3 {
		port, err := brokertest.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		f.ports, f.addresses = append(f.ports, port), append(f.addresses, "127.0.0.1:"+strconv.Itoa(port))
	}
	f.start(t, kfake.SeedTopics(partitions, f.topic))
	t.Cleanup(func() { f.Close() })
	return f
}

func (f *fake) start(t testing.TB, opts ...kfake.Opt) {
	t.Helper()
	cluster, err := kfake.NewCluster(append(opts, kfake.NumBrokers(len(f.ports)), kfake.Ports(f.ports...), kfake.DataDir(f.dir), kfake.BrokerConfigs(map[string]string{
		"group.consumer.heartbeat.interval.ms": "200", // as of consuming, for groups to which brokers assign
	}))...)
	if err != nil {
		t.Fatal(err)
	}
	f.Cluster = cluster
}

func (f *fake) restart(t testing.TB) { f.Close(); f.start(t) }

// hang has no request answered until resume is called.
func (f *fake) hang(testing.TB) (resume func()) {
	hanging := make(chan struct{})
	cluster := f.Cluster
	cluster.Control(func(kmsg.Request) (kmsg.Response, error, bool) {
		select {
		case <-hanging:
			cluster.DropControl()
		default:
			cluster.KeepControl()
			cluster.SleepControl(func() { <-hanging })
		}
		return nil, nil, false
	})
	return sync.OnceFunc(func() { close(hanging) })
}

// BenchmarkRelay compares a relay with a broker that has nothing on disk when it confirms
// with an inbox.
func BenchmarkRelay(b *testing.B) { brokertest.Benchmark(b, openFake(b).Publisher) }

// BenchmarkConsume consumes messages with a handler that does nothing.
func BenchmarkConsume(b *testing.B) {
	f := startFake(b)
	client := newClient(b, kgo.SeedBrokers(f.addresses...))
	for n := range b.N {
		r := &kgo.Record{Topic: f.topic, Key: strconv.AppendInt(nil, int64(n%1000), 10), Value: make([]byte, 2000)}
		client.Produce(b.Context(), r, func(_ *kgo.Record, err error) {
			if err != nil {
				b.Error(err)
			}
		})
	}
	if err := client.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	var handled atomic.Int64
	b.ResetTimer()
	err := idemkafka.Consume(ctx, newClient(b, consuming(f.topic, f.addresses...)...), func(context.Context, broker.Message) error {
		if handled.Add(1) == int64(b.N) {
			cancel()
		}
		return nil
	})
	if err != nil {
		b.Error(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "messages/s")
}
