package brokertest

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/relay"
)

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
