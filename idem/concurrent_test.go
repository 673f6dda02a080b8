package idem_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

// deliverAtOnce posts n deliveries of one event and returns how often each status
// was answered. The handler must wait for release, which is closed once all are
// sent, so that all but the first are concurrent duplicates.
func (s *app) deliverAtOnce(n int, body string, release chan struct{}) map[int]int {
	s.Helper()
	var mu sync.Mutex
	var started, done sync.WaitGroup
	statuses := make(map[int]int)
	started.Add(n)
	for range n {
		done.Go(func() {
			started.Done()
			status, _, err := s.post(s.Context(), body, nil)
			if err != nil {
				s.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			statuses[status]++
		})
	}
	started.Wait()
	close(release)
	done.Wait()
	return statuses
}

func TestConcurrentDuplicatesHaveOneEffectAndAllGet200(t *testing.T) {
	t.Parallel()
	for _, n := range []int{10, 1000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			release := make(chan struct{})
			s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				<-release
				return pay(ctx, tx, n)
			})
			if statuses := s.deliverAtOnce(n, paid("e1"), release); statuses[http.StatusOK] != n {
				t.Errorf("answers: %v, want %d times 200", statuses, n)
			}
			s.wantEffects(1)
		})
	}
}

func TestConcurrentDuplicatesOfAFailingEventShareItsFailure(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	entered, release := make(chan struct{}), make(chan struct{})
	s.on(func(context.Context, pgx.Tx, *note) error {
		close(entered) // panics if a second attempt runs while the first is in flight
		<-release
		return errors.New("no such order")
	})
	var deliveries sync.WaitGroup
	for range 2 {
		deliveries.Go(func() { s.wantAnswer(paid("e1"), http.StatusServiceUnavailable) })
		<-entered
	}
	close(release)
	deliveries.Wait()
}

// Two processors on one database know as little of each other as two processes.
func TestConcurrentDuplicateInAnotherProcessWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	s := openApp(t, poolOf(t, 4))
	other := s.newProcessor()
	entered, release := make(chan struct{}), make(chan struct{})
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID != "e1" {
			return pay(ctx, tx, n)
		}
		close(entered) // panics in a second attempt
		<-release
		return pay(ctx, tx, n)
	})
	var deliveries sync.WaitGroup
	deliveries.Go(func() { s.wantAnswer(paid("e1"), http.StatusOK) })
	<-entered
	deliveries.Go(func() {
		if outcome, err := other.Accept(t.Context(), identify([]byte(paid("e1")))); outcome != idem.Duplicate || err != nil {
			t.Errorf("the duplicate's outcome is %s, %v, want duplicate", outcome, err)
		}
	})
	s.until(blocked)
	s.wantAnswer(paid("other"), http.StatusOK) // waits for neither
	close(release)
	deliveries.Wait()
	s.wantEffects(2)
}

func TestConcurrentDuplicateInAnotherProcessTakesOverWhenTheFirstFails(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	other := s.newProcessor()
	entered, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		first := false
		once.Do(func() { first = true })
		if !first {
			return pay(ctx, tx, n)
		}
		close(entered)
		<-release
		return errors.New("no such order")
	})
	var deliveries sync.WaitGroup
	deliveries.Go(func() { s.deliver(paid("e1")) }) // 503, or 200 if the duplicate is done by the time that is said
	<-entered
	deliveries.Go(func() {
		if outcome, err := other.Accept(t.Context(), identify([]byte(paid("e1")))); outcome != idem.Done || err != nil {
			t.Errorf("the duplicate's outcome is %s, %v, want done", outcome, err)
		}
	})
	close(release)
	deliveries.Wait()
	s.wantEffects(1)
}

