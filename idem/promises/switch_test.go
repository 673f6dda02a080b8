package promises_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

// A delivery of an event that a worker is processing is a duplicate at once.
func TestDeliveryAndWorkerOnOneEventHaveOneEffect(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	entered, release := make(chan struct{}), make(chan struct{})
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		close(entered) // panics if the delivery gets here, too
		<-release
		return pay(ctx, tx, n)
	})
	s.Store(letter("e1", "o1", 0))
	s.Start(s.Inbox)
	<-entered
	if status, answer := s.Deliver(paid("e1")); status != http.StatusOK || answer != `{"received":true,"duplicate":true}` {
		t.Errorf("the delivery was answered %d %s, want a duplicate", status, answer)
	}
	close(release)
	s.WantWorked(idem.Done)
	s.WantEffects(1)
}

// A first try and a worker never process two events of one entity at once: the delivery does not wait for the worker.
func TestFirstTryAndWorkerOfOneEntityTakeTurns(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	s.WorkersElsewhere("notes")
	var inFlight, most atomic.Int32
	entered, release := make(chan struct{}), make(chan struct{})
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		defer inFlight.Add(-1)
		most.Store(max(most.Load(), inFlight.Add(1)))
		if n.ID == "e2" { // the worker's
			close(entered)
			<-release
		}
		return pay(ctx, tx, n)
	})
	s.Store(letter("e2", "o1", 2))
	var worker sync.WaitGroup
	worker.Go(func() { s.Drain() })
	<-entered
	if o, err := s.First.Accept(t.Context(), letter("e1", "o1", 1)); o != idem.Pending || err != nil {
		t.Errorf("Accept = %s, %v, want pending", o, err)
	}
	close(release)
	worker.Wait()
	s.WantEffects(2)
	if n := most.Load(); n != 1 {
		t.Errorf("%d events of one entity were processed at once", n)
	}
}
