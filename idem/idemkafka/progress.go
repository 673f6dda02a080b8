package idemkafka

import (
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kgo"
)

// progress holds the progress of a partition, from its first message that was polled.
type progress struct {
	revoked   atomic.Bool     // the partition may be another consumer's now
	open      map[int64]int32 // offsets of messages that are not done, and the epoch of their leader
	next      int64           // the offset after the last that was polled
	epoch     int32           // of the leader of that one
	committed int64
}

// newProgress returns the progress of a partition of which the message at offset is polled next.
func newProgress(offset int64) *progress {
	return &progress{open: make(map[int64]int32), committed: offset}
}

func (p *progress) begin(r *kgo.Record) {
	p.open[r.Offset] = r.LeaderEpoch
	p.next, p.epoch = r.Offset+1, r.LeaderEpoch
}

func (p *progress) done(r *kgo.Record) { delete(p.open, r.Offset) }

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
