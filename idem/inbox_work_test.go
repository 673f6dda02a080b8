package idem_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
)

func TestWorkersCommitEffectAndRecordTogether(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		m.wantState("e1", idem.StatePending) // for everybody else, as long as the handler runs
		m.wantPayload("e1", paid("e1"))
		var state idem.State
		if err := tx.QueryRow(ctx, `select state from idem_events`).Scan(&state); err != nil || state != idem.StateDone {
			t.Errorf("in the transaction the event is %s, %v, want done", state, err)
		}
		return pay(ctx, tx, n)
	})
	m.wantAnswer(paid("e1"), 200)
	m.start(m.inbox)
	m.wantWorked(idem.Done)
	m.wantEffects(1)
	m.wantPayload("e1", "")
	m.wantRow("e1", `(state, attempts, crashes, last_error, claimed_by)`, `(done,0,0,,)`)
	if !queryOne[bool](m, `select e.xmin = f.xmin from idem_events e, effects f`) {
		t.Error("the effect and the record are not of one transaction")
	}
}

func TestWorkersKeepPayloadsWhenAsked(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.on(pay)
	m.inbox.KeepPayloads = true
	m.wantAnswer(paid("e1"), 200)
	m.start(m.inbox)
	m.wantWorked(idem.Done)
	m.wantPayload("e1", paid("e1"))
	if n := queryOne[int](m, `select count(*) from idem_payloads`); n != 0 {
		t.Error("the payload of a done event is still among those of events that are not")
	}
}

// What a handler may do wrong. Each fails once, leaves nothing behind, is
// counted, and is done by the next attempt.
func TestHandlerThatFailsUnderAWorkerLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"returns an error":             func(context.Context, pgx.Tx) error { return errors.New("no such order") },
		"panics":                       func(context.Context, pgx.Tx) error { panic("nil order") },
		"panics with nil":              func(context.Context, pgx.Tx) error { panic(nil) },
		"ends its goroutine":           func(context.Context, pgx.Tx) error { runtime.Goexit(); return nil },
		"fails an SQL command":         func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Exec(ctx, `select 1/0`); return err },
		"swallows an SQL error":        func(ctx context.Context, tx pgx.Tx) error { _, _ = tx.Exec(ctx, `select 1/0`); return nil },
		"rolls back with SQL":          func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Exec(ctx, `rollback`); return err },
		"commits with SQL":             func(ctx context.Context, tx pgx.Tx) error { _, err := tx.Exec(ctx, `commit`); return err },
		"commits":                      func(ctx context.Context, tx pgx.Tx) error { return tx.Commit(ctx) },
		"closes its connection":        func(ctx context.Context, tx pgx.Tx) error { return tx.Conn().Close(ctx) },
		"queues what Postgres refuses": func(ctx context.Context, _ pgx.Tx) error { idem.ExecAtCommit(ctx, `select 1/0`); return nil },
		"leaves rows open": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Query(ctx, `select generate_series(1, 100000)`)
			return err
		},
		"cancels its own query": func(ctx context.Context, tx pgx.Tx) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			_, err := tx.Exec(ctx, `select pg_sleep(60)`)
			return err
		},
		"breaks a deferred constraint": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `create table parents (id int primary key);
				create table children (parent int references parents deferrable initially deferred);
				insert into children values (1)`)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newInboxApp(t)
			m.inbox.Workers = 1
			runs := 0
			m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := pay(ctx, tx, n); err != nil {
					return err
				}
				switch runs++; runs {
				case 1:
					return fail(ctx, tx)
				case 2:
					m.wantEffects(0)
					m.wantRow("e1", `(attempts, crashes, last_error is null)`, `(1,0,f)`)
				}
				return nil
			})
			m.wantAnswer(paid("e1"), 200)
			m.start(m.inbox)
			m.wantWorked(idem.Retrying, idem.Done)
			m.wantEffects(1)
			m.wantAnswer(paid("e2"), 200) // the worker is as good as before
			m.wantWorked(idem.Done)
		})
	}
}

