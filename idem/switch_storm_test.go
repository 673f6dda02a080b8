package idem_test

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

// wantOneEffectEach checks that n events, and no others, have one effect each.
func (s *app) wantOneEffectEach(n int) {
	s.Helper()
	s.wantEffects(n)
	if got := queryOne[int](s, `select count(distinct event) from effects`); got != n {
		s.Errorf("%d events have an effect, want %d", got, n)
	}
	if got := queryOne[int](s, `select count(*) from idem_events where state = 'done'`); got != n {
		s.Errorf("%d events are done, want %d", got, n)
	}
	if left := queryOne[int](s, `select count(*) from idem_payloads`); left != 0 {
		s.Errorf("%d payloads are left", left)
	}
}

// An application that runs both modes at once on one table, as it does while a
// new version is rolled out.
func TestBothModesAtOnceHaveOneEffectOfEachEvent(t *testing.T) {
	t.Parallel()
	const events, deliveries = 500, 3
	s := newApp(t)
	var failed sync.Map
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if _, again := failed.LoadOrStore(n.ID, true); !again && len(n.ID)%3 == 0 {
			return errors.New("no such order")
		}
		return pay(ctx, tx, n)
	})
	s.processor.ParkAfter = 2
	done := make(chan struct{}, 2*events) // of both
	count := func(_ context.Context, o idem.Observation) {
		if o.Outcome == idem.Done {
			done <- struct{}{}
		}
	}
	s.processor.Observe = count
	s.openInbox()
	s.inbox.Observe = count
	s.inbox.Backoff = func(int) time.Duration { return 0 }
	stop := s.start(s.inbox)

	random := rand.New(rand.NewPCG(1, 2))
	type delivery struct {
		event  idem.Event
		accept func(context.Context, idem.Event) (idem.Outcome, error)
	}
	var all []delivery
	for i := range events {
		for range deliveries {
			d := delivery{letter(fmt.Sprint(i), fmt.Sprint("o", i%50), 0), s.processor.Accept}
			if random.IntN(2) == 0 {
				d.accept = s.inbox.Accept
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

// From inline mode to an inbox, back, and to an inbox again, each time with
// events of every kind that are not done.
func TestModeChangesWithEventsThatAreNotDoneAndLosesNone(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	deploy := func(broken string) {
		s.deploy(func(n *notes) {
			idem.Handle(&n.Routes, "paid", func(ctx context.Context, tx pgx.Tx, n *note) error {
				if n.Order == broken {
					return errors.New("no such order")
				}
				return pay(ctx, tx, n)
			})
		})
	}
	acknowledged := make(map[string]bool)
	send := func(accept func(context.Context, idem.Event) (idem.Outcome, error), first, last int) {
		for i := first; i < last; i++ {
			e := letter(fmt.Sprint(i), fmt.Sprint("o", i%5), 0)
			if _, err := accept(t.Context(), e); err == nil {
				acknowledged[e.ID] = true
			}
		}
	}
	deploy("o0")
	send(s.processor.Accept, 0, 20) // a fifth of them is to come again

	deploy("o1")
	s.openInbox()
	send(s.inbox.Accept, 10, 40) // those of the first round that come again, and 20 new ones
	s.drain(20 - 4 + 2 + 1)      // of o1 only the first is tried, and holds the others
	send(s.inbox.Accept, 40, 50) // no worker runs now

	deploy("o2")
	send(s.processor.Accept, 35, 60)

	deploy("")
	s.openInbox()
	s.exec(`update idem_payloads set due_at = now() where due_at > now()`)
	for i := range 60 { // what was not acknowledged comes until it is
		if e := letter(fmt.Sprint(i), fmt.Sprint("o", i%5), 0); !acknowledged[e.ID] {
			if _, err := s.inbox.Accept(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.drain(queryOne[int](s, `select count(*) from idem_events where state = 'pending'`))
	s.wantOneEffectEach(60)
}
