//go:build long

package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestBrokerThatHangsLeavesThreeQuartersOfThePoolToReceivers(t *testing.T) {
	t.Parallel()
	s := testkit.OpenShop(t, testkit.PoolOf(t, 8))
	var hanging, most atomic.Int32
	hang := make(chan struct{}, 100)
	outbox := newOutbox(s, publisher(func(ctx context.Context, _ broker.Message) error {
		most.Store(max(most.Load(), hanging.Add(1)))
		defer hanging.Add(-1)
		hang <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}))
	emitMany(s, outbox, 20)
	var handlers sync.WaitGroup
	handlers.Add(6)
	s.On(func(ctx context.Context, tx pgx.Tx, n *testkit.Note) error {
		handlers.Done()
		handlers.Wait() // all of them have a connection
		return testkit.Pay(ctx, tx, n)
	})
	s.Start(outbox.Inbox)
	<-hang
	<-hang
	var deliveries sync.WaitGroup
	for n := range 6 {
		deliveries.Go(func() { s.WantAnswer(testkit.About(fmt.Sprint("e", n), "paid", fmt.Sprint(n)), http.StatusOK) })
	}
	deliveries.Wait()
	if n := most.Load(); n != 2 {
		t.Errorf("%d messages were published at once, want 2", n)
	}
}

func TestOutageOfTheBrokerParksNothingAndOneMessageAtATimeIsTried(t *testing.T) {
	t.Parallel()
	// Three failures make an outage: until the third one is noted, workers begin others.
	const workers, messages, probes, early = 4, 40, 8, 4 + 2
	s := testkit.OpenShop(t, testkit.PoolOf(t, workers+4))
	var down atomic.Bool
	down.Store(true)
	var calls, running atomic.Int32
	probed := make(chan struct{}, 1000)
	var mu sync.Mutex
	published := map[string]int{}
	outbox := newOutbox(s, publisher(func(ctx context.Context, m broker.Message) error {
		if !down.Load() {
			mu.Lock()
			defer mu.Unlock()
			published[m.ID]++
			return nil
		}
		call, others := calls.Add(1), running.Add(1)-1
		defer running.Add(-1)
		for range 3 { // others have time to come
			if _, err := s.Pool.Exec(ctx, `select`); err != nil {
				return err
			}
		}
		if call > early && (others > 0 || running.Load() > 1) {
			t.Errorf("call %d is not alone", call)
		}
		probed <- struct{}{}
		return errors.New("connection refused")
	}))
	outbox.Workers, outbox.MaxAttempts = workers, 1
	emitMany(s, outbox, messages)
	s.Start(outbox.Inbox)
	for range early + probes {
		<-probed
	}
	down.Store(false)
	s.Until(`select count(*) = $1 from idem_events where state = 'done' and attempts = 0`, messages)
	for id, n := range published {
		if n != 1 {
			t.Errorf("message %s was published %d times", id, n)
		}
	}
}

// A message that nobody tries again is parked.
func TestMessageOfABrokerThatHangsIsTriedAgainUntilItIsPublished(t *testing.T) {
	t.Parallel()
	s := testkit.NewShop(t)
	hung := make(chan struct{}, 100)
	var seen atomic.Bool // that it waits for its next attempt
	outbox := newOutbox(s, publisher(func(ctx context.Context, _ broker.Message) error {
		if seen.Load() {
			return nil
		}
		<-ctx.Done()
		hung <- struct{}{}
		return ctx.Err()
	}))
	outbox.Timeout, outbox.MaxAttempts = time.Second, 1
	emitMany(s, outbox, 1)
	s.Start(outbox.Inbox)
	<-hung
	s.Until(`select count(*) = 1 from idem_events where state = 'pending' and last_error like '%deadline%'`)
	seen.Store(true)
	s.Until(`select count(*) = 1 from idem_events where state = 'done' and attempts = 0`)
}
