package health

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestExamineTakesATwentiethOfTheTimeForABacklog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var l lastLook[time.Duration]
		asked := 0
		failed := errors.New("it took too long")
		find := func() (time.Duration, error) {
			asked++
			time.Sleep(2 * time.Second)
			return time.Minute, failed
		}
		for range 100 { // a second apart
			if oldest, err := l.get(new(bool), find); oldest != time.Minute || err != failed {
				t.Fatalf("it is %s, %v", oldest, err)
			}
			time.Sleep(time.Second)
		}
		if asked != 3 {
			t.Errorf("in 106 s it was looked at %d times, want 3: at 0 s, 42 s and 84 s", asked)
		}
	})
}

// A lock on the tables holds up each look until its time-out: five of them one after the other
// are more than monitors wait.
func TestALookThatTakesTooLongIsTheOnlyOneOfItsRound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var first, second lastLook[int]
		slow := func() (int, error) {
			time.Sleep(2 * time.Second)
			return 0, context.DeadlineExceeded
		}
		round := func() (errs [2]error) {
			start, late := time.Now(), false
			_, errs[0] = first.get(&late, slow)
			_, errs[1] = second.get(&late, slow)
			if d := time.Since(start); d > 2*time.Second {
				t.Errorf("a round took %s", d)
			}
			return errs
		}
		if errs := round(); errs != [2]error{context.DeadlineExceeded, errNotLooked} {
			t.Error(errs)
		}
		if errs := round(); errs != [2]error{context.DeadlineExceeded, context.DeadlineExceeded} { // the first as it was found
			t.Error(errs)
		}
	})
}