func TestConcurrentDuplicateThatCannotWaitLongerIsToldToComeAgain(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"same process", "another process", "another process, that has an hour"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			second := s.processor
			switch where {
			case "another process":
				second = s.newProcessor()
				second.Timeout = 200 * time.Millisecond
			case "another process, that has an hour": // a connection that waits is given up before that
				s.processor.Timeout = time.Hour
				second = s.newProcessor()
				second.Timeout = time.Hour
			}
			entered, release := make(chan struct{}), make(chan struct{})
			s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				close(entered)
				<-release
				return pay(ctx, tx, n)
			})
			var deliveries sync.WaitGroup
			deliveries.Go(func() { s.wantAnswer(paid("e1"), http.StatusOK) })
			<-entered
			if where == "same process" {
				s.processor.Timeout = 200 * time.Millisecond // of deliveries from now on
			}
			outcome, err := second.Accept(t.Context(), identify([]byte(paid("e1"))))
			if outcome != idem.Retrying || err == nil {
				t.Errorf("the duplicate's outcome is %s, %v, want retrying", outcome, err)
			}
			close(release)
			deliveries.Wait()
			s.wantEffects(1)
			if n := queryOne[int](s, `select attempts from idem_events`); n != 0 {
				t.Errorf("the duplicate was counted as a failure of the event: %d", n)
			}
		})
	}
}

func TestSlowEventHasOneConnectionHoweverManyDuplicatesItHas(t *testing.T) {
	t.Parallel()
	s := openApp(t, poolOf(t, 2))
	entered, release := make(chan struct{}), make(chan struct{})
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "slow" {
			close(entered)
			<-release
		}
		return pay(ctx, tx, n)
	})
	var deliveries sync.WaitGroup
	deliveries.Go(func() { s.wantAnswer(paid("slow"), http.StatusOK) })
	<-entered
	for range 100 {
		deliveries.Go(func() { s.wantAnswer(paid("slow"), http.StatusOK) })
	}
	for i := range 20 {
		s.wantAnswer(paid(fmt.Sprint(i)), http.StatusOK)
	}
	close(release)
	deliveries.Wait()
	s.wantEffects(21)
}

func TestPoolOfOneConnectionIsEnough(t *testing.T) {
	t.Parallel()
	s := openApp(t, poolOf(t, 1))
	s.on(pay)
	s.notes.Ignore("viewed")
	var deliveries sync.WaitGroup
	for i := range 20 {
		deliveries.Go(func() { s.wantAnswer(paid(fmt.Sprint(i%10)), http.StatusOK) })
	}
	deliveries.Wait()
	s.wantEffects(10)
}

// Two events are two, whatever their ids and bodies look like side by side.
func TestEventInFlightIsNoOther(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	first, second := idem.Event{ID: "a\n", Type: "any", Payload: []byte("1")}, idem.Event{ID: "a", Type: "any", Payload: []byte("\n1")}
	s.processor.Timeout = 10 * time.Second // where the second waits for the first
	idem.Handle(&s.notes.Routes, "any", func(ctx context.Context, _ pgx.Tx, _ *int) error {
		if e, _ := idem.EventFrom(ctx); e.ID == first.ID {
			_, err := s.processor.Accept(ctx, second)
			return err
		}
		return nil
	})
	if o, err := s.processor.Accept(t.Context(), first); o != idem.Done {
		t.Errorf("Accept = %s, %v, want done", o, err)
	}
	s.wantState("a", idem.StateDone)
}

// slowIgnorer is a provider that takes its time, in a bubble of synctest: all who ask
// meanwhile are answered at the same time.
type slowIgnorer struct{ notes }

func (s *slowIgnorer) Ignores(eventType string) bool {
	time.Sleep(time.Second)
	return s.notes.Ignores(eventType)
}

// Nothing is stored of which the others could be duplicates.
func TestConcurrentDuplicatesOfAnIgnoredTypeAreAllIgnored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		source := &slowIgnorer{}
		source.Ignore("viewed")
		p := idem.NewProcessor(nil, source) // no pool: nobody asks Postgres
		p.Logger = nil
		outcomes := make([]idem.Outcome, 10)
		var deliveries sync.WaitGroup
		for n := range outcomes {
			deliveries.Go(func() {
				var err error
				if outcomes[n], err = p.Accept(t.Context(), identify([]byte(`{"id":"e1","type":"viewed"}`))); err != nil {
					t.Error(err)
				}
			})
		}
		deliveries.Wait()
		if diff := cmp.Diff(slices.Repeat([]idem.Outcome{idem.Ignored}, len(outcomes)), outcomes); diff != "" {
			t.Error("outcomes (-want +got):\n" + diff)
		}
	})
}
