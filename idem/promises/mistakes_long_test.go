//go:build long

package promises_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

// On the connection itself nothing refuses a COMMIT, which is noticed: work and record are committed
// together, so the event is done, and what the handler did is an error all the same.
func TestHandlerThatCommitsOnTheConnectionHasDoneItsEvent(t *testing.T) {
	t.Parallel()
	for _, sql := range []string{"commit", "commit and chain", "end; begin"} {
		t.Run(sql, func(t *testing.T) {
			t.Parallel()
			eachWay(t, func(t *testing.T, w *way) {
				runs := 0
				w.begin(patience, func(ctx context.Context, tx pgx.Tx, n *note) error {
					if err := pay(ctx, tx, n); err != nil {
						return err
					}
					if runs++; runs > 1 {
						return nil
					}
					_, err := tx.Conn().Exec(ctx, sql)
					return err
				})
				w.Deliver(paid("e1"))
				if w.inbox {
					if o := w.Next(); o.Outcome != idem.Duplicate || o.Err == nil || !strings.Contains(o.Err.Error(), ended) {
						t.Errorf("the outcome is %s, %v, want a duplicate, and what the handler did wrong", o.Outcome, o.Err)
					}
				}
				if !strings.Contains(w.Logged(), ended) {
					t.Error("the log does not tell what the handler did wrong:\n" + w.Logged())
				}
				w.look.WantState("e1", idem.StateDone)
				w.look.WantPayload("e1", "")
				w.WantAnswer(paid("e1"), http.StatusOK)
				w.look.WantEffects(1)
				w.does("e2")
				w.look.WantEffects(2)
			})
		})
	}
}
