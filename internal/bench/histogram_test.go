package main

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestQuantilesAreWithinTwoPercent(t *testing.T) {
	t.Parallel()
	var h histogram
	for _, n := range rand.Perm(100_000) {
		h.add(time.Duration(n+1) * time.Microsecond)
	}
	for _, q := range []struct {
		share float64
		want  time.Duration
	}{{0, time.Microsecond}, {0.5, 50 * time.Millisecond}, {0.99, 99 * time.Millisecond}, {0.999, 99900 * time.Microsecond}, {1, 100 * time.Millisecond}} {
		if got := h.quantile(q.share); math.Abs(float64(got-q.want)) > 0.02*float64(q.want) {
			t.Errorf("the quantile %g is %s, want %s", q.share, got, q.want)
		}
	}
	if got := h.max(); got != 100*time.Millisecond {
		t.Errorf("the maximum is %s", got)
	}
}

func TestNoDurationIsTheSlowestOfNone(t *testing.T) {
	t.Parallel()
	var h histogram
	if h.quantile(0.5) != 0 || h.max() != 0 {
		t.Errorf("without durations: %s, %s", h.quantile(0.5), h.max())
	}
	h.add(-time.Second) // a clock was set back
	h.add(math.MaxInt64)
	if h.quantile(0) != 0 || h.max() != math.MaxInt64 {
		t.Errorf("got %d and %d", h.quantile(0), h.max())
	}
}

func TestBucketsHoldWhatIsPutIntoThem(t *testing.T) {
	t.Parallel()
	before := -1
	for shift := range 63 {
		for _, ns := range []uint64{1 << shift, 1<<shift + 1<<shift/3, 2<<shift - 1} {
			b := bucket(ns)
			if top := ceiling(b); b < before || top < ns || float64(top) > 1.02*float64(ns) || bucket(top) != b {
				t.Fatalf("%d is in bucket %d, which ends at %d and comes after %d", ns, b, top, before)
			}
			before = b
		}
	}
}
