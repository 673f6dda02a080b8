package promises_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestFirstTryWithoutAVerdictIsDeliveredAgain(t *testing.T) {
	t.Parallel()
	for name, c := range undecided {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openApp(t, openPool(t, idemtest.URL(t), func(config *pgxpool.Config) {
				if c.config != nil {
					c.config(config)
				}
			}))
			s.Exec(undecidedTables)
			s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := pay(ctx, tx, n); err != nil || n.ID != "e1" {
					return err
				}
				return c.make(ctx, s, tx)
			})
			s.WantAnswer(paid("e1"), http.StatusServiceUnavailable)
			s.WantState("e1", "")
			s.WantAnswer(`{"id":"e2","type":"paid","order":"o2"}`, http.StatusOK)
			s.WantEffects(1)
		})
	}
}

func TestAttemptWithoutAVerdictCountsAndIsParkedByWorkers(t *testing.T) {
	t.Parallel()
	for name, c := range undecided {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := openInboxApp(t, openPool(t, idemtest.URL(t), func(config *pgxpool.Config) {
				if c.config != nil {
					c.config(config)
				}
			}))
			m.Exec(undecidedTables)
			m.Inbox.MaxAttempts, m.Inbox.Workers = 2, 1
			if c.slow {
				m.Inbox.Timeout = 5 * time.Second // e3 has to be done in that
			}
			m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := pay(ctx, tx, n); err != nil || n.ID != "e1" {
					return err
				}
				return c.make(ctx, m, tx)
			})
			m.Store(letter("e1", "o1", 1), letter("e2", "o1", 2), letter("e3", "o3", 1))
			if c.passes { // it has been tried for long enough
				m.Exec(`update idem_events set starts = 49 where event = 'notes//e1'`)
			}
			m.Drain()
			m.WantRow("e1", `(state, attempts, crashes, last_error is null)`, `(parked,2,0,f)`)
			m.WantState("e2", idem.StatePending) // behind it
			m.WantState("e3", idem.StateDone)
			m.WantEffects(1)
		})
	}
}

// What passes is given time, and no more than that.
func TestWhatPassesCountsOnceItHasLasted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ reason, before, counted string }{
		{"it began just now", `select`, `(pending,0)`},
		{"its 50th start", `update idem_events set starts = 49`, `(pending,1)`},
		{"it came ten minutes ago", `update idem_payloads set received_at = now() - interval '10 minutes'`, `(pending,1)`},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			m := newInboxApp(t)
			m.Inbox.Backoff = func(int) time.Duration { return time.Hour }
			m.On(func(context.Context, pgx.Tx, *note) error { return &pgconn.PgError{Code: "40001"} })
			m.Store(letter("e1", "o1", 1))
			m.Exec(c.before)
			m.Start(m.Inbox)
			m.WantWorked(idem.Retrying)
			m.WantRow("e1", `(state, attempts)`, c.counted)
		})
	}
}

// The last failure of an event could not be recorded. Whoever requeues the event wants another attempt, and not the
// record of the one before.
func TestRequeuedEventIsAttemptedThoughItsFailureCouldNotBeRecorded(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.Inbox.MaxAttempts = 1
	m.Exec(`create table refusing as select 1;
		create function refuse() returns trigger language plpgsql as $$ begin if exists (select from refusing) then raise exception 'not now'; end if; return new; end $$;
		create trigger refuses before update on idem_events for each row when (new.state = 'parked') execute function refuse()`)
	var fixed atomic.Bool
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if !fixed.Load() {
			return errors.New("no such order")
		}
		return pay(ctx, tx, n)
	})
	m.Store(letter("e1", "o1", 1))
	m.Start(m.Inbox)
	m.WantWorked(idem.Retrying)
	fixed.Store(true)
	for requeued := int64(0); requeued == 0; { // it is being claimed again and again
		var err error
		if requeued, err = m.Inbox.Requeue(t.Context(), idem.Filter{States: []idem.State{idem.StatePending}}); err != nil {
			t.Fatal(err)
		}
	}
	m.Exec(`delete from refusing`) // to drop the trigger would wait for a lock that workers hold, and they for it
	m.Until(`select state in ('done', 'parked') from idem_events`)
	m.WantState("e1", idem.StateDone)
}

// Its row is asked, on another connection: it is done, or it is not.
func TestReplayGoesOnBehindACommitWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	s := newApp(t)
	broken := false
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		switch {
		case !broken:
			return idem.NoRetry(errors.New("no such order"))
		case n.ID == "e2":
			return errors.Join(pay(ctx, tx, n), s.endSession(ctx, tx))
		}
		return pay(ctx, tx, n)
	})
	s.openInbox()
	s.Store(letter("e1", "e1", 1), letter("e2", "e2", 2), letter("e3", "e3", 3))
	s.Drain(3)
	broken = true
	if r, err := s.First.Replay(t.Context(), idem.Filter{}); err != nil || r.Done != 2 || r.Failed != 1 {
		t.Errorf("Replay = %+v, %v, want two done and one failed", r, err)
	}
	s.WantRow("e2", `(state, attempts)`, `(parked,2)`)
	s.WantEffects(2)
}

func TestDrainLeavesWhatItCannotBeginAndNamesIt(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.Exec(`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not today'; end $$;
		create trigger refuses before update on idem_events for each row when (new.state = 'done' and new.event = 'notes//e1') execute function refuse()`)
	m.On(pay)
	m.Store(letter("e1", "o1", 1), letter("e2", "o2", 1))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := m.Inbox.Drain(ctx); err == nil || !strings.Contains(err.Error(), "paid e1 could not be begun twice") || ctx.Err() != nil {
		t.Errorf("Drain = %v, want an error that names e1", err)
	}
	m.WantState("e1", idem.StatePending)
	m.WantState("e2", idem.StateDone)
}