// The effect and the record are in the handler's own commit, all the same.
func TestHandlerThatCommitsWithSQLUnderAWorkerStillCountsOnce(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if err := pay(ctx, tx, n); err != nil || n.ID != "e1" {
			return err
		}
		_, err := tx.Conn().Exec(ctx, `commit`) // on the connection itself nothing is refused
		return err
	})
	m.wantAnswer(paid("e1"), 200)
	m.start(m.inbox)
	if o := m.next(); o.Err == nil || !strings.Contains(o.Err.Error(), "handler ended the transaction") {
		t.Errorf("the worker said %s, %v, not what the handler did wrong", o.Outcome, o.Err)
	}
	m.wantAnswer(paid("e2"), 200)
	m.wantWorked(idem.Done)
	m.wantState("e1", idem.StateDone)
	m.wantPayload("e1", "")
	m.wantEffects(2)
}

func TestPostgresMayAskWorkersToRunTheHandlerAgain(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	runs := 0
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if err := pay(ctx, tx, n); err != nil {
			return err
		}
		n.ID = "changed by the first run"
		if runs++; runs < 3 {
			_, err := tx.Exec(ctx, `do $$ begin raise exception 'again' using errcode = '40001'; end $$`)
			return err
		}
		return nil
	})
	m.wantAnswer(paid("e1"), 200)
	m.start(m.inbox)
	m.wantWorked(idem.Done)
	m.wantRow("e1", `attempts`, `0`)
	if got := queryOne[string](m, `select event from effects`); got != "e1" || runs != 3 {
		t.Errorf("effect of %q after %d runs, want e1 after 3", got, runs)
	}
}

func TestEventWithoutAHandlerIsKeptAndItsKeyGoesOn(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.on(pay)
	body := `{"id":"e1","type":"new","order":"o1"}`
	m.wantAnswer(body, 200)
	m.wantAnswer(`{"id":"e2","type":"paid","order":"o1"}`, 200)
	m.start(m.inbox)
	m.wantWorked(idem.Unhandled, idem.Done)
	m.wantRow("e1", `(state, attempts, last_error, claimed_by)`, `(unhandled,0,,)`)
	m.wantPayload("e1", body)
}

// Stored by a version of the application that did not ignore it.
func TestEventThatIsIgnoredByTheTimeOfWorkIsDone(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.wantAnswer(`{"id":"e1","type":"viewed"}`, 200)
	m.deploy(func(n *notes) { n.Ignore("viewed") })
	m.start(m.newInbox(m.pool))
	m.next()
	m.wantState("e1", idem.StateDone)
	m.wantPayload("e1", "")
}

func TestAfterCommitRunsUnderWorkers(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	committed := make(chan int, 1)
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		idem.AfterCommit(ctx, func(context.Context) { committed <- queryOne[int](m, `select count(*) from effects`) })
		return pay(ctx, tx, n)
	})
	m.wantAnswer(paid("e1"), 200)
	m.start(m.inbox)
	m.wantWorked(idem.Done)
	if n := <-committed; n != 1 {
		t.Errorf("the function saw %d effects, want 1", n)
	}
}

// What is ignored since it was stored has no handler, and is done without one.
func TestIgnoredEventIsDoneAfterADeadlockToo(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.exec(`
		create sequence marks;
		create function fail_once() returns trigger language plpgsql as $$ begin
			if nextval('marks') = 1 then raise 'again' using errcode = '40P01'; end if;
			return new;
		end $$;
		create trigger fail_once before update on idem_events for each row when (new.state = 'done') execute function fail_once()`)
	m.store(identify([]byte(`{"id":"e1","type":"viewed"}`)))
	since := &notes{}
	since.Ignore("viewed")
	inbox := idem.NewInbox(m.pool, since)
	inbox.Logger = m.logger()
	if err := inbox.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.wantRow("e1", `(state, attempts)`, `(done,0)`)
	if n := queryOne[int](m, `select last_value::int from marks`); n != 2 {
		t.Errorf("it was marked %d times, want 2: the first met a deadlock", n)
	}
}
