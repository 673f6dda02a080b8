package brokertest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/relay"
	"github.com/paghooks/paghooks/idem/health"
	"github.com/paghooks/paghooks/idem/health/canary"
)

func everyEventHasOneEffect(s *shop) {
	inbox := s.newInbox()
	s.consume(relay.To(inbox, secret))
	s.consume(relay.To(inbox, secret))
	Background(s, inbox.Run)
	notes := paid(8, 10)
	s.deliverAll(notes, s.deliver)
	s.awaitEffects(notes)
	s.wantStored("done 80")
}

func processorsHandleEveryEventOnce(s *shop) {
	s.consume(relay.To(s.newProcessor(), secret))
	s.consume(relay.To(s.newProcessor(), secret))
	notes := paid(8, 10)
	s.deliverAll(notes, s.deliver)
	s.awaitEffects(notes)
	s.wantStored("done 80")
}

// workersKeepTheOrder delivers the last event of each order first.
func workersKeepTheOrder(s *shop) {
	inbox := s.newInbox()
	s.consume(relay.To(inbox, secret))
	notes := paid(5, 10)
	slices.Reverse(notes)
	s.deliverAll(notes, s.deliver)
	s.await("the inbox to have all events", func() bool { return s.stored() == "pending 50" })
	Background(s, inbox.Run)
	s.awaitEffects(notes)
	s.wantOrder()
}

// brokersOrderSuffices has two consumers, and handlers that fail now and then.
func brokersOrderSuffices(s *shop) {
	if !s.queue.Ordered {
		s.Skip("this queue does not promise any order")
	}
	var failed sync.Map
	s.provider.pay = func(_ context.Context, _ pgx.Tx, n *note) error {
		if _, again := failed.LoadOrStore(n.ID, true); !again && n.N%4 == 1 {
			return errors.New("not yet")
		}
		return nil
	}
	s.consume(relay.To(s.newProcessor(), secret))
	s.consume(relay.To(s.newProcessor(), secret))
	notes := paid(5, 12)
	s.deliverAll(notes, s.deliver)
	s.awaitEffects(notes)
	s.wantOrder()
}

// brokersOrderIsTheInboxs has two consumers that now and then cannot store an event,
// beside workers that are never idle.
func brokersOrderIsTheInboxs(s *shop) {
	if !s.queue.Ordered {
		s.Skip("this queue does not promise any order")
	}
	inbox := s.newInbox()
	done := relay.To(inbox, secret)
	var messages atomic.Int64
	handle := failingFirst(func(ctx context.Context, m broker.Message, first bool) error {
		if first && messages.Add(1)%4 == 1 {
			return errors.New("not yet")
		}
		return done(ctx, m)
	})
	s.consume(handle)
	s.consume(handle)
	Background(s, inbox.Run)
	notes := paid(5, 12)
	s.deliverAll(notes, s.deliver)
	s.awaitEffects(notes)
	s.wantOrder()
}

// duplicatesHaveOneEffect delivers each event three times, by HTTP, and publishes the messages that
// the relay has published for the second time.
func duplicatesHaveOneEffect(s *shop) {
	published := &recorder{to: s.queue.Publisher}
	s.queue.Publisher = published
	s.url = s.serve(s.newRelay())
	inbox := s.newInbox()
	s.consume(relay.To(inbox, secret))
	s.consume(relay.To(inbox, secret))
	Background(s, inbox.Run)
	notes := paid(6, 5)
	var deliveries sync.WaitGroup
	for range 3 {
		deliveries.Go(func() { s.deliverAll(notes, s.deliver) })
	}
	deliveries.Wait()
	for _, m := range published.messages[:10] {
		if err := published.to.Publish(s.Context(), m); err != nil {
			s.Fatal(err)
		}
	}
	last := note{ID: "evt_last", Type: "paid", Order: "order-last"}
	s.deliver(last)
	s.awaitEffects(append(notes, last))
	s.wantStored("done 31")
}

// recorder is a publisher that remembers its messages.
type recorder struct {
	to       broker.Publisher
	mu       sync.Mutex
	messages []broker.Message
}

func (r *recorder) Publish(ctx context.Context, m broker.Message) error {
	r.mu.Lock()
	r.messages = append(r.messages, m)
	r.mu.Unlock()
	return r.to.Publish(ctx, m)
}

// comesAgainAfterItWasDone loses the consumer's knowledge that an event was done.
func comesAgainAfterItWasDone(s *shop) {
	done := relay.To(s.newProcessor(), secret)
	s.consume(failingFirst(func(ctx context.Context, m broker.Message, first bool) error {
		err := done(ctx, m)
		if first {
			err = errors.Join(err, errors.New("forgotten"))
		}
		return err
	}))
	notes := paid(4, 3)
	s.deliverAll(notes, s.deliver)
	s.awaitEffects(notes)
	for _, n := range notes {
		s.await(n.ID+" to be handled again", func() bool { return s.wasHandled(n) })
	}
	s.awaitEffects(notes)
}

func failedIsHandledAgain(s *shop) {
	done := relay.To(s.newProcessor(), secret)
	s.consume(failingFirst(func(ctx context.Context, m broker.Message, first bool) error {
		if first {
			return errors.New("not yet")
		}
		return done(ctx, m)
	}))
	notes := paid(4, 3)
	s.deliverAll(notes, s.deliver)
	s.awaitEffects(notes)
}

// failingFirst tells a handler whether a message comes for the first time.
func failingFirst(f func(ctx context.Context, m broker.Message, first bool) error) broker.Handle {
	var known sync.Map
	return func(ctx context.Context, m broker.Message) error {
		_, again := known.LoadOrStore(m.ID, true)
		return f(ctx, m, !again)
	}
}

