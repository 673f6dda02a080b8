//go:build long

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

// An application that runs both modes at once on one table, as it does while a
// new version is rolled out.
func TestBothModesAtOnceHaveOneEffectOfEachEvent(t *testing.T) {
	t.Parallel()
	const events, deliveries = 150, 3
	s := newApp(t)
	var failed sync.Map
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if _, again := failed.LoadOrStore(n.ID, true); !again && len(n.ID)%3 == 0 {
			return errors.New("no such order")
		}
		return pay(ctx, tx, n)
	})
	done := make(chan struct{}, 2*events) // of both
	count := func(_ context.Context, o idem.Observation) {
		if o.Outcome == idem.Done {
			done <- struct{}{}
		}
	}
	s.First.Observe = count
	s.openInbox()
	s.Inbox.Observe = count
	s.Inbox.Backoff = func(int) time.Duration { return 0 }
	stop := s.Start(s.Inbox)

	random := rand.New(rand.NewPCG(1, 2))
	type delivery struct {
		event  idem.Event
		accept func(context.Context, idem.Event) (idem.Outcome, error)
	}
	var all []delivery
	for i := range events {
		for range deliveries {
			d := delivery{letter(fmt.Sprint(i), fmt.Sprint("o", i%50), 0), s.First.Accept}
			if random.IntN(2) == 0 {
				d.accept = s.Inbox.Accept
			}
			all = append(all, d)
		}
	}
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var next atomic.Int64
	var providers sync.WaitGroup
	for range 16 {
		providers.Go(func() {
			for i := next.Add(1); i <= int64(len(all)); i = next.Add(1) {
				d := all[i-1]
				for _, err := d.accept(t.Context(), d.event); err != nil && t.Context().Err() == nil; {
					_, err = d.accept(t.Context(), d.event) // as a provider does
				}
			}
		})
	}
	providers.Wait()
	for n := range events {
		select {
		case <-done:
		case <-time.After(patience):
			t.Fatalf("%d events of %d are done", n, events)
		}
	}
	stop()
	s.wantOneEffectEach(events)
	if len(done) != 0 {
		t.Errorf("%d events were done twice", len(done))
	}
}

// Several processes claim, fail, park, requeue, discard, replay and deliver again
// the events of a few entities, all at the same time. No event is left behind
// that nobody will find, and each lane is in order, with one effect of each event.
func TestLanesDrainWhateverHappensToThem(t *testing.T) {
	t.Parallel()
	l := openLanes(t)
	for round := range 4 {
		l.repairs = round%2 == 1
		l.storm(4)
		l.settle(round)
	}
	l.wantOneEffectEach()
}
