package idemnats

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// groupTime is the time that a group may take. Publish ends earlier if its context does.
const groupTime = 5 * time.Second

// The largest group.
const (
	maxGroup     = 256
	maxGroupSize = 4 << 20
)

// smallestBatch is the number of messages from which a batch is worth it: the server syncs four files
// or five for each.
const smallestBatch = 5

// Headers of an atomic batch.
const (
	batchID       = "Nats-Batch-Id"
	batchSequence = "Nats-Batch-Sequence"
	batchCommit   = "Nats-Batch-Commit"
)

// publishGroup publishes messages as one atomic batch, which the server syncs to the
// disk once. A batch that it does not take, because it has one of the messages
// already say, is published one by one.
func (p *Publisher) publishGroup(messages []*nats.Msg) []error {
	ctx, cancel := context.WithTimeout(context.Background(), groupTime)
	defer cancel()
	results := make([]error, len(messages))
	if len(messages) >= smallestBatch {
		err := p.publishBatch(ctx, messages)
		if err == nil {
			return results
		}
		if ctx.Err() != nil || errors.Is(err, nats.ErrTimeout) { // another try would take as long
			for n := range results {
				results[n] = err
			}
			return results
		}
	}
	var published sync.WaitGroup
	for n, m := range messages {
		published.Go(func() { results[n] = p.publishOne(ctx, m) })
	}
	published.Wait()
	return results
}

func (p *Publisher) publishOne(ctx context.Context, m *nats.Msg) error {
	_, err := p.js.PublishMsg(ctx, m, jetstream.WithExpectStream(p.stream))
	return err
}

// publishBatch publishes all messages or none. The messages stay as they are.
func (p *Publisher) publishBatch(ctx context.Context, messages []*nats.Msg) error {
	id := nuid.Next()
	for n, m := range messages {
		part := &nats.Msg{Subject: m.Subject, Data: m.Data, Header: nats.Header{
			batchID: {id}, batchSequence: {strconv.Itoa(n + 1)}, jetstream.ExpectedStreamHeader: {p.stream},
		}}
		maps.Copy(part.Header, m.Header)
		if n < len(messages)-1 {
			if err := p.js.Conn().PublishMsg(part); err != nil {
				return err
			}
			continue
		}
		part.Header[batchCommit] = []string{"1"}
		if err := p.publishOne(ctx, part); err != nil {
			return err
		}
	}
	return nil
}
