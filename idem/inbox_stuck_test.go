package idem_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// A replay of an event that must wait marks nothing, and rolls back a moment
// later. What is freed meanwhile sees the event all the same.
func TestReplayThatMarksNothingHidesNoEvent(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.on(pay)
	s.store(letter("a", "o", 1), letter("b", "o", 2))
	found, err := store.FindClaims(t.Context(), s.pool, store.Search{Source: "notes", Limit: 10, Worker: 1, Crashed: 2})
	if err != nil || len(found.Claims) != 1 {
		t.Fatalf("claimed %v, %v", found.Claims, err)
	}
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e := letter("b", "o", 2)
	var session pgtx.Session
	b := &pgx.Batch{}
	store.MarkStored(b, store.Event(e), store.Stored{States: []string{store.Pending}, Wait: true}, &session)
	if err := tx.SendBatch(t.Context(), b).Close(); err != nil || !session.StartedAt.IsZero() {
		t.Fatalf("b is marked before its turn: %v, %v", session, err)
	}
	if ok, err := store.EndClaim(t.Context(), s.pool, found.Claims[0], store.End{State: store.Unhandled, Free: true}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if due := queryOne[bool](s, `select due_at is not null from idem_payloads where event = 'notes//b'`); !due {
		t.Error("b is held back behind nothing")
	}
}

// A parked event that comes again with another key, perhaps of a new version of
// the application, stays where it is in the order.
func TestEventThatComesAgainWithAnotherKeyKeepsItsPlace(t *testing.T) {
	t.Parallel()
	for _, inline := range []bool{false, true} {
		t.Run(fmt.Sprintf("inline=%t", inline), func(t *testing.T) {
			t.Parallel()
			s := newInboxApp(t)
			fixed := false
			s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if !fixed && n.ID == "a" {
					return idem.NoRetry(errors.New("no such order"))
				}
				return pay(ctx, tx, n)
			})
			s.store(letter("a", "o1", 1), letter("b", "o1", 2))
			s.drain(1)
			s.store(letter("d", "o2", 5))
			fixed = true
			accept := s.inbox.Accept
			if inline {
				accept = s.processor.Accept
			}
			if _, err := accept(t.Context(), letter("a", "o2", 1)); err != nil {
				t.Fatal(err)
			}
			s.drain()
			for _, id := range []string{"a", "b", "d"} {
				s.wantState(id, idem.StateDone)
			}
		})
	}
}

// A duplicate of an event in flight waits for nobody, whatever its body is, and
// so does what is stored with it.
func TestDuplicateOfAnEventInFlightIsAnsweredWhileItRuns(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	entered, release := make(chan struct{}), make(chan struct{})
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		close(entered)
		<-release
		return pay(ctx, tx, n)
	})
	s.store(letter("x", "o1", 1))
	s.start(s.inbox)
	<-entered
	other := identify([]byte(`{"id":"x","type":"paid","order":"o1","again":1}`))
	for why, e := range map[string]idem.Event{"the same body": letter("x", "o1", 1), "another body": other} {
		if o, err := s.inbox.Accept(t.Context(), e); o != idem.Duplicate || err != nil {
			t.Errorf("%s: Accept = %s, %v, want duplicate", why, o, err)
		}
	}
	close(release)
	s.wantWorked(idem.Done)
	s.wantEffects(1)
}

// What a transaction at a stricter isolation level did not see, the workers find.
func TestEventHeldBackBehindNothingGoesOn(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.on(pay)
	s.store(letter("a", "o", 1))
	s.exec(`update idem_payloads set due_at = null`)
	s.drain(1)
	s.wantState("a", idem.StateDone)
}

// angry is an argument whose encoding is application code.
type angry struct{}

func (angry) Value() (driver.Value, error) { panic("no value") }

// Somebody has locked the row of the event that is to go on, in a statement of
// their own over all rows, say. It is waited for: nobody else would promote it soon.
func TestPromotionWaitsForWhoHasLockedTheRow(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.inbox.PassParked = true
	s.on(refuseBad)
	s.store(letter("bad1", "o", 1), letter("b", "o", 2))
	found, err := store.FindClaims(t.Context(), s.pool, store.Search{Source: "notes", Limit: 10, Worker: 1, Crashed: 2})
	if err != nil || len(found.Claims) != 1 {
		t.Fatalf("claimed %v, %v", found.Claims, err)
	}
	tx, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from idem_payloads where event = 'notes//b' for update`); err != nil {
		t.Fatal(err)
	}
	settled := make(chan error, 1)
	go func() {
		_, err := store.EndClaim(context.Background(), s.pool, found.Claims[0], store.End{State: store.Parked, Free: true})
		settled <- err
	}()
	s.until(blocked)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-settled; err != nil {
		t.Fatal(err)
	}
	if due := queryOne[bool](s, `select due_at is not null from idem_payloads where event = 'notes//b'`); !due {
		t.Error("b is held back behind nothing")
	}
}
