package soon

import (
	"runtime"
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

// failed is a test that notes that it failed.
type failed struct {
	testing.TB
	why []any
}

func (f *failed) Helper() {}

func (f *failed) Fatal(why ...any) {
	f.why = why
	runtime.Goexit()
}

func TestWaitingInVainFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &failed{TB: t}
		go Next(f, make(chan int))
		time.Sleep(patience)
		synctest.Wait()
		if f.why == nil {
			t.Error("it waits for ever")
		}
	})
}
