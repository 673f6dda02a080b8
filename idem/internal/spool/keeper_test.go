package spool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	errDown    = errors.New("it is down")
	errHeld    = errors.New("it is held")
	errRefused = errors.New("it is refused")
)

// text is an event, "lane:name".
type text string

func (e text) Lane() string { lane, _, _ := strings.Cut(string(e), ":"); return lane }

// memory is a Sink.
type memory struct {
	mu     sync.Mutex
	down   error            // the result of every Insert
	bad    map[string]error // the result of an Insert of an event
	tries  []time.Time
	stored []string
	logged []string
}

func (m *memory) Decode(record []byte) (Event, error) { return text(record), nil }

func (m *memory) Insert(_ context.Context, events []Event) ([]Inserted, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tries = append(m.tries, time.Now())
	if m.down != nil {
		return nil, m.down
	}
	for _, e := range events {
		if err := m.bad[string(e.(text))]; err != nil {
			return nil, err
		}
	}
	results := make([]Inserted, len(events))
	for n, e := range events {
		m.stored = append(m.stored, string(e.(text)))
		results[n].IsNew = true
	}
	return results, nil
}

func (m *memory) Meaning(err error) Meaning {
	switch {
	case errors.Is(err, errDown):
		return Unavailable
	case errors.Is(err, errHeld):
		return Held
	case errors.Is(err, errRefused):
		return Refused
	}
	return Unclear
}

func (m *memory) Log(_ context.Context, _ slog.Level, message string, _ Event, _ error, _ ...slog.Attr) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.logged = append(m.logged, message)
}

func (m *memory) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

func keep(t *testing.T, k *Keeper, events ...string) {
	t.Helper()
	for _, e := range events {
		if err := k.Put(t.Context(), text(e).Lane(), func() ([]byte, error) { return []byte(e), nil }); err != nil {
			t.Fatalf("Put(%s): %v", e, err)
		}
	}
}

// drained waits until the spool is empty, and its drainer has ended.
func drained(k *Keeper) {
	for {
		tried := k.NextTry()
		if shut, _ := k.State(); !shut {
			synctest.Wait()
			return
		}
		<-tried
	}
}

func wantStored(t *testing.T, m *memory, want ...string) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if diff := cmp.Diff(want, m.stored); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

func newTestKeeper(t *testing.T, m *memory) *Keeper {
	t.Helper()
	k := NewKeeper(open(t, filepath.Join(t.TempDir(), "spool")), func() int64 { return 1 << 20 })
	if !k.Attach(m) {
		t.Fatal("a new keeper is another sink's")
	}
	return k
}

func TestEventsAreStoredInOrderSecondsAfterTheSinkTakesThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{down: errDown}
		k := newTestKeeper(t, m)
		keep(t, k, "a:1", "b:1", "a:2")
		time.Sleep(time.Hour)
		if shut, err := k.State(); !shut || !errors.Is(err, errDown) {
			t.Errorf("State = %t, %v, want shut, because it is down", shut, err)
		}
		m.set(func() { m.down = nil })
		up := time.Now()
		drained(k)
		if took := time.Since(up); took > 3*time.Second {
			t.Errorf("stored %s after the sink takes events, want within 3 s", took)
		}
		wantStored(t, m, "a:1", "b:1", "a:2")
		if shut, _ := k.State(); shut {
			t.Error("the spool is empty, and deliveries are kept out of the sink")
		}
	})
}

func TestSinkThatIsDownIsTriedEveryFewSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{down: errDown}
		k := newTestKeeper(t, m)
		keep(t, k, "a:1")
		time.Sleep(time.Hour)
		m.set(func() { m.down = nil })
		drained(k)
		if n := len(m.tries); n < 1000 || n > 2500 {
			t.Errorf("%d tries in an hour, want one each 1.5 to 3 seconds", n)
		}
		for n := 1; n < len(m.tries); n++ {
			if d := m.tries[n].Sub(m.tries[n-1]); d > 3*time.Second {
				t.Fatalf("%s between two tries", d)
			}
		}
		if diff := cmp.Diff([]string{
			"webhook spool cannot be drained yet: it is tried every few seconds", "webhook spool is drained: events go to Postgres again",
		}, m.logged); diff != "" {
			t.Errorf("logged (-want +got):\n%s", diff)
		}
	})
}

func TestAnEventThatWaitsHoldsItsLaneOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{down: errDown, bad: map[string]error{"a:1": errHeld}}
		k := newTestKeeper(t, m)
		keep(t, k, "a:1", "a:2", "b:1")
		m.set(func() { m.down = nil })
		time.Sleep(time.Minute)
		wantStored(t, m, "b:1")
		m.set(func() { m.bad = nil })
		drained(k)
		m.mu.Lock()
		got := strings.Join(m.stored, " ")
		m.mu.Unlock()
		if first, second := strings.Index(got, "a:1"), strings.Index(got, "a:2"); first < 0 || second < first {
			t.Errorf("stored %s, want a:1 before a:2", got)
		}
	})
}

func TestAnEventThatIsRefusedHoldsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{down: errDown, bad: map[string]error{"a:1": errRefused}}
		k := newTestKeeper(t, m)
		keep(t, k, "a:1", "a:2")
		m.set(func() { m.down = nil })
		drained(k)
		wantStored(t, m, "a:2")
		if k.dir.Scan(time.Time{}); k.dir.Aside() != 1 {
			t.Errorf("%d files are set aside, want that of the refused event", k.dir.Aside())
		}
	})
}

func TestDeliveriesArePausedForASecondAtMost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		g.beginPut(1) // the disk does not answer
		done := make(chan struct{})
		go func() {
			defer close(done)
			g.pauseDeliveries(maxPause)
		}()
		synctest.Wait()
		begun := time.Now()
		if _, ok := g.enter(t.Context()); ok {
			t.Error("a delivery goes to the sink while events are on their way to the spool")
		}
		if waited := time.Since(begun); waited != maxPause {
			t.Errorf("it waited %s, want %s", waited, maxPause)
		}
		<-done
		g.endPut(1, true)
	})
}

func TestAKeeperServesOneSink(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		k := newTestKeeper(t, m)
		if !k.Attach(m) || k.Attach(&memory{}) {
			t.Error("want it to be the first sink's")
		}
	})
}

func TestAFullKeeperSaysWhetherEarlierEventsWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{down: errDown}
		size := LineSize([]byte("a:1"))
		k := NewKeeper(open(t, filepath.Join(t.TempDir(), "spool")), func() int64 { return size })
		k.Attach(m)
		keep(t, k, "a:1")
		for e, behind := range map[string]bool{"a:2": true, "b:1": false} {
			err := k.Put(t.Context(), text(e).Lane(), func() ([]byte, error) { return []byte(e), nil })
			if !errors.Is(err, errFull) || errors.Is(err, ErrBehind) != behind {
				t.Errorf("Put(%s): %v, want full, and behind an earlier one: %t", e, err, behind)
			}
		}
		m.set(func() { m.down = nil })
		drained(k)
		wantStored(t, m, "a:1")
	})
}

func TestWhatArrivesWhileItIsDrainedIsStoredInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{down: errDown}
		k := newTestKeeper(t, m)
		var want []string
		for n := range 100 {
			e := fmt.Sprintf("a:%d", n)
			want = append(want, e)
			if n == 50 {
				m.set(func() { m.down = nil })
			}
			keep(t, k, e)
			time.Sleep(20 * time.Millisecond)
		}
		drained(k)
		wantStored(t, m, want...)
	})
}
