package idemsqs_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/brokertest"
	"github.com/paghooks/paghooks/idem/broker/idemsqs"
	"github.com/paghooks/paghooks/idem/broker/idemsqs/sqstest"
)

// consume consumes until stop is called, which waits for the end.
func consume(t testing.TB, settings broker.Consumer, client *sqs.Client, url string, handle broker.Handle) (stop func()) {
	t.Helper()
	return brokertest.Background(t, func(ctx context.Context) error {
		return idemsqs.ConsumeWith(ctx, settings, client, url, handle)
	})
}

func TestEveryMessageArrivesAsItWas(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 5000, time.UTC)
	all := make([]byte, 256)
	for n := range all {
		all[n] = byte(n)
	}
	for _, suffix := range []string{"", ".fifo"} {
		_, endpoint, url := newQueue(t, suffix)
		client := newClient(endpoint)
		got := make(chan broker.Message)
		consume(t, broker.Consumer{}, client, url, func(_ context.Context, m broker.Message) error { got <- m; return nil })
		for reason, m := range map[string]broker.Message{
			"text":                  {Source: "shop", ID: "1", Type: "order.paid", Key: "ordem 7 ✓", Time: at, Body: []byte("{\"á\":\t1}\r\n")},
			"every byte":            {Source: "shop", ID: "a&<1>/2", Type: "order.paid", Body: all},
			"empty":                 {Source: "shop", ID: "2", Type: "order.paid", Body: []byte{}},
			"characters not of XML": {Source: "shop", ID: "\x01", Type: "x", Key: "\uffff", Body: []byte("a\x01\ufffe")},
			"text like base64":      {Source: "shop", ID: "3", Type: "x", Body: []byte("eA==")},
			"one space":             {Source: "shop", ID: "4", Type: "x", Body: []byte(" ")},
			"no source":             {ID: "5", Type: "x", Body: []byte("x")},
		} {
			if err := idemsqs.NewPublisher(client, url).Publish(t.Context(), m); err != nil {
				t.Error(reason, ": ", err)
				continue
			}
			if diff := cmp.Diff(m, brokertest.Next(t, got)); diff != "" {
				t.Errorf("%s, %q (-want +got):\n%s", reason, suffix, diff)
			}
		}
	}
}

func TestWhatOthersSendIsConsumedToo(t *testing.T) {
	t.Parallel()
	server, endpoint, url := newQueue(t, "")
	if server == nil {
		t.Skip("the ID of a foreign message is known on sqstest only")
	}
	client := newClient(endpoint)
	var bodies []string
	got := make(chan broker.Message)
	consume(t, broker.Consumer{}, client, url, func(_ context.Context, m broker.Message) error { got <- m; return nil })
	encoded := map[string]types.MessageAttributeValue{"contentencoding": {DataType: aws.String("String"), StringValue: aws.String("base64")}}
	for _, in := range []*sqs.SendMessageInput{
		{QueueUrl: &url, MessageBody: aws.String("{}")},
		{QueueUrl: &url, MessageBody: aws.String("not base64"), MessageAttributes: encoded},
	} {
		if _, err := client.SendMessage(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		m := brokertest.Next(t, got)
		if m.ID == "" {
			t.Error("a message has no ID")
		}
		bodies = append(bodies, string(m.Body))
	}
	if diff := cmp.Diff([]string{"{}", "not base64"}, bodies); diff != "" {
		t.Error("bodies (-want +got):\n" + diff)
	}
}

func TestAMessageThatIsTooLargeForItsQueueNamesTheSetting(t *testing.T) {
	t.Parallel()
	server := sqstest.NewServer()
	t.Cleanup(server.Close)
	client := newClient(server.URL)
	queue, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("small"), Attributes: map[string]string{"MaximumMessageSize": "1024"}})
	if err != nil {
		t.Fatal(err)
	}
	err = idemsqs.NewPublisher(client, *queue.QueueUrl).Publish(t.Context(), broker.Message{Type: "paid", Body: make([]byte, 1025)})
	if !errors.Is(err, broker.ErrTooLarge) || !strings.Contains(err.Error(), "raise its MaximumMessageSize") {
		t.Errorf("publishing ended with %v", err)
	}
}

func TestWhatConsumeHasNotHandledIsVisibleToOthersWhenItEnds(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", ".fifo"} {
		_, endpoint, url := newQueue(t, suffix)
		client := newClient(endpoint)
		publish(t, client, url, 30)
		begun := make(chan struct{}, 100)
		hour := broker.Consumer{Handlers: 2, StopTimeout: time.Millisecond, ExtendEvery: time.Hour, Logger: slog.New(slog.DiscardHandler)}
		stop := consume(t, hour, client, url, func(ctx context.Context, _ broker.Message) error {
			begun <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		})
		brokertest.Next(t, begun)
		stop()
		handled := make(chan string)
		consume(t, broker.Consumer{}, client, url, func(_ context.Context, m broker.Message) error { handled <- m.ID; return nil })
		for range 30 {
			brokertest.Next(t, handled)
		}
	}
}

// The one handler is busy for longer than messages are invisible. Those that it has not
// begun, and that are not extended, are left to SQS.
func TestWhatWaitsForTooLongComesAgain(t *testing.T) {
	t.Parallel()
	_, endpoint, url := newQueue(t, ".fifo")
	client := newClient(endpoint)
	publish(t, client, url, 20)
	var log bytes.Buffer
	handled := make(chan string, 100)
	slow := sync.OnceFunc(func() { <-time.After(8 * time.Second) }) // longer than 3 × ExtendEvery
	settings := broker.Consumer{Handlers: 1, ExtendEvery: 2 * time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	stop := consume(t, settings, client, url, func(_ context.Context, m broker.Message) error {
		slow()
		handled <- m.ID
		return nil
	})
	times := map[string]int{}
	for range 20 {
		times[brokertest.Next(t, handled)]++
	}
	stop()
	if len(times) != 20 || log.Len() > 0 {
		t.Errorf("handled %v, and logged %s", times, log.String())
	}
}

func TestAQueueThatDoesNotExistIsNamedAndConsumedOnceItDoes(t *testing.T) {
	t.Parallel()
	server := sqstest.NewServer()
	t.Cleanup(server.Close)
	client := newClient(server.URL)
	url := server.URL + "/000000000000/later"
	logged, got := make(chan string, 1000), make(chan string)
	logger := slog.New(slog.NewTextHandler(writerFunc(func(line string) { logged <- line }), nil))
	consume(t, broker.Consumer{Logger: logger}, client, url, func(_ context.Context, m broker.Message) error { got <- m.ID; return nil })
	if line := brokertest.Next(t, logged); !strings.Contains(line, "/later: there is no such queue: create it") {
		t.Errorf("logged %s, want that there is no queue", line)
	}
	if _, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("later")}); err != nil {
		t.Fatal(err)
	}
	publish(t, client, url, 1)
	if id := brokertest.Next(t, got); id != "i" {
		t.Errorf("message %s was handled, want i", id)
	}
}

// writerFunc is a function that gets each written text.
type writerFunc func(text string)

func (f writerFunc) Write(p []byte) (int, error) { f(string(p)); return len(p), nil }

// publish publishes messages, each in a group of its own.
func publish(t testing.TB, client *sqs.Client, url string, messages int) {
	t.Helper()
	p := idemsqs.NewPublisher(client, url)
	for n := range messages {
		if err := p.Publish(t.Context(), broker.Message{Source: "shop", ID: strings.Repeat("i", n+1), Type: "paid"}); err != nil {
			t.Fatal(err)
		}
	}
}
