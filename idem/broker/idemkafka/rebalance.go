package idemkafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/paghooks/paghooks/idem/broker"
)

// brokerTime is the time in which the brokers must answer.
const brokerTime = 5 * time.Second

// rebalance commits, and lets the group rebalance if it wants to, while no handler
// runs. Handlers have limit to return.
func (g *group) rebalance(limit time.Duration) {
	resume, paused := g.turn.pause(g.ctx, limit)
	defer resume()
	if !paused {
		return
	}
	g.commit()
	g.client.AllowRebalance()
	ended, cancel := context.WithCancel(g.ctx)
	cancel()
	g.client.PollRecords(ended, 1) // waits for the end of a rebalance that has begun, and has the next one wait
	g.forget()
}

// forget has no message handled of partitions that were revoked.
func (g *group) forget() {
	kept := g.client.CommittedOffsets()
	g.mu.Lock()
	defer g.mu.Unlock()
	for of, p := range g.partitions {
		if _, ok := kept[of.topic][of.number]; !ok {
			p.revoked.Store(true)
			delete(g.partitions, of)
		}
	}
}

// commit tells the brokers which messages are done. They deliver all others again.
func (g *group) commit() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(g.ctx), brokerTime)
	defer cancel()
	offsets := g.uncommitted(g.client.CommittedOffsets())
	g.client.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
		if err == nil {
			err = refusals(response)
		}
		if err != nil {
			g.warn("offsets could not be committed, and messages that are done may come again", err)
		}
	})
}

// uncommitted returns the offsets that partitions have reached beyond those that are committed.
func (g *group) uncommitted(committed map[string]map[int32]kgo.EpochOffset) map[string]map[int32]kgo.EpochOffset {
	offsets := make(map[string]map[int32]kgo.EpochOffset)
	g.mu.Lock()
	defer g.mu.Unlock()
	for of, p := range g.partitions {
		offset := p.offset()
		if known, ok := committed[of.topic][of.number]; ok && known.Offset == offset.Offset {
			continue
		}
		if offsets[of.topic] == nil {
			offsets[of.topic] = make(map[int32]kgo.EpochOffset)
		}
		offsets[of.topic][of.number] = offset
	}
	return offsets
}

// refusals are the errors of the partitions of which the brokers have not taken the offset.
func refusals(response *kmsg.OffsetCommitResponse) error {
	var errs []error
	for _, t := range response.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				errs = append(errs, fmt.Errorf("partition %d of topic %q: %w", p.Partition, t.Topic, err))
			}
		}
	}
	return errors.Join(errs...)
}

// leave commits for the last time, and leaves the group.
func (g *group) leave() {
	g.commit()
	g.client.AllowRebalance()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(g.ctx), brokerTime)
	defer cancel()
	if err := g.client.LeaveGroupContext(ctx); err != nil {
		g.warn("the brokers were not told that the consumer has left its group, and others get its partitions later", err)
	}
}

func (g *group) warn(message string, err error) {
	_ = broker.Protect(func() error {
		g.logger.LogAttrs(g.ctx, slog.LevelWarn, "idemkafka: "+message, slog.String("error", err.Error()))
		return nil
	})
}

// turn holds the turn: of the handlers, of which many run at the same time, or that of
// a rebalance, which runs alone.
type turn struct {
	mu     sync.RWMutex    // the handlers read
	ctx    context.Context // of the handlers since the last rebalance
	cancel context.CancelCauseFunc
}

func newTurn() *turn {
	t := &turn{}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	return t
}

var errGivenUp = errors.New("the handler has taken so long that the group could not rebalance: raise kgo.RebalanceTimeout")

// handle calls f between rebalances.
func (t *turn) handle(ctx context.Context, f func(context.Context) error) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.ctx, func() { cancel(errGivenUp) })()
	err := f(ctx)
	if err != nil && t.ctx.Err() != nil {
		err = errors.Join(err, errGivenUp)
	}
	return err
}

// pause waits until no handler runs, and cancels those that run after limit. No other
// is called until resume is called. If ctx ends before, it returns false.
func (t *turn) pause(ctx context.Context, limit time.Duration) (resume func(), paused bool) {
	cancel := t.cancel
	late := time.AfterFunc(limit, func() { cancel(errGivenUp) })
	defer late.Stop()
	locked, resumed := make(chan struct{}), make(chan struct{})
	go func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		cancel(nil)
		t.ctx, t.cancel = context.WithCancelCause(context.Background())
		close(locked)
		<-resumed
	}()
	select {
	case <-locked:
		return func() { close(resumed) }, true
	case <-ctx.Done():
		return func() { close(resumed) }, false
	}
}

// progress holds the progress of a partition, from its first message that was polled.
type progress struct {
	revoked atomic.Bool     // the partition may be another consumer's now
	open    map[int64]int32 // offsets of messages that are not done, and the epoch of their leader
	next    int64           // the offset after the last that was polled
	epoch   int32           // of the leader of that one
}

// offset is that of the first message that is not done.
func (p *progress) offset() kgo.EpochOffset {
	first := kgo.EpochOffset{Epoch: p.epoch, Offset: p.next}
	for offset, epoch := range p.open {
		if offset < first.Offset {
			first = kgo.EpochOffset{Epoch: epoch, Offset: offset}
		}
	}
	return first
}
