//go:build long

package idemtest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/asaas"
)

func TestAnyOrderPassesHandlersThatAreRightInAnyOrder(t *testing.T) {
	t.Parallel()
	for why, copyState := range map[string]onPayment{
		"it compares times": newest,
		"it waits for the event before": func(ctx context.Context, tx pgx.Tx, e *asaas.PaymentEvent) error {
			before := map[asaas.PaymentStatus]string{"CONFIRMED": "unpaid", "RECEIVED": "CONFIRMED", "REFUNDED": "RECEIVED"}
			tag, err := tx.Exec(ctx, `update orders set status = $1 where coalesce(status, 'unpaid') = $2`, e.Payment.Status, before[e.Payment.Status])
			if err == nil && tag.RowsAffected() == 0 {
				err = errors.New("too early")
			}
			return err
		},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			if says := anyOrderOf(t, copyState, fact, life(), lifeEnded); says != "" {
				t.Error(says)
			}
		})
	}
}

func TestAnyOrderPassesTheExample(t *testing.T) {
	t.Parallel()
	accountsAreRightInAnyOrder(t)
}
