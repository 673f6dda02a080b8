package idem_test

import (
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/paghooks/paghooks/idem"
)

// acceptMany accepts events from the first number up to the last, eight at once.
func (s *app) acceptMany(first, last int) {
	s.Helper()
	var next atomic.Int64
	next.Store(int64(first) - 1)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for i := next.Add(1); i <= int64(last); i = next.Add(1) {
				outcome, err := s.processor.Accept(s.Context(), identify([]byte(paid(fmt.Sprint(i)))))
				if outcome != idem.Done || err != nil {
					s.Errorf("event %d: %s, %v", i, outcome, err)
				}
			}
		})
	}
	workers.Wait()
}

// heap returns the bytes that are in use after a collection.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers of the first have set free
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// It does not run in parallel: others would use memory meanwhile.
func TestMemoryStaysFlat(t *testing.T) {
	s := newApp(t)
	s.on(pay)
	s.processor.Observe = nil // here they keep what they are told
	s.processor.Logger = slog.New(slog.DiscardHandler)
	s.acceptMany(1, 1000)
	before, goroutines := heap(), runtime.NumGoroutine()
	s.acceptMany(1001, 6000)
	if perEvent := (heap() - before) / 5000; perEvent > 100 {
		t.Errorf("each event left %d bytes behind", perEvent)
	}
	if n := runtime.NumGoroutine(); n > goroutines+8 {
		t.Errorf("%d goroutines are left, there were %d", n, goroutines)
	}
}
