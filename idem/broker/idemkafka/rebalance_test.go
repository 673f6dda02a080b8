package idemkafka_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

func TestARebalanceWaitsForHandlersAndDoublesNothing(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		reason string
		opts   []kgo.Opt
	}{
		{"only some partitions move", []kgo.Opt{kgo.Balancers(kgo.CooperativeStickyBalancer())}},
		{"all partitions are taken away first", []kgo.Opt{kgo.Balancers(kgo.RangeBalancer())}},
		{"the brokers assign", []kgo.Opt{kgo.ServerSideBalancer()}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			t.Parallel()
			f := startFake(t)
			var mu sync.Mutex
			running := map[string]bool{}
			alone := func(id string, begin bool) {
				mu.Lock()
				defer mu.Unlock()
				if begin && running[id] {
					t.Errorf("%s is handled twice at once", id)
				}
				running[id] = begin
			}
			blocked := make(chan struct{})
			handle := func(ctx context.Context, m broker.Message) error {
				alone(m.ID, true)
				defer alone(m.ID, false)
				if m.Key < "order-2" { // some wait, in all partitions
					<-blocked
				}
				return nil
			}

			ids := f.publishEach(t, 0, 40)
			waits := make(chan struct{}, 100)
			opts := append(test.opts, kgo.SessionTimeout(time.Minute)) // also where heartbeats come late, no member is given up
			signal := kgo.OnPartitionsCallbackBlocked(func(context.Context, *kgo.Client) { waits <- struct{}{} })
			first := f.consume(t, handle, append(opts, signal)...)
			first.await("handlers to be blocked", func() bool { return len(first.times(&first.begun)) == 40 })
			second := f.consume(t, handle, opts...)
			brokertest.Next(t, waits)
			f.awaitHeartbeats(t, 20) // four seconds, in which the group would rebalance if it could
			close(blocked)
			first.awaitDone(ids...)
			for n := 40; len(second.times(&second.done)) == 0; n += 4 { // until the second has partitions
				more := f.publishEach(t, n, 4)
				ids = append(ids, more...)
				first.await(fmt.Sprint(more, " to be done"), func() bool {
					done, others := first.times(&first.done), second.times(&second.done)
					for _, id := range more {
						if done[id]+others[id] == 0 {
							return false
						}
					}
					return true
				})
			}
			first.stop()
			more := f.publishEach(t, len(ids), 8)
			second.awaitDone(more...)
			done, others := first.times(&first.done), second.times(&second.done)
			for _, id := range append(ids, more...) {
				if done[id]+others[id] != 1 {
					t.Errorf("%s was handled %d times by the first, %d times by the second, want once", id, done[id], others[id])
				}
			}
		})
	}
}

func TestNoHandlerRunsDuringARebalance(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	var rebalancing atomic.Bool
	var rebalances, running atomic.Int64
	work := func(context.Context, broker.Message) error {
		running.Add(1)
		defer running.Add(-1)
		if rebalancing.Load() {
			t.Error("a handler was called during a rebalance")
		}
		<-time.After(5 * time.Millisecond) // the time that the handler needs
		return nil
	}
	revoked := kgo.OnPartitionsRevoked(func(context.Context, *kgo.Client, map[string][]int32) {
		rebalancing.Store(true)
		defer rebalancing.Store(false)
		rebalances.Add(1)
		if n := running.Load(); n > 0 {
			t.Errorf("%d handlers run during a rebalance", n)
		}
		<-time.After(200 * time.Millisecond) // the time that the rebalance needs
	})
	eager := kgo.Balancers(kgo.RangeBalancer())
	f.publishEach(t, 0, 20)
	first := f.consume(t, work, eager, revoked)
	first.await("the first to have the partitions", func() bool { return len(first.times(&first.done)) > 0 })
	second := f.consume(t, func(context.Context, broker.Message) error { return nil }, eager)
	producer := newClient(t, kgo.SeedBrokers(f.addresses...))
	done := func() int { return len(first.times(&first.done)) + len(second.times(&second.done)) }
	for n := 0; rebalances.Load() == 0 || len(second.times(&second.done)) == 0; n += 500 { // so that there is always something to do
		records := make([]*kgo.Record, 500)
		for i := range records {
			id := strconv.Itoa(n + i)
			records[i] = &kgo.Record{Topic: f.topic, Key: []byte(id), Headers: []kgo.RecordHeader{{Key: "ce_id", Value: []byte(id)}}}
		}
		if err := producer.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		first.await("most to be done", func() bool { return done() > n-500 })
	}
}

// awaitHeartbeats waits until the group's members have sent so many more heartbeats.
func (f *fake) awaitHeartbeats(t *testing.T, count int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	seen := f.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat, kmsg.ConsumerGroupHeartbeat}, Observe: true, Count: -1})
	defer seen.Remove()
	if err := seen.Wait(ctx, count); err != nil {
		t.Fatalf("%d of %d heartbeats: %v", seen.Hits(), count, err)
	}
}

