package brokertest

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/relay"
	"github.com/paghooks/paghooks/idem/health/canary"
)

func firstTriesHandleEveryEventOnce(s *shop) {
	s.consume(relay.To(s.newFirst(), secret))
	s.consume(relay.To(s.newFirst(), secret))
	notes := paid(8, 10)
	s.deliverAll(notes, s.deliver)
	s.awaitEffects(notes)
	s.wantStored("done 80")
}

func brokersOrderSuffices(s *shop) { keepsTheOrder(s, s.newFirst()) }

func brokersOrderIsTheInboxs(s *shop) {
	inbox := s.newInbox()
	Background(s, inbox.Run)
	keepsTheOrder(s, inbox)
}

// keepsTheOrder has two consumers, which do not take every message the first time.
func keepsTheOrder(s *shop, to idem.Receiver) {
	if !s.queue.Ordered {
		s.Skip("this queue does not promise any order")
	}
	accept := relay.To(to, secret)
	var failed sync.Map
	var messages atomic.Int64
	handle := func(ctx context.Context, m broker.Message) error {
		if _, again := failed.LoadOrStore(m.ID, true); !again && messages.Add(1)%4 == 1 {
			return errors.New("not yet")
		}
		return accept(ctx, m)
	}
	s.consume(handle)
	s.consume(handle)
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

// comesAgain has a handler fail before the work and, the next time, after it.
func comesAgain(s *shop) {
	accept := relay.To(s.newFirst(), secret)
	var mu sync.Mutex
	times := map[string]int{}
	s.consume(func(ctx context.Context, m broker.Message) error {
		mu.Lock()
		times[m.ID]++
		n := times[m.ID]
		mu.Unlock()
		if n == 1 {
			return errors.New("not yet")
		}
		err := accept(ctx, m)
		if n == 2 {
			err = errors.Join(err, errors.New("forgotten"))
		}
		return err
	})
	notes := paid(4, 3)
	s.deliverAll(notes, s.deliver)
	for _, n := range notes {
		s.await(n.ID+" to be handled", func() bool { return s.wasHandled(n) })
	}
	s.awaitEffects(notes)
}

// slowHandlerRunsOnce has a handler take three times as long as the broker waits, while
// another consumer has nothing to do.
func slowHandlerRunsOnce(s *shop) {
	if s.queue.AckTimeout == 0 {
		s.Skip("this queue has no ack time-out")
	}
	slow := 3 * s.queue.AckTimeout
	p := s.newFirst()
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
	done := relay.To(s.newFirst(), secret)
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
	accept := relay.To(s.newFirst(), secret)
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

// canaryGoesThrough sends two canaries, of which the second is no duplicate.
func canaryGoesThrough(s *shop) {
	inbox := s.newInbox()
	body := note{ID: "canary-of-a-shop", Type: canary.EventType}.body()
	c := canary.New("notes", s.url, body, func(h http.Header, _ []byte) { h.Set("token", token) })
	c.Logger, c.Timeout, c.Arrived = nil, longestWait, canary.Arrivals(inbox)
	s.consume(relay.To(inbox, secret))
	for range 2 {
		if err := c.Send(s.Context()); err != nil {
			s.Error(err)
		}
	}
	s.wantStored("done 1")
	if n := s.effects(); n != 0 {
		s.Errorf("%d handlers ran", n)
	}
}
