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
		var i solo
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
	for name, wait := range map[string]func(context.Context, *solo) bool{
		"to run alone, and another goes on": func(ctx context.Context, i *solo) bool { got, _ := i.runAlone(ctx, time.Hour); return got },
		"to begin, and another runs alone": func(ctx context.Context, i *solo) bool {
			i.leave(1)
			i.runAlone(ctx, time.Hour)
			return i.enter(ctx, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var i solo
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

// Others wait while one runs alone, and not for long.
func TestOthersBeginAgainWhileOneRunsAloneForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var i solo
		for range 2 { // the end of the first one's time is none of the second's
			i.enter(t.Context(), 1)
			i.reserve()
			if alone, _ := i.runAlone(t.Context(), time.Hour); !alone {
				t.Fatal("it is the only one, and not alone")
			}
			start := time.Now()
			if i.enter(t.Context(), 1); time.Since(start) != aloneMost {
				t.Errorf("another begins after %s, want %s", time.Since(start), aloneMost)
			}
			i.leave(2)
			i.unreserve()
			i.enter(t.Context(), 1)
			i.reserve()
			i.runAlone(t.Context(), time.Hour)
			time.Sleep(aloneMost / 2)
			i.leave(1)
			i.unreserve()
		}
	})
}

// What takes long runs, and one that must run alone does not get there. Others wait for a
// tenth of the time, and it is tried again soon.
func TestOthersWaitForATenthOfTheTimeWhileOneCannotRunAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most = 4 * time.Second
		var i solo
		i.enter(t.Context(), 2)
		for n, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, most, most} {
			i.reserve()
			start := time.Now()
			alone, again := i.runAlone(t.Context(), most)
			i.unreserve()
			if waited := time.Since(start); alone || waited != want || again != 10*want {
				t.Errorf("try %d: alone is %t after %s, and again after %s, want %s", n+1, alone, waited, again, want)
			}
			if !i.enter(t.Context(), 1) {
				t.Error("another does not begin")
			}
			i.leave(1)
		}
		i.leave(1)
		i.reserve()
		if alone, _ := i.runAlone(t.Context(), most); !alone {
			t.Error("it does not run although it is alone")
		}
		i.leave(1)
		i.unreserve()
		i.enter(t.Context(), 2)
		i.reserve()
		if _, again := i.runAlone(t.Context(), most); again != 5*time.Second {
			t.Errorf("another waits %s, want 5s: the tries of the last one are over", again)
		}
	})
}
