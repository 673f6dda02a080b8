package promises_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// A payment is parked and then refunded at the provider. Were the refund booked
// first, the replay would pay a refunded order.
func TestRefundIsBookedAfterThePaymentThatWasParked(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.fails("received")
	s.wantAnswer(about("received", "paid", "o1"), http.StatusOK)
	s.wantHealth("nothing waits for it", s.newHealth(s.first), "parked", "1 events are parked, and nobody has acknowledged them since they failed: first received, paid")
	for range 2 { // and again, as providers do
		s.wantAnswer(about("refund", "refunded", "o1"), http.StatusOK)
	}
	s.wantAnswer(about("other", "paid", "o2"), http.StatusOK)
	s.wantLedger("other paid")
	s.wantRow("refund", "(state, attempts, last_error)", `(parked,0,"waits for received")`)
	s.wantPayload("refund", about("refund", "refunded", "o1"))
	s.wantHealth("one waits", s.newHealth(s.first), "held and parked", "1 events of 1 entities wait for a parked one: first 1 of o1, refunded, for received")
	blocked, _, err := operator.New(s.first, "").Blocked(t.Context(), 100)
	if err != nil || len(blocked) != 1 || blocked[0].ID != "received" || blocked[0].Key != "o1" || blocked[0].Waiting != 1 {
		t.Errorf("Blocked = %+v, %v, want o1 with one behind received", blocked, err)
	}
	if o, err := s.first.DryRun(t.Context(), identify([]byte(about("new", "refunded", "o1")))); o != idem.Done || err != nil {
		t.Errorf("DryRun = %s, %v, want done", o, err)
	}
	s.replays(idem.Filter{IDs: []string{"refund"}}, idem.Replayed{Failed: 1})

	s.fails()
	s.replays(idem.Filter{IDs: []string{"received"}}, idem.Replayed{Done: 2})
	s.wantLedger("other paid", "received paid", "refund refunded")
	s.wantState("refund", idem.StateDone)
	s.wantPayload("refund", "")
	s.wantHealth("it went on", s.newHealth(s.first), "", "")
	s.wantAnswer(about("refund", "refunded", "o1"), http.StatusOK)
	s.wantAnswer(about("more", "paid", "o1"), http.StatusOK)
	s.wantLedger("other paid", "received paid", "refund refunded", "more paid")
}

// An event that cannot be read may be the payment.
func TestWhatFollowsAnEventThatDoesNotDecodeWaits(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	unreadable := identify([]byte(`{"id":"x","type":"paid","order":"o1"}`))
	unreadable.Payload = []byte(`{"id":"x","type":"paid","order":7}`)
	s.accepts(s.first, unreadable, idem.Parked)
	s.accepts(s.first, at(0, "refund", "refunded", "o1"), idem.Done) // by the provider's clock it is older
	s.accepts(s.first, identify([]byte(about("next", "refunded", "o1"))), idem.Parked)
	s.wantRow("next", "last_error", "waits for x")
}

// The provider, or a person there, sends the parked event again.
func TestRedeliveryThatSucceedsGoesOnWithWhatWaits(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.fails("received")
	for _, id := range []string{"received", "refund", "again"} {
		s.wantAnswer(about(id, "paid", "o1"), http.StatusOK)
	}
	s.fails()
	s.wantAnswer(about("received", "paid", "o1"), http.StatusOK)
	s.untilLedger(3)
	s.wantLedger("received paid", "refund paid", "again paid")
}

// By the provider's clock an event that comes late is before the parked one.
func TestOlderEventThatComesLateIsTheFirst(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.fails("received", "created")
	s.accepts(s.first, at(3, "received", "paid", "o1"), idem.Parked)
	s.accepts(s.first, at(4, "refund", "refunded", "o1"), idem.Parked)
	s.accepts(s.first, at(1, "early", "paid", "o1"), idem.Done)
	s.accepts(s.first, at(2, "created", "paid", "o1"), idem.Parked)
	s.wantRow("created", "last_error", "no such order")
	s.fails()
	s.replays(idem.Filter{IDs: []string{"received"}}, idem.Replayed{Failed: 1}) // created is before it
	s.wantLedger("early paid")
	s.replays(idem.Filter{IDs: []string{"created"}}, idem.Replayed{Done: 1})
	s.wantLedger("early paid", "created paid")
	s.accepts(s.first, at(3, "received", "paid", "o1"), idem.Done)
	s.untilLedger(4)
	s.wantLedger("early paid", "created paid", "received paid", "refund refunded")
}

func TestReplayGoesThroughEntitiesInTheProvidersOrder(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.fails("a3", "a2", "b1")
	s.accepts(s.first, at(3, "a3", "paid", "a"), idem.Parked)
	s.accepts(s.first, at(2, "a2", "paid", "a"), idem.Parked)
	s.accepts(s.first, at(4, "a4", "paid", "a"), idem.Parked)
	s.accepts(s.first, at(1, "b1", "paid", "b"), idem.Parked)
	s.fails()
	s.replays(idem.Filter{}, idem.Replayed{Done: 4})
	s.wantLedger("b1 paid", "a2 paid", "a3 paid", "a4 paid")
}

