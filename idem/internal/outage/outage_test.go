package outage_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/internal/outage"
)

var errRefused = errors.New("refused")

// at runs a test with a clock of its own, at which nothing takes time but a sleep.
func at(t *testing.T, test func(t *testing.T, o *outage.Outage)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, outage.New()) })
}

func fail(o *outage.Outage, eventType string, id any) (own bool, wait time.Duration) {
	return o.Failed(outage.Failure{Type: eventType, ID: fmt.Sprint(id), Err: errRefused})
}

func failing(o *outage.Outage) (names []string) {
	for _, t := range o.Types() {
		names = append(names, t.Name)
	}
	return names
}

func TestAnOutageIsSeveralEventsThatFailWithNoSuccessBetween(t *testing.T) {
	at(t, func(t *testing.T, o *outage.Outage) {
		for range 100 {
			fail(o, "order", "one")
		}
		fail(o, "order", "two")
		if o.IsWhole() || o.Types() != nil {
			t.Error("two events make an outage")
		}
		o.Done("order")
		fail(o, "order", "two")
		fail(o, "order", "three")
		if o.IsWhole() || o.Types() != nil {
			t.Error("events before a success make an outage")
		}
		if since, err := o.Begun(); err != errRefused || time.Since(since) != 0 {
			t.Errorf("Begun = %s, %v, want now", since, err)
		}
		fail(o, "order", "four")
		if !o.IsWhole() || !cmp.Equal(failing(o), []string{"order"}) {
			t.Errorf("three events make no outage: %v", failing(o))
		}
		o.Done("order")
		if _, err := o.Begun(); o.IsWhole() || o.Types() != nil || err != nil {
			t.Error("a success does not end it")
		}
	})
}

func TestATypeThatFailsSaysNothingAboutOthers(t *testing.T) {
	at(t, func(t *testing.T, o *outage.Outage) {
		for n := range 3 {
			fail(o, "invoice", n)
		}
		o.Done("order")
		for n := range 100 { // orders are quiet
			fail(o, "invoice", n)
		}
		fail(o, "order", "a")
		fail(o, "order", "b")
		if o.IsWhole() {
			t.Error("failures of one type make an outage of all")
		}
		if d := cmp.Diff([]string{"invoice"}, failing(o)); d != "" {
			t.Error("types (-want +got):\n" + d)
		}
		fail(o, "order", "c")
		if !o.IsWhole() {
			t.Error("all types fail, and it is no outage of all")
		}
		if o.Hold("invoice") != 0 {
			t.Error("in an outage of all, which workers look at one event at a time, an event is put off")
		}
	})
}

// The broker answers: others may go through.
func TestARefusalThatSaysWhyIsTheEventsOwnAndNoOutageOfAll(t *testing.T) {
	at(t, func(t *testing.T, o *outage.Outage) {
		for n := range 10 {
			if own, _ := o.Failed(outage.Failure{Type: "invoice", ID: fmt.Sprint(n), Answered: true, Err: errRefused}); !own {
				t.Error("it is not the event's own")
			}
		}
		if _, err := o.Begun(); o.IsWhole() || err != nil {
			t.Error("it is an outage of all")
		}
		if d := cmp.Diff([]string{"invoice"}, failing(o)); d != "" {
			t.Error("types (-want +got):\n" + d)
		}
	})
}

// No number of events is too large to tell which of them are to blame.
func TestAnEventIsToBlameIfAnotherOfItsTypeHasGoneThroughSinceItFailed(t *testing.T) {
	at(t, func(t *testing.T, o *outage.Outage) {
		const many = 20_000
		first := time.Now()
		for n := range many {
			if own, wait := fail(o, "order", n); own || wait <= 0 {
				t.Fatalf("event %d failed for the first time: own %t, again in %s", n, own, wait)
			}
		}
		time.Sleep(time.Second)
		o.Done("invoice")
		again := func(n int) bool {
			own, _ := o.Failed(outage.Failure{Type: "order", ID: fmt.Sprint(n), Before: first, Err: errRefused})
			return own
		}
		if again(0) {
			t.Error("an event of another type has gone through, and it is to blame")
		}
		o.Done("order")
		for n := range many {
			if !again(n) {
				t.Fatalf("event %d is not to blame", n)
			}
		}
		if o.Types() != nil || o.IsWhole() {
			t.Error("events that are to blame themselves make an outage")
		}
	})
}

