package batch

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// recorder is a write function that waits to be released, and notes its groups.
type recorder struct {
	groups  [][]int
	writing int // groups at the same time
	release chan struct{}
}

func (r *recorder) write(group []int) []int {
	r.writing++
	r.groups = append(r.groups, group)
	<-r.release
	r.writing--
	results := make([]int, len(group))
	for i, value := range group {
		results[i] = -value
	}
	return results
}

func TestItemsThatArriveDuringAWriteGoTogetherInTheNext(t *testing.T) {
	t.Parallel()
	sizeOne := func(int) int { return 1 }
	for name, c := range map[string]struct {
		size     func(int) int
		arriving int
		want     []int // the sizes of the groups behind the first
	}{
		"none":                      {sizeOne, 0, nil},
		"all in one":                {sizeOne, 40, []int{40}},
		"no more than 256":          {sizeOne, 600, []int{256, 256, 88}},
		"no more than 4 MiB":        {func(int) int { return 3 << 19 }, 5, []int{2, 2, 1}},
		"exactly 4 MiB":             {func(int) int { return 2 << 20 }, 4, []int{2, 2}},
		"a larger item goes alone":  {func(int) int { return 5 << 20 }, 2, []int{1, 1}},
		"an item of no size counts": {func(int) int { return 0 }, 257, []int{256, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := &recorder{release: make(chan struct{})}
				w := NewWriter(r.write, c.size)
				results := make(chan bool, c.arriving+1)
				var order []int
				for n := range c.arriving + 1 {
					order = append(order, n)
					go func() {
						result, ok := w.Write(t.Context(), n)
						results <- ok && result == -n
					}()
					synctest.Wait() // so that they arrive in order
				}
				if got := w.Waiting(); got != c.arriving {
					t.Errorf("%d items wait, want %d", got, c.arriving)
				}
				for range len(c.want) + 1 {
					if r.writing != 1 {
						t.Errorf("%d groups are written at the same time, want 1", r.writing)
					}
					r.release <- struct{}{}
					synctest.Wait()
				}
				for range c.arriving + 1 {
					if !<-results {
						t.Fatal("an item got another one's result, or none")
					}
				}
				var sizes []int
				for _, g := range r.groups[1:] {
					sizes = append(sizes, len(g))
				}
				if diff := cmp.Diff(c.want, sizes); diff != "" {
					t.Error("sizes of the groups (-want +got):\n" + diff)
				}
				if diff := cmp.Diff(order, slices.Concat(r.groups...)); diff != "" {
					t.Error("order of the items (-want +got):\n" + diff)
				}
			})
		})
	}
}

// Postgres hangs: deliveries end, and others come. Those that have left are not
// kept, and are not written.
func TestItemThatNobodyWaitsForIsForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{release: make(chan struct{})}
		w := NewWriter(r.write, func(int) int { return 1 })
		write := func(n int, patience time.Duration) chan bool {
			done := make(chan bool, 1)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				_, ok := w.Write(ctx, n)
				done <- ok
			}()
			synctest.Wait()
			return done
		}
		first := write(0, time.Second)
		var left []chan bool
		for n := range 1000 {
			left = append(left, write(n+1, time.Second))
		}
		stays := write(7777, time.Hour)
		if <-first {
			t.Error("the item that is being written has a result")
		}
		for _, done := range left {
			if <-done {
				t.Error("an item that was not written has a result")
			}
		}
		if n := w.Waiting(); n != 1 {
			t.Errorf("%d items wait, want 1: the others have left", n)
		}
		r.release <- struct{}{}
		r.release <- struct{}{}
		if !<-stays {
			t.Error("the item that waited has no result")
		}
		if diff := cmp.Diff([][]int{{0}, {7777}}, r.groups); diff != "" {
			t.Error("groups (-want +got):\n" + diff)
		}
	})
}

func TestWriterThatHasRestedWritesAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{release: make(chan struct{}, 2)}
		w := NewWriter(r.write, func(int) int { return 1 })
		for n := range 2 {
			r.release <- struct{}{}
			if result, ok := w.Write(t.Context(), n); !ok || result != -n {
				t.Errorf("Write(%d) = %d, %t", n, result, ok)
			}
		}
	})
}
