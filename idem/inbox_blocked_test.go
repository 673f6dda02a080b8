package idem_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
)

func TestEventThatFailsHoldsItsKeyAndNoOther(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.inbox.Backoff = func(int) time.Duration { return time.Hour }
	var fixed atomic.Bool
	m.exec(`alter table effects add n serial`)
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "a1" && !fixed.Load() {
			return errors.New("no such order")
		}
		return pay(ctx, tx, n)
	})
	m.store(letter("a1", "a", 1), letter("a2", "a", 2))
	m.start(m.inbox)
	m.wantWorked(idem.Retrying)
	m.store(letter("b1", "b", 3), letter("b2", "b", 4)) // workers that find these have passed a's
	m.wantWorked(idem.Done, idem.Done)
	m.wantRow("a2", `(state, attempts, claimed_by)`, `(pending,0,)`)
	fixed.Store(true)
	m.exec(`update idem_payloads set due_at = now() where due_at > now()`)
	m.wantWorked(idem.Done, idem.Done)
	got := queryOne[[]string](m, `select array_agg(event order by n) from effects`)
	if diff := cmp.Diff([]string{"b1", "b2", "a1", "a2"}, got); diff != "" {
		t.Error("order (-want +got):\n" + diff)
	}
}

func TestThousandKeysOfWhichSomeAreBlockedStarveNobody(t *testing.T) {
	t.Parallel()
	const keys, blocked = 1000, 100
	m := newInboxApp(t)
	m.inbox.Workers = 4
	m.on(pay)
	var deliveries sync.WaitGroup
	for n := range 50 {
		deliveries.Go(func() {
			for key := n; key < keys; key += 50 {
				m.store(letter(fmt.Sprintf("%d-1", key), fmt.Sprint(key), 1), letter(fmt.Sprintf("%d-2", key), fmt.Sprint(key), 2))
			}
		})
	}
	deliveries.Wait()
	// Half of the blocked keys wait for a retry, half for somebody to act.
	m.exec(`update idem_payloads set due_at = now() + interval '1 hour'
		where event in (select event from idem_events where key in (select n::text from generate_series(0, 499, 10) n) and event like '%-1')`)
	m.exec(`with parked as (update idem_events set state = 'parked'
			where key in (select n::text from generate_series(500, 999, 10) n) and event like '%-1' returning event)
		update idem_payloads set due_at = null where event in (select event from parked)`)
	m.start(m.inbox)
	for range 2 * (keys - blocked) {
		m.wantWorked(idem.Done)
	}
	if n := queryOne[int](m, `select count(*) from idem_events where state <> 'done' and key like '%0'`); n != 2*blocked {
		t.Errorf("%d events of blocked keys are left, want %d", n, 2*blocked)
	}
}

func TestParkedEventHoldsItsKeyUntilSomebodyActs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act  func(ctx context.Context, m *app) error
		want []string // effects, in order
	}{
		"Replay": {func(ctx context.Context, m *app) error {
			_, err := m.inbox.Replay(ctx, idem.Filter{})
			return err
		}, []string{"b1", "a1", "a2"}},
		"Requeue": {func(ctx context.Context, m *app) error {
			_, err := m.inbox.Requeue(ctx, idem.Filter{})
			return err
		}, []string{"b1", "a1", "a2"}},
		"Discard": {func(ctx context.Context, m *app) error {
			_, err := m.inbox.Discard(ctx, idem.Filter{IDs: []string{"a1"}}, "paid in cash")
			return err
		}, []string{"b1", "a2"}},
		"it is delivered again": {func(ctx context.Context, m *app) error {
			_, err := m.inbox.Accept(ctx, letter("a1", "a", 1))
			return err
		}, []string{"b1", "a1", "a2"}},
		"an inline delivery of it": {func(ctx context.Context, m *app) error {
			_, err := m.processor.Accept(ctx, letter("a1", "a", 1))
			return err
		}, []string{"b1", "a1", "a2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newInboxApp(t)
			var fixed atomic.Bool
			m.exec(`alter table effects add n serial`)
			m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if n.ID == "a1" && !fixed.Load() {
					return idem.NoRetry(errors.New("no such order"))
				}
				return pay(ctx, tx, n)
			})
			m.processor = m.newProcessor()
			m.store(letter("a1", "a", 1), letter("a2", "a", 2))
			m.start(m.inbox)
			m.wantWorked(idem.Parked)
			m.store(letter("b1", "b", 3)) // workers that find it have passed a's
			m.wantWorked(idem.Done)
			m.wantRow("a2", `(state, attempts, claimed_by)`, `(pending,0,)`)
			fixed.Store(true)
			if err := c.act(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			m.until(`select not exists (select from idem_payloads)`)
			got := queryOne[[]string](m, `select array_agg(event order by n) from effects`)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error("order (-want +got):\n" + diff)
			}
		})
	}
}

