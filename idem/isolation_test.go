package idem

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestOneAttemptRunsAloneOnceTheOthersHaveEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var i isolation
		if !i.enter(t.Context(), 3) || !i.reserve() {
			t.Fatal("nobody is there, and it does not begin")
		}
		if i.reserve() {
			t.Error("two may run alone at the same time")
		}
		alone, begun := make(chan bool, 1), make(chan bool, 1)
		go func() { got, _ := i.runAlone(t.Context(), time.Hour); alone <- got }()
		synctest.Wait()
		go func() { begun <- i.enter(t.Context(), 2) }()
		for range 2 {
			synctest.Wait()
			if len(alone) > 0 || len(begun) > 0 {
				t.Fatal("it runs alone beside others, or another begins meanwhile")
			}
			i.leave(1)
		}
		if !<-alone {
			t.Error("it does not run although it is alone")
		}
		synctest.Wait()
		if len(begun) > 0 {
			t.Error("another begins while it runs alone")
		}
		i.leave(1)
		i.unreserve()
		if !<-begun || !i.reserve() {
			t.Error("nobody begins after it")
		}
	})
}

func TestWaitForIsolationEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(context.Context, *isolation) bool{
		"to run alone, and another goes on": func(ctx context.Context, i *isolation) bool { got, _ := i.runAlone(ctx, time.Hour); return got },
		"to begin, and another runs alone": func(ctx context.Context, i *isolation) bool {
			i.leave(1)
			i.runAlone(ctx, time.Hour)
			return i.enter(ctx, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var i isolation
				i.enter(t.Context(), 2)
				i.reserve()
				ctx, cancel := context.WithCancel(t.Context())
				waited := make(chan bool, 1)
				go func() { waited <- wait(ctx, &i) }()
				synctest.Wait()
				if len(waited) > 0 {
					t.Fatal("it did not wait")
				}
				cancel()
				if <-waited {
					t.Error("it begins although it was canceled")
				}
				i.unreserve()
				if !i.enter(t.Context(), 1) {
					t.Error("nobody begins after it")
				}
			})
		})
	}
}
