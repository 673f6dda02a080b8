package idemkafka_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/brokertest"
	"github.com/paghooks/paghooks/idem/idemkafka"
)

func TestATopicThatDoesNotExistIsNamedAndConsumedOnceItDoes(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	logged, got := make(chan string, 1000), make(chan string, 2)
	logger := slog.New(slog.NewTextHandler(writerFunc(func(line string) { logged <- line }), nil))
	client := newClient(t, append(consuming(f.topic, f.addresses...), kgo.ConsumeTopics(f.topic, "later"), kgo.MetadataMinAge(100*time.Millisecond))...)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- idemkafka.ConsumeWith(ctx, broker.Consumer{Logger: logger}, client, func(_ context.Context, m broker.Message) error { got <- m.ID; return nil })
	}()
	for line := ""; !strings.Contains(line, "later") || !strings.Contains(line, "create it"); {
		line = brokertest.Next(t, logged)
	}
	publish(t, f.publisher(t), broker.Message{Source: "shop", ID: "other", Type: "paid"})
	if id := brokertest.Next(t, got); id != "other" {
		t.Errorf("message %s was handled, want the one of the topic that exists", id)
	}
	if err := f.CreateTopic("later", 1, nil); err != nil {
		t.Fatal(err)
	}
	p, err := idemkafka.NewPublisher(newClient(t, kgo.SeedBrokers(f.addresses...)), "later")
	if err != nil {
		t.Fatal(err)
	}
	publish(t, p, broker.Message{Source: "shop", ID: "later", Type: "paid"})
	if id := brokertest.Next(t, got); id != "later" {
		t.Errorf("message %s was handled, want the one of the new topic", id)
	}
	cancel()
	if err := brokertest.Next(t, ended); err != nil {
		t.Error("Consume returned ", err)
	}
}

func TestATopicThatIsDeletedAndMadeAgainNeedsANewClient(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	logged, got := make(chan string, 1000), make(chan string, 2)
	logger := slog.New(slog.NewTextHandler(writerFunc(func(line string) { logged <- line }), nil))
	consume := func() (stop func()) {
		client := newClient(t, consuming(f.topic, f.addresses...)...)
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		ended := make(chan error, 1)
		go func() {
			ended <- idemkafka.ConsumeWith(ctx, broker.Consumer{Logger: logger}, client, func(_ context.Context, m broker.Message) error { got <- m.ID; return nil })
		}()
		return func() {
			cancel()
			if err := brokertest.Next(t, ended); err != nil {
				t.Error("Consume returned ", err)
			}
		}
	}
	stop := consume()
	publish(t, f.publisher(t), broker.Message{Source: "shop", ID: "before", Type: "paid"})
	brokertest.Next(t, got)
	if err := deleteTopic(t.Context(), newClient(t, kgo.SeedBrokers(f.addresses...)), f.topic); err != nil {
		t.Fatal(err)
	}
	if err := f.CreateTopic(f.topic, partitions, nil); err != nil {
		t.Fatal(err)
	}
	publish(t, f.publisher(t), broker.Message{Source: "shop", ID: "after", Type: "paid"})
	for line := ""; !strings.Contains(line, "call Consume again with a new client"); {
		line = brokertest.Next(t, logged)
	}
	stop()
	stop = consume()
	defer stop()
	if id := brokertest.Next(t, got); id != "after" {
		t.Errorf("message %s was handled, want the one of the new topic", id)
	}
}

// writerFunc is a function that gets each written text.
type writerFunc func(text string)

func (f writerFunc) Write(p []byte) (int, error) { f(string(p)); return len(p), nil }
