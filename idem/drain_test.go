package idem_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// An event that came behind one in flight is looked at again a moment later, and
// Drain waits for that.
func TestDrainProcessesWhatCameBehindAnEventInFlight(t *testing.T) {
	t.Parallel()
	s := newApp(t).openInbox()
	s.inbox.Workers = 2
	stored := make(chan struct{})
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		switch n.ID {
		case "a1":
			if _, err := s.inbox.Accept(ctx, letter("a2", "a", 0)); err != nil {
				return err
			}
			close(stored)
			const postponed = `select due_at > received_at + interval '100 milliseconds'
				from idem_payloads where event like '%a2'`
			if err := s.await(ctx, postponed); err != nil {
				return err
			}
		case "b1":
			<-stored // so that its worker finds a2
		}
		return pay(ctx, tx, n)
	})
	s.store(letter("a1", "a", 0), letter("b1", "b", 0))
	s.drain(3)
	s.wantEffects(3)
}