// What fails in its turn holds the rest, as the first did.
func TestEventThatFailsInItsTurnHoldsTheRest(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.fails("a", "b")
	for _, id := range []string{"a", "b", "c"} {
		s.wantAnswer(about(id, "paid", "o1"), http.StatusOK)
	}
	s.fails("b")
	s.replays(idem.Filter{IDs: []string{"a"}}, idem.Replayed{Done: 1, Failed: 1})
	s.wantLedger("a paid")
	s.wantRow("b", "(state, attempts, last_error)", `(parked,1,"no such order")`)
	s.wantHealth("c waits", s.newHealth(s.first), "held and parked", "1 of o1, paid, for b")
	s.replays(idem.Filter{IDs: []string{"c"}}, idem.Replayed{Failed: 1})
	s.fails()
	s.replays(idem.Filter{IDs: []string{"b"}}, idem.Replayed{Done: 2})
	s.wantLedger("a paid", "b paid", "c paid")
}

// Its handler was taken away: it holds nothing, as an event without a handler
// never does.
func TestEventThatHasNoHandlerInItsTurnLetsTheRestGoOn(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.fails("a")
	s.wantAnswer(about("a", "paid", "o1"), http.StatusOK)
	s.wantAnswer(about("b", "refunded", "o1"), http.StatusOK)
	s.wantAnswer(about("c", "paid", "o1"), http.StatusOK)
	s.fails()
	source := &notes{}
	idem.Handle(&source.Routes, "paid", s.book)
	p := newFirst(s.pool, source)
	p.Logger = s.logger()
	if got, err := p.Replay(t.Context(), idem.Filter{IDs: []string{"a"}}); counted(got) != [3]int{2, 0, 1} || err != nil {
		t.Errorf("Replay = %+v, %v", got, err)
	}
	s.wantState("b", idem.StateUnhandled)
	s.wantLedger("a paid", "c paid")
	s.replays(idem.Filter{}, idem.Replayed{Done: 1})
}

// Somebody gives the payment up, in a process without handlers or in another
// one: what waited for it goes on where a processor runs.
func TestDiscardOfTheFirstGoesOnWithTheRest(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.fails("a")
	for _, id := range []string{"a", "b", "c"} {
		s.wantAnswer(about(id, "paid", "o1"), http.StatusOK)
	}
	for _, c := range []struct {
		id, check, want string
	}{
		{"b", "held and parked", "1 of o1, paid, for a"}, // not the first
		{"a", "held", "1 of o1, paid, for c"},            // and now c waits for nothing but a processor that runs
		{"none", "held", "1 of o1, paid, for c"},         // it says so until then
	} {
		if _, err := s.first.Discard(t.Context(), idem.Filter{IDs: []string{c.id}}, "paid by hand"); err != nil {
			t.Fatal(err)
		}
		s.wantHealth(c.id+" is discarded", s.newHealth(s.first), c.check, c.want)
		s.wantLedger()
	}
	s.run(newFirst(s.pool, s.handlers())) // another process
	s.untilLedger(1)
	s.wantLedger("c paid")
}

// An event in the middle is given up: what is behind it still waits for the first.
func TestDiscardInTheMiddleFreesNothing(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.fails("a")
	for _, id := range []string{"a", "b", "c"} {
		s.wantAnswer(about(id, "paid", "o1"), http.StatusOK)
	}
	if n, err := s.first.Discard(t.Context(), idem.Filter{IDs: []string{"b"}}, "never mind"); n != 1 || err != nil {
		t.Errorf("Discard = %d, %v", n, err)
	}
	if err := goOn(t.Context(), s.first); err != nil {
		t.Error(err)
	}
	s.wantLedger()
	s.wantState("c", idem.StateParked)
	s.fails()
	s.wantAnswer(about("a", "paid", "o1"), http.StatusOK) // delivered again: the delivery goes on with c
	s.untilLedger(2)
	s.wantLedger("a paid", "c paid")
}

// Retention.Parked gives parked events up. One that waits was never tried.
func TestPruneOfTheFirstFreesTheRest(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.fails("a")
	for _, id := range []string{"a", "b", "c"} {
		s.wantAnswer(about(id, "paid", "o1"), http.StatusOK)
	}
	s.exec(`update idem_events set received_at = '2020-01-01'`)
	s.first.Retention.Parked = 50 * 24 * time.Hour
	s.wantSeen(s.first)
	if n, err := engineOf(s.first).DryPrune(t.Context()); n != 1 || err != nil {
		t.Errorf("DryPrune = %d, %v, want 1", n, err)
	}
	if n, err := s.first.Prune(t.Context()); n != 1 || err != nil {
		t.Errorf("Prune = %d, %v, want 1", n, err)
	}
	s.wantState("a", "")
	s.run(s.first)
	s.untilLedger(2)
	s.wantLedger("b paid", "c paid")
}

