package idemrabbitmq_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/brokertest"
	"github.com/paghooks/paghooks/idem/broker/idemrabbitmq"
)

// consume consumes until stop is called, which waits for the end.
func consume(t testing.TB, settings broker.Consumer, url, queue string, handle broker.Handle) (stop func()) {
	t.Helper()
	if settings.Logger == nil {
		settings.Logger = slog.New(slog.DiscardHandler)
	}
	return brokertest.Background(t, func(ctx context.Context) error {
		return idemrabbitmq.ConsumeWith(ctx, settings, dialer(url), queue, handle)
	})
}

func TestWhatOthersPublishIsConsumedToo(t *testing.T) {
	t.Parallel()
	url := sharedURL(t)
	queue := declare(t, url, nil)
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	foreign := amqp.Publishing{MessageId: "7", Type: "paid", Timestamp: at, Body: []byte("{}"), Headers: amqp.Table{"n": 1, "cloudEvents:n": 2}}
	if err := channelOf(t, url).PublishWithContext(t.Context(), "", queue, true, false, foreign); err != nil {
		t.Fatal(err)
	}
	got := make(chan broker.Message)
	consume(t, broker.Consumer{}, url, queue, func(_ context.Context, m broker.Message) error { got <- m; return nil })
	m := brokertest.Next(t, got)
	m.Time = m.Time.UTC()
	if diff := cmp.Diff(broker.Message{ID: "7", Type: "paid", Time: at, Body: []byte("{}")}, m); diff != "" {
		t.Errorf("the message (-want +got)\n%s", diff)
	}
}

