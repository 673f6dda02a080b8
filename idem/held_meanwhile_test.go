package idem_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// The application was an inbox, and is inline now. Workers finish what is left, and what
// came after that.
func TestNewEventInlineWaitsForWhatIsPendingOfItsEntity(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.openInbox()
	s.store(identify([]byte(about("a", "paid", "o1"))))
	s.accepts(s.processor, identify([]byte(about("b", "refunded", "o1"))), idem.Pending)
	s.accepts(s.processor, identify([]byte(about("b", "refunded", "o1"))), idem.Duplicate)
	s.accepts(s.processor, identify([]byte(about("x", "paid", "o2"))), idem.Done)
	s.drain(2)
	s.wantLedger("x paid", "a paid", "b refunded")
}

// While the first is being replayed, in another process, the next one comes.
func TestEventWaitsForTheOneThatIsBeingReplayed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason string
		err    error // of the replay
		want   idem.Outcome
		ledger []string
	}{
		{"it is done", nil, idem.Done, []string{"a paid", "b paid"}},
		{"it fails", errors.New("no such order"), idem.Parked, nil},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			s := newTill(t)
			s.fails("a")
			s.wantAnswer(about("a", "paid", "o1"), http.StatusOK)
			s.fails()
			source := &notes{}
			entered, release := make(chan struct{}), make(chan struct{})
			idem.Handle(&source.Routes, "paid", func(ctx context.Context, tx pgx.Tx, n *note) error {
				close(entered)
				<-release
				if c.err != nil {
					return c.err
				}
				return s.book(ctx, tx, n)
			})
			other := idem.NewProcessor(s.pool, source)
			other.Logger = nil
			var both sync.WaitGroup
			both.Go(func() { _, _ = other.Replay(context.Background(), idem.Filter{}) })
			<-entered
			both.Go(func() { s.accepts(s.processor, identify([]byte(about("b", "paid", "o1"))), c.want) })
			s.until(blocked)
			close(release)
			both.Wait()
			s.wantLedger(c.ledger...)
			s.until(`select not exists (select from idem_payloads where held and due_at is not null)`)
		})
	}
}

// The next event is being stored, and finds the first one parked, while that is
// taken out of its lane: it does not wait for nothing.
func TestEventIsNotHeldBehindOneThatIsGone(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(*till) error{
		"by a replay": func(s *till) error {
			_, err := s.processor.Replay(context.Background(), idem.Filter{IDs: []string{"a"}})
			return err
		},
		"by a discard": func(s *till) error {
			_, err := s.processor.Discard(context.Background(), idem.Filter{IDs: []string{"a"}}, "by hand")
			return err
		},
		"by Prune": func(s *till) error {
			s.exec(`update idem_events set received_at = '2020-01-01' where state = 'parked'`)
			s.processor.ParkedRetention = 50 * 24 * time.Hour
			s.wantSeen(s.processor)
			_, err := s.processor.Prune(context.Background())
			return err
		},
		"by PassParked": func(s *till) error {
			s.processor.PassParked = true
			return s.processor.GoOn(context.Background())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTill(t)
			s.fails("a")
			s.wantAnswer(about("a", "paid", "o1"), http.StatusOK)
			s.fails()
			tx, err := s.pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(context.Background()) }()
			held, err := store.HoldNew(t.Context(), inTx{tx}, store.Event(identify([]byte(about("b", "paid", "o1")))))
			if err != nil || held != (store.Held{By: "a", State: store.Parked}) {
				t.Fatalf("it is held by %+v, %v", held, err)
			}
			taken := make(chan error, 1)
			go func() { taken <- take(s) }()
			s.until(blocked)
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-taken; err != nil {
				t.Fatal(err)
			}
			if err := s.processor.GoOn(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.wantState("b", idem.StateDone)
		})
	}
}

// A process dies between the commit of the first and the next: another one, or
// the same after its start, goes on.
func TestWhatADeadProcessLeftGoesOn(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.fails("a")
	for _, id := range []string{"a", "b", "c"} {
		s.wantAnswer(about(id, "paid", "o1"), http.StatusOK)
	}
	s.fails()
	// What a replay commits for a, and no more.
	err := pgx.BeginFunc(t.Context(), s.pool, func(tx pgx.Tx) error {
		b, e := &pgx.Batch{}, store.Event(identify([]byte(about("a", "paid", "o1"))))
		store.MarkStored(b, e, store.Stored{States: []string{store.Parked}, Wait: true}, new(pgtx.Session))
		b.Queue(`insert into ledger (entry) values ('a paid')`)
		store.Promote(b, e.Lane(), nil)
		return tx.SendBatch(t.Context(), b).Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // processes
		p := idem.NewProcessor(s.pool, s.handlers())
		p.Logger = s.logger()
		s.run(p)
	}
	s.untilLedger(3)
	s.wantLedger("a paid", "b paid", "c paid")
}
