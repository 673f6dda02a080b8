package testkit

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestNextReturnsWhatComesInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		values := make(chan string)
		go func() {
			time.Sleep(Patience - 1)
			values <- "it"
			close(values)
		}()
		if got := Next(t, values); got != "it" {
			t.Errorf("got %q", got)
		}
		if got := Next(t, values); got != "" {
			t.Errorf("of a closed channel: %q", got)
		}
	})
}

// failing is a test that panics when it fails.
type failing struct{ testing.TB }

func (failing) Helper() {}

func (failing) Fatal(why ...any) { panic(why) }

func TestNextFailsATestThatWaitsInVain(t *testing.T) {
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
