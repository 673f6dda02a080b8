//go:build long

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// Rows move after they were claimed: no payload is lost, and nothing waits for
// what is not there.
func TestNoPayloadIsLostWhenItsRowMoves(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(m *app){
		"VACUUM FULL of the payloads": func(m *app) { m.Exec(`vacuum full idem_payloads`) },
		"VACUUM FULL of the events":   func(m *app) { m.Exec(`vacuum full idem_events`) },
		"Requeue of what is pending": func(m *app) {
			if _, err := m.Inbox.Requeue(context.Background(), idem.Filter{States: []idem.State{idem.StatePending}}); err != nil {
				m.Error(err)
			}
		},
		"the rows are updated": func(m *app) {
			m.Exec(`update idem_events set type = type where event in (select event from idem_events where state = 'pending' for update skip locked)`)
			m.Exec(`update idem_payloads set source = source where event in (select event from idem_payloads for update skip locked)`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const events = 40
			m := openInboxApp(t, poolOf(t, 8))
			m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if n.ID == "parks" {
					return idem.NoRetry(errors.New("no such order"))
				}
				return pay(ctx, tx, n)
			})
			for n := range events {
				m.Store(letter(fmt.Sprint(n), fmt.Sprint(n%8), n+1))
			}
			m.Store(letter("parks", "p", 1), letter("behind", "p", 2))
			var moves atomic.Int32
			between := func() { // not without end: two workers could requeue the same event away from each other
				if moves.Add(1) <= 3*events {
					happens(m)
				}
			}
			for range 2 { // processes
				i := idem.NewInbox(m.Pool, &meanwhile{m.Notes, between})
				i.Workers, i.PassParked, i.Logger, i.Observe, i.Poll = 3, true, m.Logger(), m.Observe, 10*time.Millisecond
				defer m.Start(i)()
			}
			m.Until(`select count(*) = $1 from idem_events where state = 'done'`, events+1)
			m.WantEffects(events + 1)
			m.WantState("parks", idem.StateParked)
			m.WantPayload("parks", string(letter("parks", "p", 1).Payload))
			if _, err := m.Inbox.Prune(t.Context()); err != nil {
				t.Error(err)
			}
			m.WantPayload("parks", string(letter("parks", "p", 1).Payload))
			if blocked, _, err := operator.New(m.Inbox, "").Blocked(t.Context(), 100); len(blocked) > 0 || err != nil {
				t.Errorf("Blocked = %+v, %v, want none", blocked, err)
			}
		})
	}
}

// What a transaction at a stricter isolation level did not see, the workers find.
func TestEventHeldBackBehindNothingGoesOn(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.On(pay)
	s.Store(letter("a", "o", 1))
	s.Exec(`update idem_payloads set due_at = null`)
	s.Drain(1)
	s.WantState("a", idem.StateDone)
}
