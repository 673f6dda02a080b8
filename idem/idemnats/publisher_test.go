package idemnats_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/brokertest"
	"github.com/paghooks/paghooks/idem/idemnats"
)

func TestAStreamThatConfirmsWhatItCanLoseIsRefused(t *testing.T) {
	t.Parallel()
	js := connect(t, startServer(t).running.ClientURL())
	for name, c := range map[string]struct {
		config  jetstream.StreamConfig
		subject string
		want    string
	}{
		"in memory":          {jetstream.StreamConfig{Storage: jetstream.MemoryStorage}, "a", "make it with FileStorage"},
		"written later":      {jetstream.StreamConfig{PersistMode: jetstream.AsyncPersistMode}, "a", "make it with DefaultPersistMode"},
		"without answers":    {jetstream.StreamConfig{NoAck: true}, "a", "make it without NoAck"},
		"no subject":         {jetstream.StreamConfig{}, "", "must not be empty"},
		"a wildcard subject": {jetstream.StreamConfig{}, "a.*", "must not be empty, nor have spaces or wildcards"},
	} {
		t.Run(name, func(t *testing.T) {
			c.config.Name = strings.ReplaceAll(name, " ", "_")
			c.config.Subjects = []string{c.config.Name}
			stream, err := js.CreateStream(t.Context(), c.config)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := idemnats.NewPublisher(js, stream, c.subject); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("NewPublisher returned %v, want %q", err, c.want)
			}
		})
	}
}

func TestConsumingGoesOnAfterTheConsumerOrItsStreamWasDeletedAndMadeAgain(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	js := connect(t, s.running.ClientURL())
	openNew(t, js, "hooks", layout{partitions: 1}, false)
	q, err := openQueue(t.Context(), js, "hooks", layout{partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "hooks")
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := stream.Consumer(t.Context(), "c0")
	if err != nil {
		t.Fatal(err)
	}
	config := consumer.CachedInfo().Config
	logged, got := make(chan string, 1000), make(chan string, 100)
	logger := slog.New(slog.NewTextHandler(writerFunc(func(line string) { logged <- line }), nil))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- idemnats.ConsumeWith(ctx, broker.Consumer{Logger: logger}, consumer, func(_ context.Context, m broker.Message) error { got <- m.ID; return nil })
	}()
	for _, id := range []string{"at first", "after the consumer was", "after the stream was"} {
		switch id {
		case "after the consumer was":
			err = stream.DeleteConsumer(t.Context(), "c0")
		case "after the stream was":
			err = js.DeleteStream(t.Context(), "hooks")
		}
		if err != nil {
			t.Fatal(err)
		}
		if id != "at first" {
			for line := ""; !strings.Contains(line, "there is no consumer c0 of stream hooks: create it"); {
				line = brokertest.Next(t, logged)
			}
			if _, err := js.CreateOrUpdateStream(t.Context(), stream.CachedInfo().Config); err != nil {
				t.Fatal(err)
			}
			if _, err := js.CreateConsumer(t.Context(), "hooks", config); err != nil {
				t.Fatal(err)
			}
		}
		if err := q.Publisher.Publish(t.Context(), broker.Message{Source: "a", ID: id, Type: "x"}); err != nil {
			t.Fatal(err)
		}
		for brokertest.Next(t, got) != id { // a message comes again if its consumer was deleted before it was acknowledged
		}
	}
	cancel()
	if err := brokertest.Next(t, ended); err != nil {
		t.Error("Consume returned ", err)
	}
}

// writerFunc is a function that gets each written text.
type writerFunc func(text string)

func (f writerFunc) Write(p []byte) (int, error) { f(string(p)); return len(p), nil }

