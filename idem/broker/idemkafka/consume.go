package idemkafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/paghooks/paghooks/idem/broker"
)

// Consume passes the messages of the client's topics to handle until ctx ends, as
// [broker.Consumer.Consume] does. A message is done once handle has returned nil. At the
// end Consume commits the offsets of messages that are done, and the client leaves its group: close it, and
// consume with another one. Any number of calls, in any number of processes, may share a
// group, each with a client of its own.
//
// Messages of a partition with the same record key are handled in order.
//
// While a topic does not exist, Consume logs that every few seconds, and consumes the
// others. Once it does, Consume goes on. But one that is deleted and made again is another
// topic for the client, which does not read it: Consume logs that, until it is called
// again with a new client.
//
// It returns an error immediately if the client has no consumer group, lacks
// kgo.DisableAutoCommit or kgo.BlockRebalanceOnPoll, or begins at the end of a
// partition. Later it returns one if the client is closed, or if handlers did not return
// in time.
func Consume(ctx context.Context, client *kgo.Client, handle broker.Handle) error {
	return ConsumeWith(ctx, broker.Consumer{}, client, handle)
}

// ConsumeWith is [Consume] with settings. ExtendEvery does not apply: Kafka has no
// timeout for a message.
func ConsumeWith(ctx context.Context, settings broker.Consumer, client *kgo.Client, handle broker.Handle) error {
	if err := checkClient(client); err != nil {
		return err
	}
	settings = settings.WithDefaults()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g := newGroup(ctx, client, settings.Logger, handle)
	polled := make(chan struct{})
	var failed error
	go func() {
		defer close(polled)
		if failed = broker.Protect(g.poll); failed != nil { // the client has hooks of the application's
			cancel(failed)
		}
	}()
	err := settings.Consume(ctx, g.receive, handle)
	cancel(nil)
	<-polled
	switch {
	case errors.Is(failed, kgo.ErrClientClosed):
		return errors.Join(err, fmt.Errorf("idemkafka: close the client after Consume has returned: %w", failed))
	case failed != nil:
		err = errors.Join(err, fmt.Errorf("idemkafka: consuming: %w", failed))
	}
	g.leave()
	return err
}

// checkClient refuses a client that would lose messages.
func checkClient(client *kgo.Client) error {
	switch {
	case client.OptValue(kgo.ConsumerGroup) == "":
		return errors.New("idemkafka: the client has no consumer group: give kgo.NewClient kgo.ConsumerGroup and kgo.ConsumeTopics")
	case client.OptValue(kgo.DisableAutoCommit) != true:
		return errors.New("idemkafka: the client commits offsets of messages that are not done: give kgo.NewClient kgo.DisableAutoCommit")
	case client.OptValue(kgo.BlockRebalanceOnPoll) != true:
		return errors.New("idemkafka: the client gives partitions away whose messages are being handled: give kgo.NewClient kgo.BlockRebalanceOnPoll")
	case isEnd(client.OptValue(kgo.ConsumeStartOffset)), isEnd(client.OptValue(kgo.ConsumeResetOffset)):
		return errors.New("idemkafka: the client passes over messages that were confirmed before the group has read a partition, or whose offset the brokers have forgotten: leave Offset.AtEnd out of kgo.ConsumeStartOffset and kgo.ConsumeResetOffset")
	}
	return nil
}

// isEnd reports whether an option has the client begin at the end of a partition.
func isEnd(option any) bool {
	offset, ok := option.(kgo.Offset)
	return ok && offset == kgo.NewOffset().AtEnd()
}

// group is one call of Consume. One goroutine polls, commits and lets the group
// rebalance; many handle.
type group struct {
	ctx        context.Context // ends when no more is to be begun
	client     *kgo.Client
	logger     *slog.Logger
	handle     broker.Handle
	turn       *turn
	deliveries chan delivery

	mu         sync.Mutex
	partitions map[partition]*progress // of those with polled messages
}

type partition struct {
	topic  string
	number int32
}

type delivery struct {
	broker.Delivery
	err error // instead of one
}

func newGroup(ctx context.Context, client *kgo.Client, logger *slog.Logger, handle broker.Handle) *group {
	return &group{
		ctx: ctx, client: client, logger: logger, handle: handle, turn: newTurn(),
		deliveries: make(chan delivery), partitions: make(map[partition]*progress),
	}
}

// receive returns the next delivery for the [broker.Consumer].
func (g *group) receive(ctx context.Context) (broker.Delivery, error) {
	select {
	case d := <-g.deliveries:
		return d.Delivery, d.err
	case <-ctx.Done():
		return broker.Delivery{}, ctx.Err()
	}
}