func TestOneEventOfAFailingTypeIsTriedNowAndThen(t *testing.T) {
	at(t, func(t *testing.T, o *outage.Outage) {
		for n := range 3 {
			fail(o, "invoice", n)
		}
		o.Done("order")
		if o.Hold("order") != 0 {
			t.Error("another type is put off")
		}
		start, last, longest, tries := time.Now(), time.Now(), time.Duration(0), 0
		for time.Since(start) < time.Hour {
			if o.Hold("invoice") > 0 {
				time.Sleep(100 * time.Millisecond)
				continue
			}
			tries, longest, last = tries+1, max(longest, time.Since(last)), time.Now()
			fail(o, "invoice", tries)
		}
		if tries < 120 || tries > 200 || longest > 31*time.Second {
			t.Errorf("%d tries in an hour, with pauses of up to %s: want one each 30 s, and more in the beginning", tries, longest)
		}
		o.Done("invoice")
		if o.Hold("invoice") != 0 {
			t.Error("one has gone through, and another one is put off")
		}
	})
}

// Each publish of a topic without a leader takes its time, and there may be one worker.
func TestATypeThatHangsTakesAFifthOfTheTime(t *testing.T) {
	at(t, func(t *testing.T, o *outage.Outage) {
		start, hung := time.Now(), time.Duration(0)
		for n := 0; time.Since(start) < time.Hour; n++ {
			o.Done("order")
			if o.Hold("invoice") > 0 {
				time.Sleep(10 * time.Millisecond)
				continue
			}
			time.Sleep(5 * time.Second)
			hung += 5 * time.Second
			o.Failed(outage.Failure{Type: "invoice", ID: fmt.Sprint(n), Took: 5 * time.Second, Err: errRefused})
		}
		if hung > 13*time.Minute {
			t.Errorf("it has hung for %s of an hour", hung)
		}
	})
}

// The more there are, the longer each waits: for at most as long again as the outage has lasted.
func TestManyEventsOfAFailingTypeTakeNoMoreTimeThanFew(t *testing.T) {
	at(t, func(t *testing.T, o *outage.Outage) {
		for n := range 3 {
			fail(o, "invoice", n)
		}
		o.Done("order")
		begun, due := time.Now(), make([]time.Time, 10_000) // of each event
		looks := 0
		for time.Since(begun) < 20*time.Minute {
			for n := range due {
				if due[n].After(time.Now()) {
					continue
				}
				looks++
				wait := o.Hold("invoice")
				if wait == 0 {
					_, wait = fail(o, "invoice", n)
				}
				if most := max(2*time.Second, time.Since(begun)); wait > most {
					t.Fatalf("after %s an event waits for %s", time.Since(begun), wait)
				}
				due[n] = time.Now().Add(wait)
			}
			time.Sleep(100 * time.Millisecond)
		}
		// Once the first few minutes are over, each has a turn of 20 ms.
		if most := 10*len(due) + 50*20*60; looks > most {
			t.Errorf("%d looks, want %d at most", looks, most)
		}
	})
}

func TestAnOutageWhoseEventsAreGivenUpIsForgotten(t *testing.T) {
	at(t, func(t *testing.T, o *outage.Outage) {
		for n := range 3 {
			fail(o, "order", n)
		}
		time.Sleep(3 * time.Hour)
		if _, err := o.Begun(); o.IsWhole() || o.Types() != nil || err != nil {
			t.Error("nothing has failed for three hours, and it is an outage")
		}
		fail(o, "order", 4)
		if o.IsWhole() || o.Types() != nil {
			t.Error("failures of long ago count")
		}
	})
}

func TestTypesThatAreMadeUpTakeLittleMemory(t *testing.T) {
	at(t, func(t *testing.T, o *outage.Outage) {
		for n := range 5000 {
			for id := range 3 {
				fail(o, fmt.Sprint("order ", n), id)
			}
		}
		if n := len(o.Types()); n > 1001 {
			t.Errorf("%d types are remembered", n)
		}
	})
}

func TestWithoutABrokerThereIsNoOutage(t *testing.T) {
	t.Parallel()
	var o *outage.Outage
	if _, err := o.Begun(); o.IsWhole() || o.Hold("order") != 0 || o.Types() != nil || err != nil {
		t.Error("it is an outage")
	}
}
