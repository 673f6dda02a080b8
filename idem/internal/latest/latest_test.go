package latest_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paghooks/paghooks/idem/internal/latest"
)

// background reads in a goroutine of its own.
func background(read func(context.Context)) bool {
	go read(context.Background())
	return true
}

// look refreshes a value, and waits for it.
func look[T any](t *testing.T, v *latest.Value[T], wait time.Duration) latest.Reading[T] {
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	v.Refresh()
	return v.Get(ctx)
}

func TestReadingsAreSharedAndKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		closed, reads := false, 0
		v := latest.Value[int]{Limit: time.Minute, Fresh: 5 * time.Second, Pause: 10}
		v.Go = func(read func(context.Context)) bool { return !closed && background(read) }
		v.Read = func(context.Context) (int, error) {
			time.Sleep(time.Second)
			reads++
			return 100 * reads, nil
		}
		want := func(when string, wait time.Duration, value int) {
			t.Helper()
			if now := look(t, &v, wait); now.Value != value || now.At.IsZero() != (value == 0) {
				t.Errorf("%s it is %d of %s, want %d", when, now.Value, now.At, value)
			}
		}
		want("before anything is read", time.Millisecond, 0)
		var lookers sync.WaitGroup
		for range 100 {
			lookers.Go(func() { want("while it is read for another", time.Minute, 100) })
		}
		lookers.Wait()
		want("while it is fresh", time.Minute, 100)
		time.Sleep(6 * time.Second)
		want("while it would be read more than a tenth of the time", time.Minute, 100)
		time.Sleep(5 * time.Second)
		want("while it is read again", time.Millisecond, 100)
		want("when it is read again", time.Minute, 200)
		v.Forget()
		want("after it was forgotten", time.Minute, 300)
		closed = true
		time.Sleep(time.Hour)
		want("when nothing is to be read any more", time.Minute, 300)
	})
}

// A reading that waits for Postgres in vain takes all of its time.
func TestAReadingThatFailedIsReadAgainSoonAfterTheOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		isDown, reads := true, 0
		v := latest.Value[int]{Limit: time.Minute, Fresh: 5 * time.Second, Pause: 10, Go: background}
		v.Read = func(ctx context.Context) (int, error) {
			reads++
			if isDown {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return 7, nil
		}
		if now := look(t, &v, time.Hour); !errors.Is(now.Err, context.DeadlineExceeded) {
			t.Fatalf("the reading ended with %v, want its whole time", now.Err)
		}
		isDown = false
		time.Sleep(time.Minute)
		if now := look(t, &v, time.Hour); now.Err == nil || reads != 1 {
			t.Errorf("%d readings, want a pause as long as the one that failed", reads)
		}
		time.Sleep(time.Second)
		if now := look(t, &v, time.Hour); now.Err != nil || now.Value != 7 {
			t.Errorf("after the end of the outage it is %d, %v", now.Value, now.Err)
		}
	})
}

func TestAReadingThatHangsOrPanicsIsTheOnlyOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		v := latest.Value[int]{Limit: time.Second, Fresh: time.Second, Go: background}
		v.Read = func(context.Context) (int, error) {
			reads.Add(1)
			time.Sleep(time.Hour) // whatever its context says
			panic("oops")
		}
		for range 10 {
			if now := look(t, &v, time.Minute); !now.At.IsZero() || reads.Load() != 1 {
				t.Errorf("while it hangs there are %d readings, and a value of %s", reads.Load(), now.At)
			}
		}
		if now := look(t, &v, time.Hour); now.Err == nil || now.Err.Error() != "panic: oops" {
			t.Errorf("after a panic there is the error %v", now.Err)
		}
	})
}
