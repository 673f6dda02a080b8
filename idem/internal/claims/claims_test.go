package claims

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// An event is due when its transaction began, and seen when that is committed: others that
// became due later may have been seen before.
func TestASearchGoesOnALittleBeforeTheLastEventThatWasSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p Position
		if after := p.After(); !after.IsZero() {
			t.Errorf("the first search begins at %s, want the start", after)
		}
		last := time.Now()
		p.Seen(store.Claims{Last: last})
		p.Seen(store.Claims{Last: last.Add(-time.Second)}) // found by its lag
		p.Seen(store.Claims{})                             // nothing was due
		for late, found := range map[time.Duration]bool{250 * time.Millisecond: true, time.Second: false} {
			if after := p.After(); after.Before(last.Add(-late)) != found {
				t.Errorf("an event that was due %s before the last one: the next search begins at %s, after %s", late, after, last)
			}
		}
		time.Sleep(5 * time.Second) // what came later than that
		if after := p.After(); !after.IsZero() {
			t.Errorf("after 5 seconds a search begins at %s, want the start", after)
		}
		if after := p.After(); !after.IsZero() {
			t.Errorf("with nothing seen, the next one begins at %s, want the start", after)
		}
	})
}

// look is one look at another runner, at a second of this process's clock.
type look struct {
	at     int
	signed int // by the database's clock
	db     int // which is that late
	lost   bool
	absent bool
}

// When a runner is dead, and when it is gone, as another one sees it.
func TestRunnerIsDeadOnceItHasGivenNoSignForEightSeconds(t *testing.T) {
	t.Parallel()
	const hour = 3600
	for reason, c := range map[string]struct {
		looks      []look
		dead, gone []int // at which looks
	}{
		"it gives signs": {looks: []look{{at: 0, signed: 0, db: 0}, {at: 2, signed: 1, db: 2}, {at: 10, signed: 9, db: 10}, {at: 18, signed: 17, db: 18}}},
		"it gives none any more": {
			looks: []look{{at: 0, signed: 0, db: 0}, {at: 2, signed: 2, db: 2}, {at: 8, signed: 2, db: 8}, {at: 10, signed: 2, db: 10}},
			dead:  []int{3},
		},
		"its last sign counts, not when that was seen": {
			looks: []look{{at: 0, signed: 0, db: 0}, {at: 2, signed: 1, db: 2}, {at: 9, signed: 1, db: 9}},
			dead:  []int{2},
		},
		"it was dead before this one began":     {looks: []look{{at: 0, signed: 0, db: 8}}, dead: []int{0}},
		"the clock is put an hour forward":      {looks: []look{{at: 0, signed: 0, db: 1}, {at: 2, signed: 1, db: hour}, {at: 4, signed: hour, db: hour + 2}}},
		"it is put back an hour":                {looks: []look{{at: 0, signed: hour, db: hour}, {at: 2, signed: hour + 1, db: 2}, {at: 4, signed: 3, db: 4}}},
		"and the other has died at that moment": {looks: []look{{at: 0, signed: hour, db: 0}, {at: 6, signed: hour, db: 6}, {at: 8, signed: hour, db: 8}}, dead: []int{2}},
		"Postgres was unavailable, for both": {
			looks: []look{{at: 0, signed: 0, db: 0}, {at: 30, lost: true}, {at: 31, signed: 0, db: 31}, {at: 33, signed: 32, db: 33}},
		},
		"and the other has died in that time": {
			looks: []look{{at: 0, signed: 0, db: 0}, {at: 30, lost: true}, {at: 31, signed: 0, db: 31}, {at: 38, signed: 0, db: 38}},
			dead:  []int{3},
		},
		"it has ended": {looks: []look{{at: 0, signed: 0, db: 0}, {at: 2, absent: true}, {at: 4, absent: true}}, gone: []int{1}},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			s, start := NewSigns("notes"), time.Now()
			second := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second) }
			var dead, gone []int
			for n, l := range c.looks {
				if l.lost {
					s.Lost(second(l.at))
					continue
				}
				var others []store.Worker
				if !l.absent {
					others = append(others, store.Worker{ID: 1, SeenAt: second(l.signed), Silent: second(l.db).Sub(second(l.signed))})
				}
				isDead, isGone := s.Look(second(l.at), others)
				if len(isDead) > 0 {
					dead = append(dead, n)
				}
				if isGone {
					gone = append(gone, n)
				}
			}
			if diff := cmp.Diff(c.dead, dead) + cmp.Diff(c.gone, gone); diff != "" {
				t.Errorf("it is dead, and gone, at these looks (-want +got):\n%s", diff)
			}
		})
	}
}

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
