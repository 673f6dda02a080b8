package broker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/broker"
)

// fake is a broker that has messages, and records its calls.
type fake struct {
	*testing.T
	waiting chan broker.Delivery

	mu       sync.Mutex
	handled  []string
	told     []string // "done a", "return b", "extend a"
	received int
}

func newFake(t *testing.T, ids ...string) *fake {
	f := &fake{T: t, waiting: make(chan broker.Delivery, 1000)}
	for _, id := range ids {
		f.add(id)
	}
	return f
}

// add adds a message; its Key is the part before a slash.
func (f *fake) add(id string) {
	key, _, ok := strings.Cut(id, "/")
	if !ok {
		key = ""
	}
	tell := func(what string) func(context.Context) error {
		return func(context.Context) error { f.note(&f.told, what+" "+id); return nil }
	}
	f.waiting <- broker.Delivery{
		Message: broker.Message{ID: id, Key: key},
		Done:    tell("done"), Return: tell("return"), Extend: tell("extend"),
	}
}

func (f *fake) note(list *[]string, entry string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*list = append(*list, entry)
}

func (f *fake) receive(ctx context.Context) (broker.Delivery, error) {
	select {
	case d := <-f.waiting:
		f.mu.Lock()
		defer f.mu.Unlock()
		f.received++
		return d, nil
	case <-ctx.Done():
		return broker.Delivery{}, ctx.Err()
	}
}

// consume consumes in the background of a synctest bubble.
func (f *fake) consume(c broker.Consumer, handle broker.Handle) (stop func() error) {
	ctx, cancel := context.WithCancel(f.Context())
	c.Logger = slog.New(slog.DiscardHandler)
	ended := make(chan error, 1)
	go func() {
		ended <- c.Consume(ctx, f.receive, func(ctx context.Context, m broker.Message) error {
			err := handle(ctx, m)
			if err == nil {
				f.note(&f.handled, m.ID)
			}
			return err
		})
	}()
	return func() error { cancel(); return <-ended }
}

// want waits until nothing happens any more, and checks the handled messages.
func (f *fake) want(list *[]string, want ...string) {
	f.Helper()
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if d := cmp.Diff(want, *list); d != "" {
		f.Errorf("(-want +got)\n%s", d)
	}
}

func (f *fake) wantNil(err error) {
	f.Helper()
	if err != nil {
		f.Errorf("Consume returned %v, want nil", err)
	}
}

func ok(context.Context, broker.Message) error { return nil }

func TestALaneIsHandledInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "a/1", "a/2", "a/3", "a/4")
		stop := f.consume(broker.Consumer{}, func(_ context.Context, m broker.Message) error {
			time.Sleep(map[string]time.Duration{"a/1": 4 * time.Second, "a/2": 3 * time.Second, "a/3": time.Second}[m.ID])
			return nil
		})
		time.Sleep(time.Minute)
		f.want(&f.handled, "a/1", "a/2", "a/3", "a/4")
		f.wantNil(stop())
	})
}

func TestALaneOfAnotherNameThanTheKeyIsHandledInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		for _, id := range []string{"a/1", "b/2"} {
			f.waiting <- broker.Delivery{Message: broker.Message{ID: id, Key: id}, Lane: "partition 0"}
		}
		var atOnce, most int
		stop := f.consume(broker.Consumer{}, func(context.Context, broker.Message) error {
			atOnce++
			most = max(most, atOnce)
			time.Sleep(time.Second)
			atOnce--
			return nil
		})
		time.Sleep(time.Minute)
		f.want(&f.handled, "a/1", "b/2")
		f.wantNil(stop())
		if most != 1 {
			t.Errorf("%d of a lane were handled at once", most)
		}
	})
}

func TestLanesDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "a/1", "a/2", "b/1", "x", "y", "b/2")
		release := make(chan struct{})
		stop := f.consume(broker.Consumer{Handlers: 3}, func(_ context.Context, m broker.Message) error {
			switch m.ID {
			case "a/1":
				<-release
			case "x":
				return errors.New("always")
			}
			return nil
		})
		time.Sleep(time.Minute)
		synctest.Wait()
		f.mu.Lock()
		slices.Sort(f.handled)
		f.mu.Unlock()
		f.want(&f.handled, "b/1", "b/2", "y")
		close(release)
		f.want(&f.handled, "b/1", "b/2", "y", "a/1", "a/2")
		f.wantNil(stop())
	})
}

func TestNoMoreIsReceivedThanFourForEachHandler(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		for n := range 100 {
			f.add(fmt.Sprintf("%d/1", n))
		}
		release := make(chan struct{})
		var running int
		stop := f.consume(broker.Consumer{Handlers: 5}, func(context.Context, broker.Message) error {
			f.mu.Lock()
			running++
			f.mu.Unlock()
			<-release
			return nil
		})
		synctest.Wait()
		f.mu.Lock()
		if running != 5 || f.received != 20 {
			t.Errorf("%d are handled at once and %d were received, want 5 and 20", running, f.received)
		}
		f.mu.Unlock()
		close(release)
		synctest.Wait()
		if len(f.handled) != 100 {
			t.Errorf("%d were handled, want 100", len(f.handled))
		}
		f.wantNil(stop())
	})
}

