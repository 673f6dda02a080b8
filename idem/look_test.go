package idem

import (
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
			if oldest, err := l.get(find); oldest != time.Minute || err != failed {
				t.Fatalf("it is %s, %v", oldest, err)
			}
			time.Sleep(time.Second)
		}
		if asked != 3 {
			t.Errorf("in 106 s it was looked at %d times, want 3: at 0 s, 42 s and 84 s", asked)
		}
	})
}