// The brokers lose a member with a handler that takes too long: its messages are another's, or
// come again.
func TestMessagesOfALostPartitionAreDroppedAndComeAgain(t *testing.T) {
	t.Parallel()
	f := startFakeWith(t, 1)
	p := f.publisher(t)
	for n := range 4 { // of one Key
		publish(t, p, broker.Message{Source: "shop", ID: fmt.Sprint("m", n), Type: "paid", Key: "order"})
	}
	var once sync.Once
	slow := make(chan struct{})
	ended := make(chan error, 1)
	c := f.consume(t, func(ctx context.Context, m broker.Message) (err error) {
		if m.ID == "m1" {
			once.Do(func() {
				close(slow)
				<-ctx.Done()
				err = context.Cause(ctx)
				ended <- err
			})
		}
		return err
	}, kgo.RebalanceTimeout(4*time.Second))
	<-slow
	fault := f.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Heartbeat}, Group: f.topic, TopLevel: true, Err: kerr.UnknownMemberID})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := fault.Wait(ctx, 1); err != nil {
		t.Fatal(err)
	}
	wantError(t, <-ended, "RebalanceTimeout")
	c.awaitDone("m0", "m1", "m2", "m3")
	f.awaitCommit(t, 4)
	for id, want := range map[string]int{"m0": 1, "m1": 2, "m2": 1, "m3": 1} {
		if got := c.times(&c.begun)[id]; got != want {
			t.Errorf("%s was begun %d times, want %d: what is left of the lost partition is dropped", id, got, want)
		}
	}
}

func TestACommitThatFailsIsMadeAgain(t *testing.T) {
	t.Parallel()
	f := startFakeWith(t, 1)
	fault := f.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.OffsetCommit}, Topic: f.topic, Err: kerr.OffsetMetadataTooLarge, Count: 2})
	ids := f.publishEach(t, 0, 3)
	c := f.consume(t, func(context.Context, broker.Message) error { return nil })
	c.awaitDone(ids...)
	f.awaitCommit(t, 3)
	if fault.Hits() != 2 {
		t.Errorf("the fault has hit %d times, want 2", fault.Hits())
	}
}

// While the brokers are unavailable for a moment, handlers go on, and nothing comes twice.
func TestHandlersAreTriedAgainBetweenRebalances(t *testing.T) {
	t.Parallel()
	f := startFakeWith(t, 1)
	ids := f.publishEach(t, 0, 200) // more than have room
	var mu sync.Mutex
	failures := map[string]int{}
	c := f.consume(t, func(_ context.Context, m broker.Message) error {
		mu.Lock()
		defer mu.Unlock()
		if failures[m.ID]++; failures[m.ID] < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	c.awaitDone(ids...)
	f.awaitCommit(t, 200)
	for id, times := range c.times(&c.begun) {
		if times != 3 {
			t.Errorf("%s was begun %d times, want 3", id, times)
		}
	}
}

func TestATopicThatDoesNotExistIsNamedAndConsumedOnceItDoes(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	logged, got := make(chan string, 1000), make(chan string, 2)
	logger := slog.New(slog.NewTextHandler(writerFunc(func(line string) { logged <- line }), nil))
	client := newClient(t, append(consuming(f.topic, f.addresses...), kgo.ConsumeTopics(f.topic, "later"), kgo.MetadataMinAge(100*time.Millisecond))...)
	brokertest.Background(t, func(ctx context.Context) error {
		return idemkafka.ConsumeWith(ctx, broker.Consumer{Logger: logger}, client, func(_ context.Context, m broker.Message) error { got <- m.ID; return nil })
	})
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
}

func TestATopicThatIsDeletedAndMadeAgainNeedsANewClient(t *testing.T) {
	t.Parallel()
	f := startFake(t)
	logged, got := make(chan string, 1000), make(chan string, 2)
	logger := slog.New(slog.NewTextHandler(writerFunc(func(line string) { logged <- line }), nil))
	consume := func() (stop func()) {
		client := newClient(t, consuming(f.topic, f.addresses...)...)
		return brokertest.Background(t, func(ctx context.Context) error {
			return idemkafka.ConsumeWith(ctx, broker.Consumer{Logger: logger}, client, func(_ context.Context, m broker.Message) error { got <- m.ID; return nil })
		})
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
	consume()
	if id := brokertest.Next(t, got); id != "after" {
		t.Errorf("message %s was handled, want the one of the new topic", id)
	}
}

// writerFunc is a function that gets each written text.
type writerFunc func(text string)

func (f writerFunc) Write(p []byte) (int, error) { f(string(p)); return len(p), nil }