func TestWhatFailsIsTriedAgainAfterGrowingPauses(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() error{
		"an error": func() error { return errors.New("not yet") },
		"a panic":  func() error { panic("not yet") },
		"an end":   func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t, "a/1", "a/2")
				start := time.Now()
				var tried []time.Duration
				stop := f.consume(broker.Consumer{}, func(_ context.Context, m broker.Message) error {
					if m.ID != "a/1" {
						return nil
					}
					tried = append(tried, time.Since(start))
					if len(tried) < 10 {
						return fail()
					}
					return nil
				})
				time.Sleep(time.Minute)
				f.want(&f.handled, "a/1", "a/2")
				f.wantNil(stop())
				ms := time.Millisecond
				want := []time.Duration{0, 100 * ms, 300 * ms, 700 * ms, 1500 * ms, 3100 * ms, 6300 * ms, 11300 * ms, 16300 * ms, 21300 * ms}
				if d := cmp.Diff(want, tried); d != "" {
					t.Errorf("attempts (-want +got)\n%s", d)
				}
			})
		})
	}
}

func TestMoreTimeIsAskedForUntilTheMessageIsDone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "a/1", "a/2") // the second one waits
		stop := f.consume(broker.Consumer{ExtendEvery: 10 * time.Second}, func(_ context.Context, m broker.Message) error {
			if m.ID == "a/1" {
				time.Sleep(25 * time.Second)
			}
			return nil
		})
		time.Sleep(time.Hour)
		synctest.Wait()
		slices.Sort(f.told[:4]) // two at the same time, twice
		f.want(&f.told, "extend a/1", "extend a/1", "extend a/2", "extend a/2", "done a/1", "done a/2")
		f.wantNil(stop())
	})
}

func TestStopGivesBackWhatWasNotBegunAndALaneInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "a/1")
		stop := f.consume(broker.Consumer{Handlers: 1}, func(context.Context, broker.Message) error {
			time.Sleep(5 * time.Second)
			return nil
		})
		synctest.Wait()
		f.add("a/2")
		synctest.Wait()
		f.add("b/1")
		synctest.Wait()
		f.wantNil(stop())
		f.want(&f.handled, "a/1")
		f.want(&f.told, "return b/1", "done a/1", "return a/2")
	})
}

func TestAHandlerThatEndsWithItsContextIsGivenBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "a/1")
		stop := f.consume(broker.Consumer{StopTimeout: 3 * time.Second}, func(ctx context.Context, _ broker.Message) error {
			<-ctx.Done()
			return ctx.Err()
		})
		synctest.Wait()
		start := time.Now()
		f.wantNil(stop())
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("stopped after %s, want StopTimeout", took)
		}
		f.want(&f.told, "return a/1")
	})
}

func TestAHandlerThatHangsIsAnErrorAndIsNotExtendedAnyMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t, "a/1")
		release := make(chan struct{})
		stop := f.consume(broker.Consumer{StopTimeout: 3 * time.Second, ExtendEvery: 2 * time.Second}, func(context.Context, broker.Message) error {
			<-release
			return nil
		})
		synctest.Wait()
		if err := stop(); err == nil || !strings.Contains(err.Error(), "1 handlers did not return") {
			t.Errorf("Consume returned %v, want an error that counts handlers", err)
		}
		time.Sleep(time.Minute)
		f.want(&f.told, "extend a/1")
		close(release)
	})
}

func TestReceivingPausesLongerAfterEachError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		var called []time.Duration
		receive := func(context.Context) (broker.Delivery, error) {
			called = append(called, time.Since(start))
			switch len(called) {
			case 2:
				panic("a broker's client that panics")
			case 5:
				return broker.Delivery{Message: broker.Message{ID: "x"}}, nil
			case 7:
				cancel()
			}
			return broker.Delivery{}, errors.New("unavailable")
		}
		c := broker.Consumer{Logger: slog.New(slog.DiscardHandler)}
		if err := c.Consume(ctx, receive, ok); err != nil {
			t.Error(err)
		}
		ms := time.Millisecond
		want := []time.Duration{0, 100 * ms, 300 * ms, 700 * ms, 1500 * ms, 1500 * ms, 1600 * ms}
		if d := cmp.Diff(want, called); d != "" {
			t.Errorf("calls (-want +got)\n%s", d)
		}
	})
}

func TestABrokerThatDoesNotAnswerHoldsNobodyUpForLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		d := broker.Delivery{Message: broker.Message{ID: "a/1", Key: "a"}}
		d.Done = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		f.waiting <- d
		f.add("a/2")
		stop := f.consume(broker.Consumer{}, ok)
		time.Sleep(time.Minute)
		f.want(&f.handled, "a/1", "a/2")
		f.wantNil(stop())
	})
}

func TestADeliveryMayHaveAHandlerOfItsOwnWhichIsCalledAgainToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		calls := 0
		own := func(context.Context, broker.Message) error {
			if calls++; calls < 3 {
				return errors.New("not yet")
			}
			return nil
		}
		done := func(context.Context) error { f.note(&f.told, "done a"); return nil }
		f.waiting <- broker.Delivery{Message: broker.Message{ID: "a"}, Handle: own, Done: done}
		f.add("b")
		stop := f.consume(broker.Consumer{}, ok)
		time.Sleep(time.Minute)
		f.want(&f.handled, "b")
		f.want(&f.told, "done b", "done a")
		f.wantNil(stop())
		if calls != 3 {
			t.Errorf("its handler was called %d times, want 3", calls)
		}
	})
}

func TestApplicationCodeThatPanicsIsAnError(t *testing.T) {
	t.Parallel()
	if err := broker.Protect(func() error { panic("oops") }); err == nil || !strings.Contains(err.Error(), "panic: oops\n") {
		t.Errorf("the error is %v", err)
	}
}