// slowHandlerRunsOnce has a handler take three times as long as the broker waits, while
// another consumer has nothing to do.
func slowHandlerRunsOnce(s *shop) {
	if s.queue.AckTimeout == 0 {
		s.Skip("this queue has no ack time-out")
	}
	slow := 3 * s.queue.AckTimeout
	p := s.newProcessor()
	p.Timeout = 10 * s.queue.AckTimeout
	done := relay.To(p, secret)
	var running, most atomic.Int64
	handle := func(ctx context.Context, m broker.Message) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		<-time.After(slow) // the time that the handler needs
		return done(ctx, m)
	}
	s.consume(handle)
	s.consume(handle)
	n := note{ID: "evt_slow", Type: "paid", Order: "order-slow"}
	s.deliver(n)
	s.awaitEffects([]note{n})
	s.await("the consumer to be done with it", func() bool { return s.wasHandled(n) })
	s.awaitEffects([]note{n})
	if most.Load() > 1 {
		s.Errorf("%d handlers had the message at the same time: the consumer must ask for more time before %s are over", most.Load(), s.queue.AckTimeout)
	}
}

// shutdownLosesNothing stops consumers in the middle of their work.
func shutdownLosesNothing(s *shop) {
	notes := paid(20, 5)
	s.deliverAll(notes, s.deliver)
	done := relay.To(s.newProcessor(), secret)
	for round := range 4 {
		stop := s.consume(done)
		s.await("a few events to have their effects", func() bool { return s.effects() >= 15*(round+1) })
		stop()
	}
	s.consume(done)
	s.awaitEffects(notes)
	s.wantStored("done 100")
}

// stopKeepsTheOrder stops one of two consumers while most of the messages wait, again
// and again. The first stop finds a handler that returns only once it is canceled, and
// later messages of its Key behind it.
func stopKeepsTheOrder(s *shop) {
	if !s.queue.Ordered {
		s.Skip("this queue does not promise any order")
	}
	accept := relay.To(s.newProcessor(), secret)
	var isHeld atomic.Bool
	held := make(chan struct{})
	var handling sync.Map // from a Key to the ID of its message
	handle := func(ctx context.Context, m broker.Message) error {
		if other, both := handling.LoadOrStore(m.Key, m.ID); both {
			s.Errorf("%s and %s of one Key are handled at the same time", other, m.ID)
		}
		defer handling.Delete(m.Key)
		if isHeld.CompareAndSwap(false, true) {
			close(held)
			<-ctx.Done()
			return ctx.Err()
		}
		return accept(ctx, m)
	}

	notes := paid(5, 40)
	s.deliverAll(notes, s.deliver)
	stop := s.consume(handle)
	<-held
	for round := range 3 {
		next := s.consume(handle)
		s.await("a few events to have their effects", func() bool { return s.effects() >= 25*round })
		stop()
		stop = next
	}
	s.awaitEffects(notes)
	s.wantOrder()
}

// canaryGoesThrough has a canary delivered to the relay while a consumer runs, while none does, and
// while one has another secret.
func canaryGoesThrough(s *shop) {
	inbox := s.newInbox()
	body := note{ID: "canary-of-a-shop", Type: canary.EventType}.body()
	c := canary.New("notes", s.url, body, func(h http.Header, _ []byte) { h.Set("token", token) })
	c.Logger, c.Arrived = nil, canary.Arrivals(inbox)
	h := health.New(c)
	h.Logger = nil
	healthy := func() (bool, string) {
		checks := c.Examine(s.Context(), h.Limits)
		return checks[0].Healthy, checks[0].Says
	}

	c.Timeout = longestWait
	stop := s.consume(relay.To(inbox, secret))
	for range 2 { // the second is no duplicate of the first
		if err := c.Send(s.Context()); err != nil {
			s.Error(err)
		}
		if well, says := healthy(); !well || says != "it was handled" {
			s.Errorf("while a consumer runs, health says %q, %t", says, well)
		}
	}
	s.wantStored("done 1")
	if n := s.effects(); n != 0 {
		s.Errorf("%d handlers ran", n)
	}
	stop()

	// On a busy machine a second may be over before the relay has answered: then it is sent again.
	fail := func(says string) error {
		for {
			err := c.Send(s.Context())
			if err == nil || strings.Contains(err.Error(), says) || s.Context().Err() != nil ||
				!strings.Contains(err.Error(), "there was no answer within") && !strings.Contains(err.Error(), "could not be asked") {
				return err
			}
		}
	}
	c.Timeout = time.Second
	for range 2 {
		const says = "no consumer has handled it within 1s"
		if err := fail(says); err == nil || !strings.Contains(err.Error(), says) {
			s.Errorf("while no consumer runs: %v", err)
		}
	}
	if well, says := healthy(); well || !strings.Contains(says, "see whether consumers run") {
		s.Errorf("while no consumer runs, health says %q, %t", says, well)
	}

	stop = s.consume(relay.To(inbox, "another secret, of thirty-two characters"))
	if err := fail("have the relay's secret"); err == nil || !strings.Contains(err.Error(), "have the relay's secret") {
		s.Errorf("while the consumer has another secret: %v", err)
	}
	stop()

	c.Timeout = longestWait
	s.consume(relay.To(inbox, secret))
	if err := c.Send(s.Context()); err != nil {
		s.Error(err)
	}
	if well, says := healthy(); !well {
		s.Errorf("when a consumer runs again, health says %q", says)
	}
}
