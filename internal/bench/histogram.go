package main

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// histogram counts durations in buckets that are at most 1/64 wider than their
// lower end, for any number of goroutines. Its size does not depend on how many
// durations there are.
type histogram struct {
	counts [64 * 58]atomic.Int64
	total  atomic.Int64
	most   atomic.Int64
}

func (h *histogram) add(d time.Duration) {
	ns := max(int64(d), 0)
	h.counts[bucket(uint64(ns))].Add(1)
	h.total.Add(1)
	for most := h.most.Load(); ns > most && !h.most.CompareAndSwap(most, ns); most = h.most.Load() {
	}
}

// quantile is the duration that a share of all durations do not exceed; 0 when
// there are none.
func (h *histogram) quantile(share float64) time.Duration {
	rank := int64(share * float64(h.total.Load()))
	for b := range h.counts {
		if rank -= h.counts[b].Load(); rank < 0 {
			return min(time.Duration(ceiling(b)), h.max())
		}
	}
	return h.max()
}

func (h *histogram) max() time.Duration { return time.Duration(h.most.Load()) }

// bucket numbers the nanoseconds up to 127 one by one, and from there on divides
// each power of two into 64.
func bucket(ns uint64) int {
	shift := max(bits.Len64(ns)-7, 0)
	return shift<<6 + int(ns>>shift)
}

// ceiling is the last nanosecond of a bucket.
func ceiling(b int) uint64 {
	shift := max(b>>6-1, 0)
	return (uint64(b-shift<<6)+1)<<shift - 1
}
