//go:build unix

package idem_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/outbox"
)

// BenchmarkOutbox compares inline mode with the same handler that also emits a
// message. ratio is to the one that does not; nothing is published meanwhile.
func BenchmarkOutbox(b *testing.B) {
	url := durable(b)
	for _, distance := range []time.Duration{0, time.Millisecond} {
		b.Run(fmt.Sprintf("distance=%s/at=16", distance), func(b *testing.B) {
			pool := shopPool(b, url, distance)
			outbox := outbox.New(pool, "shop", nil)
			emitting := newBenchProcessor(pool, func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := bookOrder(ctx, tx, n); err != nil {
					return err
				}
				return outbox.Emit(ctx, broker.Message{Type: "order.paid", Key: n.Order, Body: []byte(n.ID)})
			})
			race(b, pool, 16, serve(b, "inline", newBenchProcessor(pool, bookOrder)), serve(b, "emitting", emitting))
		})
	}
}
