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
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "slow" {
			var session int
			if err := tx.QueryRow(ctx, `select pg_backend_pid()`).Scan(&session); err != nil {
				return err
			}
			m.Exec(fmt.Sprintf(`select pg_terminate_backend(%d)`, session))
			m.Until(`select not exists (select from pg_stat_activity where pid = $1)`, session)
			close(entered)
			<-release
			return errors.New("no such order")
		}
		return pay(ctx, tx, n)
	})
	m.Inbox.Backoff = func(int) time.Duration { return time.Hour }
	m.Store(letter("slow", "o1", 0))
	m.Start(m.Inbox)
	<-entered
	other := m.NewInbox(m.Pool)
	m.Exec(`update idem_events set claimed_at = now() - interval '1 hour'`)
	m.Store(letter("e2", "o2", 0))
	for range 3 { // each of which searches all
		if err := other.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	m.WantRow("slow", "(state, starts, crashes, attempts)", "(pending,1,0,0)")
	close(release)
	m.WantWorked(idem.Done, idem.Retrying)
	m.WantRow("slow", "(state, starts, crashes, attempts, claimed_by is null)", "(pending,1,0,1,t)")
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
			m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
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
			m.Store(letter("e1", "o1", 0))
			m.Start(m.Inbox)
			session := <-entered
			if lost {
				m.Exec(fmt.Sprintf(`select pg_terminate_backend(%d)`, session))
				m.Until(`select not exists (select from pg_stat_activity where pid = $1)`, session)
			}
			for { // its process may say between the two that it is alive
				m.Exec(`delete from idem_workers`)
				if err := m.NewInbox(m.Pool).Drain(t.Context()); err != nil {
					t.Fatal(err)
				}
				if !lost || queryOne[bool](m, `select state = 'done' from idem_events`) {
					break
				}
			}
			close(release)
			if lost {
				m.WantWorked(idem.Done)
				if o := m.Next(); o.Outcome != idem.Done && o.Outcome != idem.Duplicate { // it finds the event done, after or before its COMMIT
					t.Errorf("the outcome of the attempt whose session was ended is %s (%v), want done or a duplicate", o.Outcome, o.Err)
				}
				m.WantRow("e1", "(state, starts, crashes)", "(done,2,1)")
			} else {
				m.WantWorked(idem.Done)
				m.WantRow("e1", "(state, starts, crashes)", "(done,1,0)")
			}
			m.WantEffects(1)
		})
	}
}

// The answer to a claim was lost, or its end could not be recorded: no process has died.
func TestClaimThatItsWorkersDoNotKnowOfIsNoCrash(t *testing.T) {
	t.Parallel()
	m := openInboxApp(t, poolOf(t, 6))
	entered, release := make(chan struct{}), make(chan struct{})
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "first" {
			close(entered)
			<-release
		}
		return pay(ctx, tx, n)
	})
	m.Inbox.Workers = 1
	m.Store(letter("first", "o1", 0))
	m.Start(m.Inbox)
	<-entered
	m.Store(letter("lost", "o2", 0))
	m.Exec(`update idem_events set starts = 1, claimed_at = now(), claimed_by = (select id from idem_workers) where event = 'notes//lost'`)
	close(release)
	m.WantWorked(idem.Done, idem.Done)
	m.WantRow("lost", "(state, starts, crashes)", "(done,2,0)")
}

func TestRequeueIsRefusedWhereNoWorkersAreAlive(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	broken := true
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if broken {
			return idem.NoRetry(errors.New("no such order"))
		}
		return pay(ctx, tx, n)
	})
	m.Store(letter("e1", "o1", 0))
	m.Drain(1)
	broken = false
	requeue := func(without bool) (int64, error) {
		o := operator.New(m.Inbox, "ana")
		o.RequeueWithoutWorkers = without
		return acted(t.Context(), "order 2 is there now")(o.PlanRequeue(t.Context(), idem.Filter{}))
	}
	for _, left := range []string{"", "now() - interval '1 minute'", "now() + interval '1 hour'"} {
		if left != "" { // what died while no others were there, and before the clock was put back
			m.Exec(`insert into idem_workers values (1, 'notes', 'shop-1', 7, now(), ` + left + `) on conflict (id) do update set seen_at = excluded.seen_at`)
		}
		if n, err := requeue(false); n != 0 || !errors.Is(err, operator.ErrNoWorkers) {
			t.Errorf("with a sign of %q Requeue = %d, %v, want it refused", left, n, err)
		}
	}
	m.WantState("e1", idem.StateParked)
	if n := queryOne[int](m, `select count(*) from idem_audit`); n != 0 {
		t.Errorf("%d actions are recorded, want none", n)
	}
	if n, err := requeue(true); n != 1 || err != nil {
		t.Errorf("without workers Requeue = %d, %v", n, err)
	}
	m.Drain(1)
	m.Exec(`update idem_events set state = 'parked'`)
	m.Start(m.Inbox)
	m.Until(`select exists (select from idem_workers where id <> 1)`)
	if _, err := requeue(false); err != nil {
		t.Errorf("with workers Requeue = %v", err)
	}
}

// What was acknowledged before waits until the clock is that late again.
func TestClockThatWasPutBackMakesHealthRed(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.Store(letter("e1", "o1", 0), letter("e2", "o1", 0))
	ahead := func(by, due string) {
		m.Exec(fmt.Sprintf(`update idem_payloads set received_at = now() + interval '%s', due_at = now() + interval '%s' where source = 'notes'`, by, due))
	}
	ahead("-1 minute", "1 hour")
	m.WantHealth("it is tried again in an hour", m.NewHealth(m.Inbox), "", "")
	ahead("50 seconds", "50 seconds")
	m.WantHealth("a little", m.NewHealth(m.Inbox), "", "")
	ahead("59 minutes", "59 minutes")
	m.WantHealth("an hour", m.NewHealth(m.Inbox), "clock", "the database's clock was put back: what arrived before waits")
}
