package idemkafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	offsets := g.uncommitted()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(g.ctx), brokerTime)
	defer cancel()
	g.client.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
		if err == nil {
			err = g.committed(offsets, response)
		}
		if err != nil {
			g.warn("offsets could not be committed, and messages that are done may come again", err)
		}
	})
}

// uncommitted returns the offsets that partitions have reached since the last commit.
func (g *group) uncommitted() map[string]map[int32]kgo.EpochOffset {
	offsets := make(map[string]map[int32]kgo.EpochOffset)
	g.mu.Lock()
	defer g.mu.Unlock()
	for of, p := range g.partitions {
		offset := p.offset()
		if offset.Offset == p.committed {
			continue
		}
		if offsets[of.topic] == nil {
			offsets[of.topic] = make(map[int32]kgo.EpochOffset)
		}
		offsets[of.topic][of.number] = offset
	}
	return offsets
}

// committed remembers which offsets the brokers have taken.
func (g *group) committed(offsets map[string]map[int32]kgo.EpochOffset, response *kmsg.OffsetCommitResponse) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var errs []error
	for _, t := range response.Topics {
		for _, p := range t.Partitions {
			if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
				errs = append(errs, fmt.Errorf("partition %d of topic %q: %w", p.Partition, t.Topic, err))
			} else if progress := g.partitions[partition{t.Topic, p.Partition}]; progress != nil {
				progress.committed = offsets[t.Topic][p.Partition].Offset
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
