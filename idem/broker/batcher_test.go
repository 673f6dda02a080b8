package broker_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/broker"
)

var errOdd = errors.New("odd")

func TestWhatComesWhileBatchesAreBeingSentSharesTheNext(t *testing.T) {
	t.Parallel()
	size := func(n int) func(int) int { return func(int) int { return n } }
	for name, c := range map[string]struct {
		settings *broker.Batcher[int]
		items    int
		want     []int // the sizes of the batches
	}{
		"alone":                           {&broker.Batcher[int]{Requests: 2, MaxItems: 10}, 1, []int{1}},
		"ten in a batch":                  {&broker.Batcher[int]{Requests: 2, MaxItems: 10}, 27, []int{1, 1, 10, 10, 5}},
		"no larger than a batch":          {&broker.Batcher[int]{MaxItems: 10, MaxSize: 100, Size: size(40)}, 6, []int{1, 2, 2, 1}},
		"exactly as large as a batch":     {&broker.Batcher[int]{MaxItems: 10, MaxSize: 100, Size: size(50)}, 5, []int{1, 2, 2}},
		"a large one goes by itself":      {&broker.Batcher[int]{MaxItems: 10, MaxSize: 100, Size: size(101)}, 3, []int{1, 1, 1}},
		"without settings, one at a time": {&broker.Batcher[int]{}, 3, []int{1, 1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var batches [][]int
				sending, most := 0, 0
				release := make(chan struct{})
				b := c.settings
				b.Send = func(batch []int) []error {
					batches = append(batches, batch)
					sending++
					most = max(most, sending)
					<-release
					sending--
					errs := make([]error, len(batch))
					for i, n := range batch {
						if n%2 == 1 {
							errs[i] = errOdd
						}
					}
					return errs
				}
				var all sync.WaitGroup
				do := func(n int) {
					all.Go(func() {
						if err := b.Do(t.Context(), n); (err != nil) != (n%2 == 1) {
							t.Errorf("the error of %d is %v: that of another value", n, err)
						}
					})
					synctest.Wait() // so that they come in order
				}
				var order []int
				for n := range c.items {
					order = append(order, n)
					do(n)
				}
				for range c.want {
					release <- struct{}{}
					synctest.Wait()
				}
				var sizes []int
				for _, batch := range batches {
					sizes = append(sizes, len(batch))
				}
				if diff := cmp.Diff(c.want, sizes); diff != "" {
					t.Error("sizes of the batches (-want +got):\n" + diff)
				}
				if diff := cmp.Diff(order, slices.Concat(batches...)); diff != "" {
					t.Error("order of the values (-want +got):\n" + diff)
				}
				if want := max(1, b.Requests); most > want {
					t.Errorf("%d batches were sent at once, want %d at most", most, want)
				}
				do(0) // after a rest it goes immediately
				if sending != 1 {
					t.Errorf("after a rest %d batches are being sent, want 1", sending)
				}
				release <- struct{}{}
				all.Wait()
			})
		})
	}
}

func TestValueThatNoCallerWaitsForIsNotSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var sent []int
		b := broker.Batcher[int]{MaxItems: 10, Send: func(batch []int) []error {
			sent = append(sent, batch...)
			<-release
			return make([]error, len(batch))
		}}
		for n := range 3 { // the first is being sent, which does not end
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := b.Do(ctx, n); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("sending %d ended with %v", n, err)
			}
			cancel()
		}
		stays := make(chan error, 1)
		go func() { stays <- b.Do(t.Context(), 3) }()
		synctest.Wait()
		release <- struct{}{}
		release <- struct{}{}
		if err := <-stays; err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]int{0, 3}, sent); diff != "" {
			t.Error("values that were sent (-want +got):\n" + diff)
		}
	})
}

func TestSendThatPanicsOrForgetsAValueFailsEach(t *testing.T) {
	t.Parallel()
	for want, send := range map[string]func([]int) []error{
		"panic: no client":                 func([]int) []error { panic("no client") },
		"returned 0 errors for 1 values":   func([]int) []error { return nil },
		"returned 2 errors for 1 values: ": func([]int) []error { return make([]error, 2) },
	} {
		b := broker.Batcher[int]{Send: send}
		for range 2 { // it goes on
			if err := b.Do(t.Context(), 1); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v, want %q", err, want)
			}
		}
	}
}

func TestApplicationCodeThatPanicsIsAnError(t *testing.T) {
	t.Parallel()
	if err := broker.Protect(func() error { panic("oops") }); err == nil || !strings.Contains(err.Error(), "panic: oops\n") {
		t.Errorf("the error is %v", err)
	}
	if err := broker.Protect(func() error { return errOdd }); !errors.Is(err, errOdd) {
		t.Errorf("the error is %v, want %v", err, errOdd)
	}
}