func TestWhatIsNotHandledWhenConsumeEndsIsBackInTheQueue(t *testing.T) {
	t.Parallel()
	url := sharedURL(t)
	queue := declare(t, url, nil)
	p := newPublisher(t, dialer(url), "", queue)
	for range 100 {
		if err := p.Publish(t.Context(), broker.Message{Type: "paid", Key: "one"}); err != nil {
			t.Fatal(err)
		}
	}
	begun := make(chan struct{}, 1)
	stop := consume(t, broker.Consumer{Handlers: 4, StopTimeout: time.Millisecond}, url, queue, func(ctx context.Context, _ broker.Message) error {
		begun <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	brokertest.Next(t, begun)
	stop()
	back := make(chan bool)
	consume(t, broker.Consumer{}, url, queue, func(context.Context, broker.Message) error { back <- true; return nil })
	for range 100 {
		brokertest.Next(t, back)
	}
}

// The broker closes the channel of a consumer that keeps a message for too long.
func TestAHandlerMayBeSlowerThanTheConsumerTimeout(t *testing.T) {
	t.Parallel()
	n := ownNode(t)
	queue := declare(t, n.url(), amqp.Table{"x-queue-type": "quorum"})
	if err := newPublisher(t, dialer(n.url()), "", queue).Publish(t.Context(), broker.Message{Type: "slow", Key: "one"}); err != nil {
		t.Fatal(err)
	}
	log := make(lines, 1000)
	handled := make(chan bool, 2)
	slow := sync.OnceFunc(func() { log.await(t, "timeout") })
	consume(t, broker.Consumer{Logger: log.logger()}, n.url(), queue, func(context.Context, broker.Message) error {
		slow()
		handled <- true
		return nil
	})
	brokertest.Next(t, handled)
	brokertest.Next(t, handled) // it came again
	log.await(t, "it will come again")
}

// lines are the lines of a logger.
type lines chan string

func (l lines) Write(p []byte) (int, error) { l <- string(p); return len(p), nil }

func (l lines) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// await waits until a line has that text.
func (l lines) await(t testing.TB, text string) {
	for !strings.Contains(brokertest.Next(t, l), text) {
	}
}

func TestAQueueThatWouldLoseMessagesIsConsumedWithAWarning(t *testing.T) {
	t.Parallel()
	url := sharedURL(t)
	queue, err := channelOf(t, url).QueueDeclare("idemrabbitmq/"+t.Name(), false, true, false, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	log := make(lines, 1000)
	consume(t, broker.Consumer{Logger: log.logger()}, url, queue.Name, func(context.Context, broker.Message) error { return nil })
	log.await(t, "is not durable")
}

func TestConsumingGoesOnAfterTheQueueWasDeletedAndMadeAgain(t *testing.T) {
	t.Parallel()
	url := sharedURL(t)
	queue := declare(t, url, nil)
	log := make(lines, 1000)
	got := make(chan broker.Message)
	consume(t, broker.Consumer{Logger: log.logger()}, url, queue, func(_ context.Context, m broker.Message) error { got <- m; return nil })
	p := newPublisher(t, dialer(url), "", queue)
	for n := range 2 {
		if n > 0 {
			ch := channelOf(t, url)
			if _, err := ch.QueueDelete(queue, false, false, false); err != nil {
				t.Fatal(err)
			}
			log.await(t, "there is no such queue: declare it")
			if _, err := ch.QueueDeclare(queue, true, false, false, false, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.Publish(t.Context(), broker.Message{Type: "paid"}); err != nil {
			t.Fatal(err)
		}
		brokertest.Next(t, got)
	}
}

func TestConsumeEndsWhileTheBrokerHangs(t *testing.T) {
	t.Parallel()
	n := ownNode(t)
	queue := declare(t, n.url(), nil)
	if err := newPublisher(t, dialer(n.url()), "", queue).Publish(t.Context(), broker.Message{Type: "paid"}); err != nil {
		t.Fatal(err)
	}
	handled := make(chan struct{})
	stop := consume(t, broker.Consumer{}, n.url(), queue, func(context.Context, broker.Message) error { close(handled); return nil })
	brokertest.Next(t, handled)
	resume := n.hang(t)
	defer resume()
	start := time.Now()
	stop()
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("Consume took %s to end", took)
	}
}

func TestCheckNamesWhatWouldLoseConfirmedMessages(t *testing.T) {
	t.Parallel()
	n := running(t, shared) // its users are ours
	queue := declare(t, n.url(), nil)
	ch := channelOf(t, n.url())
	p := newPublisher(t, dialer(n.url()), "", queue)
	wantCheck := func(p *idemrabbitmq.Publisher, want string) {
		t.Helper()
		err := p.Check(t.Context())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("Check returned %v, want %q", err, want)
		}
	}
	wantCheck(p, "")
	wantCheck(newPublisher(t, dialer(n.url()), "amq.direct", queue+"nowhere"), "") // as is documented
	user := strconv.FormatInt(time.Now().UnixNano(), 36)
	n.ctl(t, "add_user", user, "password")
	n.ctl(t, "set_permissions", user, "", ".*", ".*")
	wantCheck(newPublisher(t, dialer(strings.Replace(n.url(), "guest:guest", user+":password", 1)), "", queue), "let the user configure it")

	if _, err := ch.QueueDelete(queue, false, false, false); err != nil {
		t.Fatal(err)
	}
	wantCheck(p, "there is no such queue: declare it")
	if n, err := ch.QueueDeclarePassive(queue, true, false, false, false, nil); err == nil {
		t.Error("Check has made the queue ", n.Name)
	}
	ch = channelOf(t, n.url())
	if _, err := ch.QueueDeclare(queue, false, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	wantCheck(p, "is not durable") // on the connection that it has
	wantCheck(newPublisher(t, dialer(n.url()), "", queue), "is not durable")
}

func TestCheckEndsWithItsContextWhileTheBrokerHangs(t *testing.T) {
	t.Parallel()
	n := ownNode(t)
	p := newPublisher(t, dialer(n.url()), "", declare(t, n.url(), nil))
	if err := p.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	resume := n.hang(t)
	defer resume()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := p.Check(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Check returned %v, want its context's error", err)
	}
}
