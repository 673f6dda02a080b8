package soon

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatHappensSoonIsReturned(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		happens := make(chan string)
		go func() {
			time.Sleep(patience - 1)
			happens <- "it"
			close(happens)
		}()
		if got := Next(t, happens); got != "it" {
			t.Errorf("got %q", got)
		}
		if got := Next(t, happens); got != "" {
			t.Errorf("of a closed channel: %q", got)
		}
	})
}

// failing is a test that panics when it fails.
type failing struct{ testing.TB }

func (failing) Helper() {}

func (failing) Fatal(why ...any) { panic(why) }

func TestWaitingInVainFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("it has not failed")
			}
		}()
		Next(failing{t}, make(chan int))
	})
}
