package testkit

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAFreePortIsNoneThatConnectionsTake(t *testing.T) {
	t.Parallel()
	lowest := 49152
	if said, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil { // Linux
		low, _, _ := strings.Cut(strings.TrimSpace(string(said)), "\t")
		if lowest, err = strconv.Atoi(low); err != nil {
			t.Fatal(err)
		}
	}
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	if port >= lowest {
		t.Errorf("port %d is one of those that connections take, from %d", port, lowest)
	}
	l, err := net.Listen("tcp", FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestNextReturnsWhatComesInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		values := make(chan string)
		go func() {
			time.Sleep(patience - 1)
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
