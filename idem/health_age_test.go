package idem

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// part is a part that is looked at.
type part struct {
	looks int
	takes time.Duration
}

func (*part) work(context.Context) error { return nil }

func (p *part) examine(_ context.Context, x *examination) {
	p.looks++
	time.Sleep(p.takes)
	x.add("part", "looks", true, "")
}

func TestHealthIsLookedAtOnceASecondHoweverManyAsk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &part{takes: 500 * time.Millisecond}
		h := NewHealth(p)
		ask := func(n int) {
			var strangers sync.WaitGroup
			for range n {
				strangers.Go(func() { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)) })
			}
			strangers.Wait()
		}
		for _, step := range []struct {
			reason string
			after  time.Duration
			looks  int
		}{
			{"many at once", 0, 1},
			{"within a second", 900 * time.Millisecond, 1},
			{"after a second", 100 * time.Millisecond, 2},
		} {
			time.Sleep(step.after)
			if ask(100); p.looks != step.looks {
				t.Errorf("%s: it has looked %d times, want %d", step.reason, p.looks, step.looks)
			}
		}
	})
}

func TestHealthTakesATwentiethOfTheTimeForABacklog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, key, asked := NewHealth(), ageOf{nil, "retrying"}, 0
		failed := errors.New("it took too long")
		look := func() (time.Duration, error) {
			asked++
			time.Sleep(2 * time.Second)
			return time.Minute, failed
		}
		for range 100 { // a second apart
			if a := h.age(key, look); a.oldest != time.Minute || a.err != failed {
				t.Fatalf("it is %+v", a)
			}
			time.Sleep(time.Second)
		}
		if asked != 3 {
			t.Errorf("in 106 s it was looked at %d times, want 3: at 0 s, 42 s and 84 s", asked)
		}
	})
}