const (
	// polledAtOnce is the number of messages that are polled at once, and wait here. The client
	// has more, and fetches no more when it has enough.
	polledAtOnce = 64

	// rebalanceEvery is the interval at which a group may rebalance, and offsets are committed. No
	// handler runs meanwhile, so that none has a message of a partition that is revoked.
	// If handlers are slow it is less often, so that they wait a tenth of the time.
	rebalanceEvery         = time.Second
	rebalanceEveryWhenSlow = 5 * time.Second

	// lookEvery is the interval at which missing topics are looked for.
	lookEvery = 5 * time.Second
)

// poll hands over the messages that it polls, and lets the group rebalance now and then.
func (g *group) poll() error {
	timeout, _ := g.client.OptValue(kgo.RebalanceTimeout).(time.Duration)
	var waiting []delivery
	var looked time.Time
	absent := g.client.GetConsumeTopics() // or not looked for yet
	for every := rebalanceEvery; g.ctx.Err() == nil; {
		ctx, cancel := context.WithTimeout(g.ctx, every)
		if len(absent) > 0 && time.Since(looked) >= lookEvery {
			absent, looked = g.look(ctx, absent), time.Now()
		}
		for ctx.Err() == nil {
			if len(waiting) > 0 {
				select {
				case g.deliveries <- waiting[0]:
					waiting = waiting[1:]
				case <-ctx.Done():
				}
				continue
			}
			fetches := g.client.PollRecords(ctx, polledAtOnce)
			if fetches.IsClientClosed() {
				cancel()
				return kgo.ErrClientClosed
			}
			waiting = g.note(fetches)
		}
		cancel()
		start := time.Now()
		g.rebalance(timeout / 2)
		every = min(max(rebalanceEvery, 9*time.Since(start)), rebalanceEveryWhenSlow)
	}
	return nil
}

// look returns those of the topics that do not exist, which it logs, or all of them if the
// brokers do not tell. The client says nothing of them, and waits until they exist.
func (g *group) look(ctx context.Context, topics []string) (absent []string) {
	described, err := describe(ctx, g.client, topics...)
	if err != nil {
		return topics
	}
	for _, t := range described {
		if err := kerr.ErrorForCode(t.ErrorCode); t.Topic != nil && isAbsent(err) {
			g.warn("messages cannot be received, which is tried again", fmt.Errorf("topic %q: %w", *t.Topic, explain(err, 0)))
			absent = append(absent, *t.Topic)
		}
	}
	return absent
}

// note makes deliveries of the polled records.
func (g *group) note(fetches kgo.Fetches) (deliveries []delivery) {
	fetches.EachError(func(topic string, number int32, err error) {
		if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
			if errors.Is(err, kerr.UnknownTopicID) {
				err = fmt.Errorf("the topic was deleted, and one that was made since is another one for the client: call Consume again with a new client: %w", err)
			}
			deliveries = append(deliveries, delivery{err: fmt.Errorf("idemkafka: partition %d of topic %q: %w", number, topic, err)})
		}
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	fetches.EachRecord(func(r *kgo.Record) {
		of := partition{r.Topic, r.Partition}
		p := g.partitions[of]
		if p != nil && r.Offset < p.next { // the partition was revoked, and assigned again
			p.revoked.Store(true)
			p = nil
		}
		if p == nil {
			p = &progress{open: make(map[int64]int32)}
			g.partitions[of] = p
		}
		p.open[r.Offset] = r.LeaderEpoch
		p.next, p.epoch = r.Offset+1, r.LeaderEpoch
		deliveries = append(deliveries, delivery{Delivery: g.delivery(p, r)})
	})
	return deliveries
}

func (g *group) delivery(p *progress, r *kgo.Record) broker.Delivery {
	d := broker.Delivery{
		Message: message(r),
		Handle: func(ctx context.Context, m broker.Message) error {
			return g.turn.handle(ctx, func(ctx context.Context) error {
				if p.revoked.Load() {
					return nil
				}
				err := g.ctx.Err()
				if err == nil {
					err = g.handle(ctx, m)
				}
				if err == nil { // here, so that a rebalance does not come between
					g.done(p, r)
				}
				return err
			})
		},
	}
	if len(r.Key) > 0 {
		d.Lane = fmt.Sprintf("%s/%d/%s", r.Topic, r.Partition, r.Key)
	}
	return d
}

func (g *group) done(p *progress, r *kgo.Record) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(p.open, r.Offset)
}