func TestPassParkedLetsTheKeyGoOn(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.inbox.PassParked = true
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "a1" {
			return idem.NoRetry(errors.New("no such order"))
		}
		return pay(ctx, tx, n)
	})
	m.store(letter("a1", "a", 1), letter("a2", "a", 2))
	m.start(m.inbox)
	m.wantWorked(idem.Parked, idem.Done)
	m.wantState("a1", idem.StateParked)
	m.wantPayload("a1", string(letter("a1", "a", 1).Payload))
}

// A waiting event is discarded while the first of its lane commits. Neither of
// the two transactions sees the other, and yet what is behind both goes on.
func TestDiscardBehindAnEventThatCommitsHoldsUpNobody(t *testing.T) {
	t.Parallel()
	m := openInboxApp(t, poolOf(t, 8))
	m.exec(`create function hold() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(hashtext(current_schema())); return null; end $$;
		create trigger hold after delete on idem_payloads for each row when (old.event like '%second') execute function hold()`)
	entered, release := make(chan struct{}), make(chan struct{})
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "first" {
			close(entered)
			<-release
		}
		return pay(ctx, tx, n)
	})
	m.store(letter("first", "o1", 1), letter("second", "o1", 2), letter("third", "o1", 3))
	m.exec(`update idem_payloads set due_at = null where event not like '%first'`) // as workers hold them back
	m.start(m.inbox)
	<-entered
	holder, err := m.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := holder.Exec(t.Context(), `select pg_advisory_xact_lock(hashtext(current_schema()))`); err != nil {
		t.Fatal(err)
	}
	discarded := make(chan error, 1)
	go func() {
		_, err := m.inbox.Discard(context.Background(), idem.Filter{IDs: []string{"second"}, States: []idem.State{idem.StatePending}}, "a mistake")
		discarded <- err
	}()
	const waiting = `select count(*) > 0 from pg_stat_activity where application_name = current_setting('application_name')
		and wait_event_type = 'Lock' and wait_event = $1`
	m.until(waiting, "advisory") // the Discard
	close(release)
	m.until(waiting, "transactionid") // the commit of first, for the Discard
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-discarded; err != nil {
		t.Fatal(err)
	}
	m.wantWorked(idem.Done, idem.Done)
	m.wantState("third", idem.StateDone)
}

// An event comes, and is held back, while one before it is being discarded, with
// many others perhaps. The commit of the first of the lane waits for the discarded
// one, and promotes nothing.
func TestEventThatIsHeldBackDuringADiscardGoesOn(t *testing.T) {
	t.Parallel()
	m := openInboxApp(t, poolOf(t, 8))
	m.on(pay)
	const lock = `pg_advisory_xact_lock(hashtext(current_schema()))`
	m.exec(`create function hold() returns trigger language plpgsql as $$ begin perform ` + lock + `; return null; end $$;
		create constraint trigger hold after delete on idem_payloads deferrable initially deferred
			for each row when (old.event like '%second') execute function hold()`)
	claim := func() store.Claims {
		t.Helper()
		found, err := store.FindClaims(t.Context(), m.pool, store.Search{Source: "notes", Limit: 10, Worker: 1, Crashed: 2})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	m.store(letter("first", "o1", 1), letter("second", "o1", 2))
	first := claim().Claims[0]
	holder, err := m.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Rollback(context.Background())
	if _, err := holder.Exec(t.Context(), `select `+lock); err != nil {
		t.Fatal(err)
	}
	discarded := make(chan error, 1)
	go func() {
		_, err := m.inbox.Discard(context.Background(), idem.Filter{IDs: []string{"second"}, States: []idem.State{idem.StatePending}}, "a mistake")
		discarded <- err
	}()
	const waiting = `select count(*) > 0 from pg_stat_activity where application_name = current_setting('application_name')
		and wait_event_type = 'Lock' and wait_event = $1`
	m.until(waiting, "advisory") // the Discard, at its commit
	m.store(letter("third", "o1", 3))
	claim() // holds third back, behind first
	if ended, err := store.EndClaim(t.Context(), m.pool, first, store.End{State: store.Pending}); !ended || err != nil {
		t.Fatal(ended, err)
	}
	m.start(m.inbox)
	m.until(waiting, "transactionid") // the commit of first, for the Discard
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-discarded; err != nil {
		t.Fatal(err)
	}
	m.wantWorked(idem.Done)
	if queryOne[bool](m, `select exists (select from idem_payloads where event like '%third' and due_at is null)`) {
		t.Fatal("third is held back behind nothing")
	}
	m.wantWorked(idem.Done)
}
