package brokertest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/relay"
)

func poison() note { return note{ID: "evt_poison", Type: "poison", Order: "order-poison"} }

func poisonIsParkedByWorkers(s *shop) {
	inbox := s.newInbox()
	inbox.MaxAttempts = 2
	s.consume(relay.To(inbox, secret))
	s.inBackground(inbox.Run)
	s.deliver(poison())
	notes := paid(4, 5)
	s.deliverAll(notes, s.deliver)
	s.awaitEffects(notes)
	s.await("the poison to be parked", func() bool { return s.stored() == "done 20, parked 1" })
}

func poisonIsParkedByAProcessor(s *shop) {
	p := s.newProcessor()
	p.ParkAfter = 3
	s.consume(relay.To(p, secret))
	s.deliver(poison())
	notes := paid(4, 5)
	s.deliverAll(notes, s.deliver)
	s.awaitEffects(notes)
	s.await("the poison to be parked", func() bool { return s.stored() == "done 20, parked 1" })
	s.await("the consumer to be done with the poison", func() bool { return s.wasHandled(poison()) })
}

// unsignedIsSetAside publishes messages that are not a relay's, and some that another one signed.
func unsignedIsSetAside(s *shop) {
	inbox := s.newInbox()
	s.consume(relay.To(inbox, secret))
	s.inBackground(inbox.Run)
	forged := relay.New(s.provider, s.queue.Publisher, strings.Repeat("another secret", 3))
	forged.Logger = nil
	if _, err := forged.Accept(s.Context(), idem.Event{ID: "evt_forged", Type: "paid", Key: "order-0", Payload: paid(1, 1)[0].body()}); err != nil {
		s.Fatal(err)
	}
	for _, m := range []broker.Message{
		{Source: "notes", ID: "1", Type: "paid", Key: "order-0", Body: []byte("not a relay's")},
		{Source: "notes", ID: "2", Type: "paid"}, // without a Key and a body
	} {
		if err := s.queue.Publisher.Publish(s.Context(), m); err != nil {
			s.Fatal(err)
		}
	}
	notes := paid(4, 5)
	s.deliverAll(notes, s.deliver)
	s.awaitEffects(notes)
	s.await("the forged messages to be set aside", func() bool { return s.stored() == "done 20, parked 3" })
}

func oversizeIsRefused(s *shop) {
	if s.queue.Oversize == 0 {
		s.Skip("this queue takes messages of any size")
	}
	var mu sync.Mutex
	var refused error
	r := s.newRelay()
	r.MaxBody, r.Timeout = int64(s.queue.Oversize)+1<<20, longestWait
	r.Observe = func(_ context.Context, o idem.Observation) {
		mu.Lock()
		defer mu.Unlock()
		if o.Err != nil {
			refused = o.Err
		}
	}
	s.url = s.serve(r)
	inbox := s.newInbox()
	s.consume(relay.To(inbox, secret))
	s.inBackground(inbox.Run)

	large := note{ID: "evt_oversize", Type: "paid", Order: "order-0", Text: strings.Repeat("x", s.queue.Oversize)}
	start := time.Now()
	status, answer, err := s.post(s.Context(), s.url, large)
	if took := time.Since(start); err != nil || status != http.StatusServiceUnavailable || took > r.Timeout/4 {
		s.Errorf("an event of %d bytes was answered %d %s, %v after %s, want 503 at once", s.queue.Oversize, status, answer, err, took)
	}
	mu.Lock()
	if !errors.Is(refused, broker.ErrTooLarge) || !strings.Contains(refused.Error(), "paid shop/evt_oversize") {
		s.Errorf("the error is %v: it must have broker.ErrTooLarge, and name the message", refused)
	}
	mu.Unlock()
	notes := paid(4, 5)
	s.deliverAll(notes, s.deliver)
	s.awaitEffects(notes)
}

func unroutableIsAnError(s *shop) {
	if s.queue.Nowhere == nil {
		s.Skip("this module cannot publish to what does not exist")
	}
	ctx, cancel := context.WithTimeout(s.Context(), longestWait)
	defer cancel()
	err := s.queue.Nowhere.Publish(ctx, broker.Message{Source: "notes", ID: "evt_1", Type: "paid", Body: []byte("{}")})
	if !errors.Is(err, broker.ErrNoQueue) || errors.Is(err, broker.ErrTooLarge) || strings.Count(err.Error(), "paid evt_1") != 1 {
		s.Errorf("publishing to what does not exist ended with %v: it must have broker.ErrNoQueue, and name the message once", err)
	}
}
