package promises_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// However long it takes, and although its row is free once its session was ended: its
// workers know of it until it returns.
func TestEventOfAHandlerThatLostItsSessionIsClaimedByNobodyElse(t *testing.T) {
	t.Parallel()
	m := openInboxApp(t, poolOf(t, 10))
	entered, release := make(chan struct{}), make(chan struct{})
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "slow" {
			var session int
			if err := tx.QueryRow(ctx, `select pg_backend_pid()`).Scan(&session); err != nil {
				return err
			}
			m.exec(fmt.Sprintf(`select pg_terminate_backend(%d)`, session))
			m.until(`select not exists (select from pg_stat_activity where pid = $1)`, session)
			close(entered)
			<-release
			return errors.New("no such order")
		}
		return pay(ctx, tx, n)
	})
	m.inbox.Backoff = func(int) time.Duration { return time.Hour }
	m.store(letter("slow", "o1", 0))
	m.start(m.inbox)
	<-entered
	other := m.newInbox(m.pool)
	m.exec(`update idem_events set claimed_at = now() - interval '1 hour'`)
	m.store(letter("e2", "o2", 0))
	for range 3 { // each of which searches all
		if err := other.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	m.wantRow("slow", "(state, starts, crashes, attempts)", "(pending,1,0,0)")
	close(release)
	m.wantWorked(idem.Done, idem.Retrying)
	m.wantRow("slow", "(state, starts, crashes, attempts, claimed_by is null)", "(pending,1,0,1,t)")
}

// Its network is cut, say: it cannot say that it is alive, and its handler is in the middle
// of a transaction.
func TestProcessThatOthersThinkDeadDoublesNothing(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"its session is alive": false, "its session was ended": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := openInboxApp(t, poolOf(t, 10))
			entered, release := make(chan int, 2), make(chan struct{})
			first := true
			m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := pay(ctx, tx, n); err != nil || !first {
					return err
				}
				first = false
				var session int
				if err := tx.QueryRow(ctx, `select pg_backend_pid()`).Scan(&session); err != nil {
					return err
				}
				entered <- session
				<-release
				return nil
			})
			m.store(letter("e1", "o1", 0))
			m.start(m.inbox)
			session := <-entered
			if lost {
				m.exec(fmt.Sprintf(`select pg_terminate_backend(%d)`, session))
				m.until(`select not exists (select from pg_stat_activity where pid = $1)`, session)
			}
			for { // its process may say between the two that it is alive
				m.exec(`delete from idem_workers`)
				if err := m.newInbox(m.pool).Drain(t.Context()); err != nil {
					t.Fatal(err)
				}
				if !lost || queryOne[bool](m, `select state = 'done' from idem_events`) {
					break
				}
			}
			close(release)
			if lost {
				m.wantWorked(idem.Done)
				if o := m.next(); o.Outcome != idem.Done && o.Outcome != idem.Duplicate { // it finds the event done, after or before its COMMIT
					t.Errorf("the outcome of the attempt whose session was ended is %s (%v), want done or a duplicate", o.Outcome, o.Err)
				}
				m.wantRow("e1", "(state, starts, crashes)", "(done,2,1)")
			} else {
				m.wantWorked(idem.Done)
				m.wantRow("e1", "(state, starts, crashes)", "(done,1,0)")
			}
			m.wantEffects(1)
		})
	}
}

// The answer to a claim was lost, or its end could not be recorded: no process has died.
func TestClaimThatItsWorkersDoNotKnowOfIsNoCrash(t *testing.T) {
	t.Parallel()
	m := openInboxApp(t, poolOf(t, 6))
	entered, release := make(chan struct{}), make(chan struct{})
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "first" {
			close(entered)
			<-release
		}
		return pay(ctx, tx, n)
	})
	m.inbox.Workers = 1
	m.store(letter("first", "o1", 0))
	m.start(m.inbox)
	<-entered
	m.store(letter("lost", "o2", 0))
	m.exec(`update idem_events set starts = 1, claimed_at = now(), claimed_by = (select id from idem_workers) where event = 'notes//lost'`)
	close(release)
	m.wantWorked(idem.Done, idem.Done)
	m.wantRow("lost", "(state, starts, crashes)", "(done,2,0)")
}

func TestRequeueIsRefusedWhereNoWorkersAreAlive(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	broken := true
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if broken {
			return idem.NoRetry(errors.New("no such order"))
		}
		return pay(ctx, tx, n)
	})
	m.store(letter("e1", "o1", 0))
	m.drain(1)
	broken = false
	requeue := func(without bool) (int64, error) {
		o := operator.New(m.inbox, "ana")
		o.RequeueWithoutWorkers = without
		return acted(t.Context(), "order 2 is there now")(o.PlanRequeue(t.Context(), idem.Filter{}))
	}
	for _, left := range []string{"", "now() - interval '1 minute'", "now() + interval '1 hour'"} {
		if left != "" { // what died while no others were there, and before the clock was put back
			m.exec(`insert into idem_workers values (1, 'notes', 'shop-1', 7, now(), ` + left + `) on conflict (id) do update set seen_at = excluded.seen_at`)
		}
		if n, err := requeue(false); n != 0 || !errors.Is(err, operator.ErrNoWorkers) {
			t.Errorf("with a sign of %q Requeue = %d, %v, want it refused", left, n, err)
		}
	}
	m.wantState("e1", idem.StateParked)
	if n := queryOne[int](m, `select count(*) from idem_audit`); n != 0 {
		t.Errorf("%d actions are recorded, want none", n)
	}
	if n, err := requeue(true); n != 1 || err != nil {
		t.Errorf("without workers Requeue = %d, %v", n, err)
	}
	m.drain(1)
	m.exec(`update idem_events set state = 'parked'`)
	m.start(m.inbox)
	m.until(`select exists (select from idem_workers where id <> 1)`)
	if _, err := requeue(false); err != nil {
		t.Errorf("with workers Requeue = %v", err)
	}
}

// What was acknowledged before waits until the clock is that late again.
func TestClockThatWasPutBackMakesHealthRed(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.store(letter("e1", "o1", 0), letter("e2", "o1", 0))
	ahead := func(by, due string) {
		m.exec(fmt.Sprintf(`update idem_payloads set received_at = now() + interval '%s', due_at = now() + interval '%s' where source = 'notes'`, by, due))
	}
	ahead("-1 minute", "1 hour")
	m.wantHealth("it is tried again in an hour", m.newHealth(m.inbox), "", "")
	ahead("50 seconds", "50 seconds")
	m.wantHealth("a little", m.newHealth(m.inbox), "", "")
	ahead("59 minutes", "59 minutes")
	m.wantHealth("an hour", m.newHealth(m.inbox), "clock", "the database's clock was put back: what arrived before waits")
}