func TestAConsumerThatWouldLoseMessagesIsRefused(t *testing.T) {
	t.Parallel()
	js := connect(t, startServer(t).running.ClientURL())
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "hooks"})
	if err != nil {
		t.Fatal(err)
	}
	for want, config := range map[string]jetstream.ConsumerConfig{
		"make it with AckExplicitPolicy": {Durable: "none", AckPolicy: jetstream.AckNonePolicy},
		"make it with MaxDeliver -1":     {Durable: "few", AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: 5},
	} {
		consumer, err := stream.CreateConsumer(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		if err := idemnats.Consume(t.Context(), consumer, nothing); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Consume returned %v, want %q", err, want)
		}
	}
}

func nothing(context.Context, broker.Message) error { return nil }

func TestAClosedConnectionEndsConsume(t *testing.T) {
	t.Parallel()
	js := connect(t, startServer(t).running.ClientURL())
	openNew(t, js, "hooks", layout{partitions: 1}, true)
	q, err := openQueue(t.Context(), js, "hooks", layout{partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Publisher.Publish(t.Context(), broker.Message{Source: "a", ID: "1", Type: "x"}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	handled := make(chan bool)
	go func() {
		ended <- q.Consume(t.Context(), func(context.Context, broker.Message) error { close(handled); return nil })
	}()
	<-handled
	js.Conn().Close()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "nats.MaxReconnects(-1)") {
		t.Errorf("Consume returned %v, want an error that says how to connect", err)
	}
	if err := q.Publisher.Publish(t.Context(), broker.Message{Source: "a", ID: "2", Type: "x"}); err == nil || !strings.Contains(err.Error(), "nats.MaxReconnects(-1)") {
		t.Errorf("Publish returned %v, want an error that says how to connect", err)
	}
}

// TestABatchWithADuplicateIsPublishedAllTheSame publishes many messages at once, among
// them one that the stream has, and one twice.
func TestABatchWithADuplicateIsPublishedAllTheSame(t *testing.T) {
	t.Parallel()
	js := connect(t, startServer(t).running.ClientURL())
	openNew(t, js, "hooks", layout{partitions: 1}, true)
	q, err := openQueue(t.Context(), js, "hooks", layout{partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	publish := func(n int) {
		m := broker.Message{Source: "a", ID: fmt.Sprint(n), Type: "x", Body: []byte("{}")}
		if err := q.Publisher.Publish(t.Context(), m); err != nil {
			t.Errorf("message %d: %v", n, err)
		}
	}
	publish(17)
	var published sync.WaitGroup
	for n := range 200 {
		published.Go(func() { publish(n) })
	}
	published.Go(func() { publish(100) })
	published.Wait()
	stream, err := js.Stream(t.Context(), "hooks")
	if err != nil {
		t.Fatal(err)
	}
	if got := stream.CachedInfo().State.Msgs; got != 200 {
		t.Errorf("the stream has %d messages, want 200", got)
	}
}

// TestAKeyKeepsItsPartition has the numbers that programs in production rely on.
func TestAKeyKeepsItsPartition(t *testing.T) {
	t.Parallel()
	js := connect(t, startServer(t).running.ClientURL())
	openNew(t, js, "hooks", layout{partitions: 8, pending: 1}, false)
	q, err := openQueue(t.Context(), js, "hooks", layout{partitions: 8, pending: 1})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "hooks")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ key, id, want string }{
		{"pay_1", "evt_1", "hooks.1"},
		{"pay_2", "evt_1", "hooks.0"},
		{"shop/pay_1", "evt_2", "hooks.0"},
		{"", "pay_1", "hooks.1"}, // without a Key, by the ID
		{"", "", "hooks.5"},
	} {
		if err := q.Publisher.Publish(t.Context(), broker.Message{Source: c.key, ID: c.id, Type: "x", Key: c.key}); err != nil {
			t.Fatal(err)
		}
		info, err := stream.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m, err := stream.GetMsg(t.Context(), info.State.LastSeq)
		if err != nil {
			t.Fatal(err)
		}
		if m.Subject != c.want {
			t.Errorf("Key %q, ID %q is published to %s, want %s", c.key, c.id, m.Subject, c.want)
		}
	}
}