func TestPassParkedLetsTheRestGoOnInline(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.first.PassParked = true
	s.fails("a")
	s.wantAnswer(about("a", "paid", "o1"), http.StatusOK)
	s.wantAnswer(about("b", "paid", "o1"), http.StatusOK)
	s.wantLedger("b paid")
	s.fails()
	s.replays(idem.Filter{}, idem.Replayed{Done: 1})
	s.wantLedger("b paid", "a paid")
}

// The application was inline, and is an inbox now.
func TestWorkersGoOnWithWhatWasHeldInline(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.openInbox()
	s.fails("a")
	s.wantAnswer(about("a", "paid", "o1"), http.StatusOK)
	s.wantAnswer(about("b", "refunded", "o1"), http.StatusOK)
	s.store(identify([]byte(about("c", "paid", "o1"))))
	s.fails()
	s.drain(0)
	if n, err := s.inbox.Requeue(t.Context(), idem.Filter{IDs: []string{"a"}}); n != 1 || err != nil {
		t.Errorf("Requeue = %d, %v", n, err)
	}
	s.drain(3)
	s.wantLedger("a paid", "b refunded", "c paid")
}

// It waited inline, and came to an inbox again. Once it has failed itself, somebody has to look at it.
func TestEventThatWaitedInlineAndFailsInAnInboxIsOneThatFailed(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.openInbox()
	s.inbox.MaxAttempts = 1
	s.fails("a", "b")
	s.wantAnswer(about("a", "paid", "o1"), http.StatusOK)
	s.wantAnswer(about("b", "refunded", "o1"), http.StatusOK)
	s.store(identify([]byte(about("b", "refunded", "o1"))))
	if n, err := s.first.Discard(t.Context(), idem.Filter{IDs: []string{"a"}}, "by hand"); n != 1 || err != nil {
		t.Errorf("Discard = %d, %v", n, err)
	}
	s.drain(1)
	s.wantState("b", idem.StateParked)
	s.wantHealth("it has failed", s.newHealth(s.first), "parked", "1 events are parked, and nobody has acknowledged them since they failed: first b, refunded")
}

// The application was an inbox, and is inline now. Workers finish what is left, and what
// came after that.
func TestNewEventInlineWaitsForWhatIsPendingOfItsEntity(t *testing.T) {
	t.Parallel()
	s := newTill(t)
	s.openInbox()
	s.store(identify([]byte(about("a", "paid", "o1"))))
	s.accepts(s.first, identify([]byte(about("b", "refunded", "o1"))), idem.Pending)
	s.accepts(s.first, identify([]byte(about("b", "refunded", "o1"))), idem.Duplicate)
	s.accepts(s.first, identify([]byte(about("x", "paid", "o2"))), idem.Done)
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
			other := newFirst(s.pool, source)
			other.Logger = nil
			var both sync.WaitGroup
			both.Go(func() { _, _ = other.Replay(context.Background(), idem.Filter{}) })
			<-entered
			both.Go(func() { s.accepts(s.first, identify([]byte(about("b", "paid", "o1"))), c.want) })
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
			_, err := s.first.Replay(context.Background(), idem.Filter{IDs: []string{"a"}})
			return err
		},
		"by a discard": func(s *till) error {
			_, err := s.first.Discard(context.Background(), idem.Filter{IDs: []string{"a"}}, "by hand")
			return err
		},
		"by Prune": func(s *till) error {
			s.exec(`update idem_events set received_at = '2020-01-01' where state = 'parked'`)
			s.first.Retention.Parked = 50 * 24 * time.Hour
			s.wantSeen(s.first)
			_, err := s.first.Prune(context.Background())
			return err
		},
		"by PassParked": func(s *till) error {
			s.first.PassParked = true
			return goOn(context.Background(), s.first)
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
			if err := goOn(t.Context(), s.first); err != nil {
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
		p := newFirst(s.pool, s.handlers())
		p.Logger = s.logger()
		s.run(p)
	}
	s.untilLedger(3)
	s.wantLedger("a paid", "b paid", "c paid")
}

// inTx executes batches in its transaction also when they have their own.
type inTx struct{ pgx.Tx }

func (tx inTx) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	b.QueuedQueries = slices.DeleteFunc(b.QueuedQueries, func(q *pgx.QueuedQuery) bool {
		return strings.HasPrefix(q.SQL, "begin") || q.SQL == "commit"
	})
	return tx.Tx.SendBatch(ctx, b)
}

// goOn goes on with events that were held and are no more, as each Replay does.
func goOn(ctx context.Context, p *idem.Inbox) error {
	_, err := p.Replay(ctx, idem.Filter{IDs: []string{}})
	return err
}
