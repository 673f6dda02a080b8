package brokertest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/relay"
	"github.com/paghooks/paghooks/internal/postgres"
)

// postgresUnavailable crashes Postgres while events are consumed. The provider does not notice.
func postgresUnavailable(s *shop) {
	cluster := s.ownDatabase(postgres.Cluster{})
	inbox := s.newInbox()
	Background(s, inbox.Run)
	done := relay.To(inbox, secret)
	var failures atomic.Int64
	s.consume(func(ctx context.Context, m broker.Message) error {
		err := done(ctx, m)
		if err != nil {
			failures.Add(1)
		}
		return err
	})

	notes := paid(6, 12)
	s.deliverAll(notes[:24], s.deliver)
	s.await("some effects", func() bool { return s.effects() > 0 })
	if err := cluster.Crash(s.Context()); err != nil {
		s.Fatal(err)
	}
	s.deliverAll(notes[24:48], s.deliver)
	s.await("the consumer to notice", func() bool { return failures.Load() > 3 })
	if err := cluster.Start(s.Context()); err != nil {
		s.Fatal(err)
	}
	s.deliverAll(notes[48:], s.deliver)
	s.awaitEffects(notes)
	s.wantStored("done 72")
}

// brokerRestarts restarts the broker twice while events are published and consumed.
func brokerRestarts(s *shop) {
	if s.queue.Restart == nil {
		s.Skip("this module cannot restart its broker")
	}
	s.relay.Timeout = 3 * time.Second
	inbox := s.newInbox()
	s.consume(relay.To(inbox, secret))
	Background(s, inbox.Run)

	notes := paid(8, 30)
	for round := range 3 {
		var deliveries sync.WaitGroup
		deliveries.Go(func() { s.deliverAll(notes[80*round:80*(round+1)], s.deliverUntilTaken) })
		if round > 0 {
			s.queue.Restart(s)
		}
		deliveries.Wait()
	}
	s.awaitEffects(notes)
	s.wantStored("done 240")
}

// providerWaits is the time that Asaas waits for an answer.
const providerWaits = 10 * time.Second

// brokerHangs has the broker be silent while events are delivered.
func brokerHangs(s *shop) {
	if s.queue.Hang == nil {
		s.Skip("this module cannot have its broker hang")
	}
	s.relay.Timeout = time.Second
	inbox := s.newInbox()
	s.consume(relay.To(inbox, secret))
	Background(s, inbox.Run)
	before, during := paid(4, 10)[:20], paid(4, 10)[20:]
	s.deliverAll(before, s.deliverUntilTaken) // a busy machine may take longer than Timeout
	s.awaitEffects(before)

	resume := s.queue.Hang(s)
	var deliveries sync.WaitGroup
	for _, n := range during {
		deliveries.Go(func() {
			start := time.Now()
			status, answer, err := s.post(s.Context(), s.url, n)
			if took := time.Since(start); err != nil || status != http.StatusServiceUnavailable || took > providerWaits {
				s.Errorf("a delivery was answered %d %s, %v after %s, want 503 soon after %s", status, answer, err, took, s.relay.Timeout)
			}
		})
	}
	deliveries.Wait()
	resume()
	s.deliverAll(during, s.deliverUntilTaken)
	s.awaitEffects(append(before, during...))
	s.wantStored("done 40")
}

func poisonIsParkedByWorkers(s *shop) {
	inbox := s.newInbox()
	inbox.MaxAttempts = 2
	Background(s, inbox.Run)
	s.consume(relay.To(inbox, secret))
	poison := note{ID: "evt_poison", Type: "poison", Order: "order-poison"}
	s.deliver(poison)
	notes := paid(4, 5)
	s.deliverAll(notes, s.deliver)
	s.awaitEffects(notes)
	s.await("the poison to be parked", func() bool { return s.stored() == "done 20, parked 1" })
	s.await("the consumer to be done with the poison", func() bool { return s.wasHandled(poison) })
}

// unpublishedIsAnError publishes what the broker has no room for, and no place.
func unpublishedIsAnError(s *shop) {
	if s.queue.Oversize == 0 && s.queue.Nowhere == nil {
		s.Skip("this queue takes messages of any size, and its module cannot publish to what does not exist")
	}
	wantError := func(p broker.Publisher, size int, want, no error) {
		start := time.Now()
		err := p.Publish(s.Context(), broker.Message{Source: "notes", ID: "evt_1", Type: "paid", Body: make([]byte, size)})
		if !errors.Is(err, want) || errors.Is(err, no) || strings.Count(err.Error(), "paid evt_1") != 1 {
			s.Errorf("publishing %d bytes ended with %v: it must have %q, and name the message once", size, err, want)
		}
		if took := time.Since(start); took > longestWait/4 {
			s.Errorf("publishing %d bytes took %s, want an error at once", size, took)
		}
	}
	if s.queue.Oversize > 0 {
		wantError(s.queue.Publisher, s.queue.Oversize+1, broker.ErrTooLarge, broker.ErrNoQueue)
	}
	if s.queue.Nowhere != nil {
		wantError(s.queue.Nowhere, 1, broker.ErrNoQueue, broker.ErrTooLarge)
	}
	s.consume(relay.To(s.newFirst(), secret))
	notes := paid(4, 5)
	s.deliverAll(notes, s.deliver)
	s.awaitEffects(notes)
}
