package brokertest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/relay"
	"github.com/paghooks/paghooks/internal/postgres"
)

// postgresUnavailable crashes Postgres while events are consumed. The provider does not notice.
func postgresUnavailable(s *shop) {
	cluster := &postgres.Cluster{}
	if err := cluster.Start(s.Context()); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			s.Error(err)
		}
	})
	s.openDatabase(cluster.URL())
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

	const each, rounds = 10, 3
	notes := paid(8, each*rounds)
	var taken atomic.Int64
	var restarting [rounds]chan struct{} // closed when the deliveries of that round may begin
	for n := range restarting {
		restarting[n] = make(chan struct{})
	}
	close(restarting[0])
	var deliveries sync.WaitGroup
	for _, order := range orders(notes) {
		deliveries.Go(func() {
			for _, n := range order {
				<-restarting[n.N/each]
				s.deliverUntilTaken(n)
				taken.Add(1)
				s.change()
			}
		})
	}
	for n := range rounds - 1 {
		s.await("the events before a restart to be taken", func() bool { return taken.Load() >= int64((n+1)*each*8) })
		close(restarting[n+1])
		s.queue.Restart(s)
	}
	deliveries.Wait()
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
	s.deliverAll(before, s.deliverEachUntilTaken) // a busy machine may take longer than Timeout
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
	s.deliverAll(during, s.deliverEachUntilTaken)
	s.awaitEffects(append(before, during...))
	s.wantStored("done 40")
}

func poison() note { return note{ID: "evt_poison", Type: "poison", Order: "order-poison"} }

func poisonIsParkedByWorkers(s *shop) {
	inbox := s.newInbox()
	inbox.MaxAttempts = 2
	s.consume(relay.To(inbox, secret))
	Background(s, inbox.Run)
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
	Background(s, inbox.Run)
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
	Background(s, inbox.Run)

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
