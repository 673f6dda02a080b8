package broker_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
)

// parking has an outbox park a message that is too large without other attempts. Once
// the broker's limit is raised, requeue it.
type parking struct{ broker.Publisher }

func (p parking) Publish(ctx context.Context, m broker.Message) error {
	err := p.Publisher.Publish(ctx, m)
	if errors.Is(err, broker.ErrTooLarge) {
		return idem.NoRetry(err)
	}
	return err
}

// small is a broker that takes small messages only.
type small struct{}

func (small) Publish(_ context.Context, m broker.Message) error {
	if len(m.Body) > 10 {
		return fmt.Errorf("small: %s %s is not published: %w", m.Type, m.ID, broker.ErrTooLarge)
	}
	return nil
}

func ExampleErrTooLarge() {
	publisher := parking{small{}} // for outbox.New
	err := publisher.Publish(context.Background(), broker.Message{ID: "1", Type: "order.paid", Body: make([]byte, 11)})
	fmt.Println(err)
	// Output:
	// small: order.paid 1 is not published: the message is too large
}
