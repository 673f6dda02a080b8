package idem_test

import (
	"context"
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
