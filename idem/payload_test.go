package idem_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

// What is stored for a replay, and what another run of the handler gets, is what was
// received, whatever a handler does to its copy.
func TestHandlerThatChangesThePayloadChangesItsCopyOnly(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	s.processor.KeepPayloads, s.processor.ParkAfter = true, 1
	again, failing := false, true
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		e, _ := idem.EventFrom(ctx)
		if string(e.Payload) != paid("e1") {
			t.Errorf("the handler got %s", e.Payload)
		}
		clear(e.Payload)
		if !again { // Postgres asks to run it again
			again = true
			_, err := tx.Exec(ctx, `do $$ begin raise exception using errcode = '40001'; end $$`)
			return err
		}
		if failing {
			return errors.New("no such order")
		}
		return pay(ctx, tx, n)
	})
	s.wantAnswer(paid("e1"), http.StatusOK)
	s.wantState("e1", idem.StateParked)
	s.wantPayload("e1", paid("e1"))
	failing = false
	s.wantReplayed(idem.Filter{}, idem.Replayed{Done: 1})
	s.wantPayload("e1", paid("e1"))
	s.wantEffects(1)
}
