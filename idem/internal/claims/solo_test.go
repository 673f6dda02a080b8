package claims

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestOneAttemptRunsAloneOnceTheOthersHaveEnded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var i Solo
		if !i.Enter(t.Context(), 3) || !i.Reserve() {
			t.Fatal("nobody is there, and it does not begin")
		}
		if i.Reserve() {
			t.Error("two may run alone at the same time")
		}
		alone, begun := make(chan bool, 1), make(chan bool, 1)
		go func() { got, _ := i.RunAlone(t.Context(), time.Hour); alone <- got }()
		synctest.Wait()
		go func() { begun <- i.Enter(t.Context(), 2) }()
		for range 2 {
			synctest.Wait()
			if len(alone) > 0 || len(begun) > 0 {
				t.Fatal("it runs alone beside others, or another begins meanwhile")
			}
			i.Leave(1)
		}
		if !<-alone {
			t.Error("it does not run although it is alone")
		}
		synctest.Wait()
		if len(begun) > 0 {
			t.Error("another begins while it runs alone")
		}
		i.Leave(1)
		i.Unreserve()
		if !<-begun || !i.Reserve() {
			t.Error("nobody begins after it")
		}
	})
}

func TestWaitForSoloEndsWithItsContext(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(context.Context, *Solo) bool{
		"to run alone, and another goes on": func(ctx context.Context, i *Solo) bool { got, _ := i.RunAlone(ctx, time.Hour); return got },
		"to begin, and another runs alone": func(ctx context.Context, i *Solo) bool {
			i.Leave(1)
			i.RunAlone(ctx, time.Hour)
			return i.Enter(ctx, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var i Solo
				i.Enter(t.Context(), 2)
				i.Reserve()
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
				i.Unreserve()
				if !i.Enter(t.Context(), 1) {
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
		var i Solo
		for range 2 { // the end of the first one's time is none of the second's
			i.Enter(t.Context(), 1)
			i.Reserve()
			if alone, _ := i.RunAlone(t.Context(), time.Hour); !alone {
				t.Fatal("it is the only one, and not alone")
			}
			start := time.Now()
			if i.Enter(t.Context(), 1); time.Since(start) != soloMost {
				t.Errorf("another begins after %s, want %s", time.Since(start), soloMost)
			}
			i.Leave(2)
			i.Unreserve()
			i.Enter(t.Context(), 1)
			i.Reserve()
			i.RunAlone(t.Context(), time.Hour)
			time.Sleep(soloMost / 2)
			i.Leave(1)
			i.Unreserve()
		}
	})
}

// What takes long runs, and one that must run alone does not get there. Others wait for a
// tenth of the time, and it is tried again soon.
func TestOthersWaitForATenthOfTheTimeWhileOneCannotRunAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const most = 4 * time.Second
		var i Solo
		i.Enter(t.Context(), 2)
		for n, want := range []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, most, most} {
			i.Reserve()
			start := time.Now()
			alone, again := i.RunAlone(t.Context(), most)
			i.Unreserve()
			if waited := time.Since(start); alone || waited != want || again != 10*want {
				t.Errorf("try %d: alone is %t after %s, and again after %s, want %s", n+1, alone, waited, again, want)
			}
			if !i.Enter(t.Context(), 1) {
				t.Error("another does not begin")
			}
			i.Leave(1)
		}
		i.Leave(1)
		i.Reserve()
		if alone, _ := i.RunAlone(t.Context(), most); !alone {
			t.Error("it does not run although it is alone")
		}
		i.Leave(1)
		i.Unreserve()
		i.Enter(t.Context(), 2)
		i.Reserve()
		if _, again := i.RunAlone(t.Context(), most); again != 5*time.Second {
			t.Errorf("another waits %s, want 5s: the tries of the last one are over", again)
		}
	})
}
