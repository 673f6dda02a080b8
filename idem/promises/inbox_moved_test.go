package promises_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

func TestBlockedListsEveryEntityThatWaits(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.Inbox.Backoff = func(int) time.Duration { return time.Hour }
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		switch failure := errors.New("no such order"); n.ID {
		case "parked1":
			return idem.NoRetry(failure)
		case "fails1":
			return failure
		case "later1":
			return idem.RetryAt(time.Now().Add(time.Hour), failure)
		}
		return pay(ctx, tx, n)
	})
	broken := letter("broken1", "broken", 1)
	broken.Payload = []byte(`{"id":7}`)
	m.Store(broken)
	for _, key := range []string{"parked", "fails", "later", "gone", "fine"} {
		m.Store(letter(key+"1", key, 1))
	}
	m.Exec(`delete from idem_events where event like '%gone1'`)
	for _, key := range []string{"broken", "parked", "fails", "later", "gone", "fine"} {
		m.Store(letter(key+"2", key, 2), letter(key+"3", key, 3))
	}
	m.Store(letter("alone1", "alone", 1))
	m.Drain()
	got, _, err := operator.New(m.Inbox, "").Blocked(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	const failure = "no such order"
	want := []operator.Blocked{
		{Key: "broken", ID: "broken1", Type: "paid", State: idem.StateParked, Waiting: 2},
		{Key: "parked", ID: "parked1", Type: "paid", State: idem.StateParked, LastError: failure, Waiting: 2},
		{Key: "fails", ID: "fails1", Type: "paid", State: idem.StatePending, LastError: failure, Waiting: 2},
		{Key: "later", ID: "later1", Type: "paid", State: idem.StatePending, LastError: failure, Waiting: 2},
		{ID: "gone1", Waiting: 2},
	}
	if len(got) > 0 && got[0].LastError == "" {
		t.Error("it is not said why the first event does not decode")
	}
	for n, b := range got {
		if due := !b.DueAt.IsZero(); due != (b.State == idem.StatePending || b.State == "") {
			t.Errorf("%s is due at %s", b.ID, b.DueAt)
		}
		if n == 0 {
			got[n].LastError = ""
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(operator.Blocked{}, "Age", "DueAt")); diff != "" {
		t.Error("Blocked (-want +got):\n" + diff)
	}
	stats, err := m.Inbox.Stats(t.Context())
	if stats.BlockedKeys != int64(len(want)) || err != nil {
		t.Errorf("Stats tells of %d blocked keys, %v, want %d", stats.BlockedKeys, err, len(want))
	}
}

// A replay of an event that must wait marks nothing, and rolls back a moment
// later. What is freed meanwhile sees the event all the same.
func TestReplayThatMarksNothingHidesNoEvent(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.On(pay)
	s.Store(letter("a", "o", 1), letter("b", "o", 2))
	found, err := store.ClaimEvents(t.Context(), s.Pool, store.Search{Source: "notes", Limit: 10, Worker: 1, Crashed: 2})
	if err != nil || len(found.Claims) != 1 {
		t.Fatalf("claimed %v, %v", found.Claims, err)
	}
	tx, err := s.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e := letter("b", "o", 2)
	var session pgtx.Session
	b := &pgx.Batch{}
	store.MarkStored(b, store.Event(e), store.Stored{Wait: true}, &session)
	if err := tx.SendBatch(t.Context(), b).Close(); err != nil || !session.StartedAt.IsZero() {
		t.Fatalf("b is marked before its turn: %v, %v", session, err)
	}
	if ok, err := store.EndClaim(t.Context(), s.Pool, found.Claims[0], store.End{State: store.Unhandled, LeavesLane: true}); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if due := queryOne[bool](s, `select due_at is not null from idem_payloads where event = 'notes//b'`); !due {
		t.Error("b is held back behind nothing")
	}
}

// A duplicate of an event in flight waits for nobody, whatever its body is, and
// so does what is stored with it.
func TestDuplicateOfAnEventInFlightIsAnsweredWhileItRuns(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	entered, release := make(chan struct{}), make(chan struct{})
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		close(entered)
		<-release
		return pay(ctx, tx, n)
	})
	s.Store(letter("x", "o1", 1))
	s.Start(s.Inbox)
	<-entered
	other := identify([]byte(`{"id":"x","type":"paid","order":"o1","again":1}`))
	for why, e := range map[string]idem.Event{"the same body": letter("x", "o1", 1), "another body": other} {
		if o, err := s.Inbox.Accept(t.Context(), e); o != idem.Duplicate || err != nil {
			t.Errorf("%s: Accept = %s, %v, want duplicate", why, o, err)
		}
	}
	close(release)
	s.WantWorked(idem.Done)
	s.WantEffects(1)
}

// Somebody has locked the row of the event that is to go on, in a statement of
// their own over all rows, say. It is waited for: nobody else would promote it soon.
func TestPromotionWaitsForWhoHasLockedTheRow(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.Inbox.PassParked = true
	s.On(refuseBad)
	s.Store(letter("bad1", "o", 1), letter("b", "o", 2))
	found, err := store.ClaimEvents(t.Context(), s.Pool, store.Search{Source: "notes", Limit: 10, Worker: 1, Crashed: 2})
	if err != nil || len(found.Claims) != 1 {
		t.Fatalf("claimed %v, %v", found.Claims, err)
	}
	tx, err := s.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from idem_payloads where event = 'notes//b' for update`); err != nil {
		t.Fatal(err)
	}
	settled := make(chan error, 1)
	go func() {
		_, err := store.EndClaim(context.Background(), s.Pool, found.Claims[0], store.End{State: store.Parked, LeavesLane: true})
		settled <- err
	}()
	s.Until(blocked)
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

// meanwhile is a source that has something happen between the claim of an event
// and its mark.
type meanwhile struct {
	*notes
	happens func()
}

func (m *meanwhile) Route(e idem.Event) (idem.Work, error) {
	m.happens()
	return m.notes.Route(e)
}

// angry is an argument whose encoding is application code.
type angry struct{}

func (angry) Value() (driver.Value, error) { panic("no value") }
