package testkit

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paghooks/paghooks/idem/broker"
)

// Broker is a broker that keeps what is published, in order, and refuses what it is told to.
type Broker struct {
	Refuse func(broker.Message) error // nil refuses nothing

	mu        sync.Mutex
	published []broker.Message
}

// Publish keeps a message.
func (b *Broker) Publish(_ context.Context, m broker.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.Refuse != nil {
		if err := b.Refuse(m); err != nil {
			return err
		}
	}
	b.published = append(b.published, m)
	return nil
}

// Published returns what was published.
func (b *Broker) Published() []broker.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]broker.Message(nil), b.published...)
}

// Want checks what was published, as "type key body".
func (b *Broker) Want(t testing.TB, want ...string) {
	t.Helper()
	var got []string
	for _, m := range b.Published() {
		got = append(got, fmt.Sprintf("%s %s %s", m.Type, m.Key, m.Body))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("published (-want +got):\n" + diff)
	}
}