// It asks to be tried again later, whenever it is: nothing counts, and yet somebody must see it.
func TestEventThatIsStartedAgainAndAgainMakesHealthRed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason, row, check string
	}{
		{"ten starts, long ago", `starts = 10`, ""},
		{"eleven starts", `starts = 11`, "failing"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			m := newInboxApp(t)
			m.On(pay)
			m.Store(letter("e1", "o1", 1))
			m.Exec(`update idem_events set ` + c.row + `; update idem_payloads set received_at = now() - interval '11 minutes', due_at = now() + interval '1 hour'`)
			m.WantHealth(c.reason, m.NewHealth(m.Inbox), c.check, "1 event fails")
			listed := 0
			for range m.Inbox.List(t.Context(), idem.Filter{Failed: true}) {
				listed++
			}
			if (listed == 1) != (c.check != "") {
				t.Errorf("%d events are listed as failed, and health is red: %t", listed, c.check != "")
			}
		})
	}
}

// A stop is no crash, and no failure.
func TestStopGivesBackTheEventOfAHandlerThatIgnoresIt(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.Inbox.StopTimeout = time.Nanosecond
	running, release := make(chan bool), make(chan bool)
	defer close(release)
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if err := pay(ctx, tx, n); err != nil {
			return err
		}
		running <- true
		<-release // whatever its context says
		return nil
	})
	m.Store(letter("e1", "o1", 1))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Inbox.Run(ctx) }()
	<-running
	stop()
	if err := <-ended; err == nil {
		t.Error("Run does not say that a handler did not return")
	}
	m.WantRow("e1", `(state, attempts, crashes, claimed_by)`, `(pending,0,0,)`)
	m.WantEffects(0)
}

// Serializable transactions meet on one row, and what they lose is nobody's failure.
func TestContentionParksNobody(t *testing.T) {
	t.Parallel()
	m := openInboxApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
		c.MaxConns = 10
		c.ConnConfig.RuntimeParams["default_transaction_isolation"] = "serializable"
	}))
	const events = 60
	m.Exec(`create table stock (n int); insert into stock values (0)`)
	m.Inbox.MaxAttempts, m.Inbox.Workers = 1, 8
	var met atomic.Int64
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		_, err := tx.Exec(ctx, `update stock set n = n + 1`)
		if err != nil {
			met.Add(1)
		}
		return err
	})
	for n := range events {
		m.Store(letter(fmt.Sprint("e", n), fmt.Sprint("o", n), 1))
	}
	m.Start(m.Inbox)
	m.untilDone(events)
	m.WantRow("e0", `(select (count(*) filter (where state = 'done'), sum(attempts)) from idem_events)`, fmt.Sprintf("(%d,0)", events))
	if met.Load() == 0 {
		t.Error("no transactions have met")
	}
}

// undecided are handlers whose attempts end without a verdict of Postgres, or with one that is not about the
// event. Each pays before.
var undecided = testkit.Named(map[string]struct {
	config func(*pgxpool.Config)
	make   func(ctx context.Context, s *app, tx pgx.Tx) error
	slow   bool // it ends with the attempt's time
	passes bool // in all likelihood, and so counts from the 50th start on
}{
	"a deferred trigger is slow": {make: func(ctx context.Context, _ *app, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into sluggish values (1)`)
		return err
	}, slow: true},
	"the session's time-out": {make: func(ctx context.Context, s *app, tx pgx.Tx) error { return s.idleUntilEnded(ctx, tx) }},
	"the session's time-out, in another mode of pgx": {
		config: func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec },
		make:   func(ctx context.Context, s *app, tx pgx.Tx) error { return s.idleUntilEnded(ctx, tx) },
	},
	"the session is ended before COMMIT": {make: func(ctx context.Context, s *app, tx pgx.Tx) error { return s.endSession(ctx, tx) }},
	"the session is ended in the handler": {make: func(ctx context.Context, _ *app, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `select pg_terminate_backend(pg_backend_pid())`)
		return err
	}},
	"a trigger says that it could not be serialized": {make: func(ctx context.Context, _ *app, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `insert into contended values (1)`)
		return err
	}, passes: true},
	"another database is starting": {make: func(context.Context, *app, pgx.Tx) error {
		return fmt.Errorf("the stock: %w", &pgconn.PgError{Code: "57P03", Message: "the database system is starting up"})
	}, passes: true},
}, "the session's time-out", "the session is ended before COMMIT", "a trigger says that it could not be serialized", "another database is starting")

// endSession ends the session of a transaction, as an administrator does, and waits until it is gone.
func (s *app) endSession(ctx context.Context, tx pgx.Tx) error {
	var pid int
	if err := tx.QueryRow(ctx, `select pg_backend_pid()`).Scan(&pid); err != nil {
		return err
	}
	return s.Await(ctx, `select coalesce((select not pg_terminate_backend(pid) from pg_stat_activity where pid = $1), true)`, pid)
}

const undecidedTables = `
create table sluggish (n int);
create function sleep() returns trigger language plpgsql as $$ begin perform pg_sleep(600); return null; end $$;
create constraint trigger sleeps after insert on sluggish deferrable initially deferred for each row execute function sleep();
create table contended (n int);
create function contend() returns trigger language plpgsql as $$ begin raise exception using errcode = '40001'; end $$;
create trigger contends before insert on contended for each row execute function contend()`
