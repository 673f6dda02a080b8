package idem_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/outbox"
)

// What is executed with COMMIT finds its tables whatever the handler has set for its
// transaction. What the handler declares is executed with the handler's settings.
func TestHandlerMaySetSearchPathAndRoleForItsTransaction(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"search_path": "pg_catalog", "role": "pg_monitor"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, w := newInboxApp(t), &fakeBroker{}
			outbox := outbox.New(s.pool, "shop", w)
			s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := pay(ctx, tx, n); err != nil {
					return err
				}
				if _, err := tx.Exec(ctx, fmt.Sprintf(`set local %s = %s`, name, value)); err != nil {
					return err
				}
				idem.ExecAtCommit(ctx, `select 1 / (current_setting($1) = $2)::int`, name, value)
				return outbox.Emit(ctx, paidMessage(n))
			})
			s.store(letter("e1", "o1", 1))
			s.store(letter("e2", "o1", 2))
			s.drain(2)
			s.wantEffects(2)
			outbox.Logger = s.logger()
			if err := outbox.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.want(t, "order.paid o1 e1", "order.paid o1 e2")
		})
	}
}

// Who wants no limit sets the largest number that there is.
func TestLimitsMayBeAsLargeAsTheirTypes(t *testing.T) {
	t.Parallel()
	t.Run("ParkAfter", func(t *testing.T) {
		t.Parallel()
		s := newApp(t)
		s.processor.ParkAfter = math.MaxInt
		s.on(payAndFail)
		s.wantAnswer(paid("e1"), http.StatusServiceUnavailable)
		s.wantState("e1", idem.StateRetrying)
		s.wantPayload("e1", paid("e1"))
	})
	t.Run("Timeout", func(t *testing.T) {
		t.Parallel()
		s := newInboxApp(t)
		s.inbox.Timeout = math.MaxInt64
		s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
			if !queryOne[bool](s, `select bool_and(claimed_by is not null) from idem_events`) {
				t.Error("the claim has ended before its attempt began")
			}
			return pay(ctx, tx, n)
		})
		s.store(letter("e1", "o1", 0))
		s.drain(1)
		s.wantEffects(1)
	})
}
