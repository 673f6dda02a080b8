package idemrabbitmq_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/brokertest"
	"github.com/paghooks/paghooks/idem/broker/idemrabbitmq"
)

// realServer names a RabbitMQ to run the suite against: an AMQP URL. Tests that kill
// the broker, or have it hang, start their own in any case.
const realServer = "IDEMRABBITMQ_URL"

func TestMain(m *testing.M) { brokertest.Main(m, openAddress) }

func TestClassicQueue(t *testing.T) {
	t.Parallel()
	classic := amqp.Table{"x-queue-type": "classic"}
	brokertest.Run(t, brokertest.Broker{Open: open(classic), OpenOwn: openOwn(classic)})
}

func TestQuorumQueueWithASingleActiveConsumer(t *testing.T) {
	t.Parallel()
	quorum := amqp.Table{"x-queue-type": "quorum", "x-single-active-consumer": true}
	brokertest.Run(t, brokertest.Broker{Open: open(quorum), OpenOwn: openOwn(quorum)})
}

// shared is the node of the tests that do not harm it.
var shared = sync.OnceValues(func() (*node, error) { return startNode(30 * time.Minute) })

// consumerTimeout is the time that the other node waits for acknowledgements.
const consumerTimeout = 3 * time.Second

// own is the node of the tests that kill it, one after the other.
var (
	own      = sync.OnceValues(func() (*node, error) { return startNode(consumerTimeout) })
	ownInUse sync.Mutex
)

// skipWithout names the variable that has tests skipped where no RabbitMQ is installed.
const skipWithout = "IDEMRABBITMQ_SKIP_WITHOUT_RABBITMQ"

// running returns a node.
func running(t testing.TB, start func() (*node, error)) *node {
	t.Helper()
	if err := installed(); err != nil {
		if skips, _ := strconv.ParseBool(os.Getenv(skipWithout)); skips {
			t.Skip(err)
		}
		t.Fatalf("%v: install RabbitMQ, name one in %s, or skip the tests that need one with %s=1", err, realServer, skipWithout)
	}
	n, err := start()
	if err != nil {
		t.Fatal("RabbitMQ does not start: ", err)
	}
	return n
}

// installed returns an error that names the missing programs of RabbitMQ.
func installed() error {
	if _, err := findServer(); err != nil {
		return err
	}
	_, err := exec.LookPath("epmd") // Erlang's
	return err
}

// sharedURL is the URL of a RabbitMQ for tests that do not harm it.
func sharedURL(t testing.TB) string {
	t.Helper()
	if url := os.Getenv(realServer); url != "" {
		return url
	}
	return running(t, shared).url()
}

// ownNode returns the node that the test may kill.
func ownNode(t testing.TB) *node {
	t.Helper()
	n := running(t, own)
	ownInUse.Lock()
	t.Cleanup(ownInUse.Unlock)
	return n
}

// channelOf opens a channel for the test itself.
func channelOf(t testing.TB, url string) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

// declare makes an empty durable queue, which is deleted with the test.
func declare(t testing.TB, url string, args amqp.Table) (queue string) {
	t.Helper()
	queue = "idemrabbitmq/" + t.Name()
	ch := channelOf(t, url)
	if _, err := ch.QueueDelete(queue, false, false, false); err != nil { // left by a test that was killed
		t.Fatal(err)
	}
	if _, err := ch.QueueDeclare(queue, true, false, false, false, args); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if conn, err := amqp.Dial(url); err == nil { // not after a restart: ch's is gone
			defer conn.Close()
			if ch, err := conn.Channel(); err == nil {
				_, _ = ch.QueueDelete(queue, false, false, false)
			}
		}
	})
	return queue
}

func open(args amqp.Table) func(testing.TB) brokertest.Queue {
	return func(t testing.TB) brokertest.Queue {
		url := sharedURL(t)
		q := queueOf(t, url, declare(t, url, args), args)
		if os.Getenv(realServer) == "" {
			q.Oversize = maxMessageSize
		}
		return q
	}
}

func openOwn(args amqp.Table) func(testing.TB) brokertest.Queue {
	return func(t testing.TB) brokertest.Queue {
		n := ownNode(t)
		q := queueOf(t, n.url(), declare(t, n.url(), args), args)
		// Not kill -9: from that, RabbitMQ 3.10.8 on one node came back now and then with
		// a queue that confirmed nothing until it was started again; with a quorum queue
		// that was so for every client.
		q.Restart, q.Hang = n.restart, n.hang
		return q
	}
}

// queueOf has no AckTimeout: RabbitMQ does not give more time.
func queueOf(t testing.TB, url, queue string, args amqp.Table) brokertest.Queue {
	t.Helper()
	q := openQueue(url, queue)
	nowhere := idemrabbitmq.NewPublisher(dialer(url), "", queue+"/nowhere")
	t.Cleanup(func() { nowhere.Close(); q.Publisher.(*idemrabbitmq.Publisher).Close() })
	q.Nowhere, q.Ordered, q.Address = nowhere, args["x-single-active-consumer"] == true, url+" "+queue
	return q
}

func openQueue(url, queue string) brokertest.Queue {
	return brokertest.Queue{
		Publisher: idemrabbitmq.NewPublisher(dialer(url), "", queue),
		Consume: func(ctx context.Context, handle broker.Handle) error {
			return idemrabbitmq.ConsumeWith(ctx, broker.Consumer{Logger: slog.New(slog.DiscardHandler)}, dialer(url), queue, handle)
		},
	}
}

// openAddress opens a queue of queueOf's in another process.
func openAddress(address string) (brokertest.Queue, error) {
	url, queue, ok := strings.Cut(address, " ")
	if !ok {
		return brokertest.Queue{}, fmt.Errorf("no queue in %q", address)
	}
	return openQueue(url, queue), nil
}

// BenchmarkRelay compares a relay with a queue that is on disk when it confirms with an
// inbox, for both kinds of queues.
func BenchmarkRelay(b *testing.B) {
	for _, kind := range []string{"quorum", "classic"} {
		b.Run(kind, func(b *testing.B) {
			url := sharedURL(b)
			queue := declare(b, url, amqp.Table{"x-queue-type": kind})
			brokertest.Benchmark(b, newPublisher(b, dialer(url), "", queue))
		})
	}
}
