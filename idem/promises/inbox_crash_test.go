package promises_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/claims"
)

// Something else may kill the processes, again and again, each time within a second. What they were processing then is
// not to blame, and is claimed once a process has lived for a while. Not in parallel: the time is all inboxes'.
func TestEventOfTwoCrashesIsNotClaimedBeforeTheProcessHasLived(t *testing.T) {
	m := newInboxApp(t)
	m.On(pay)
	m.Store(letter("crashed", "o1", 1), letter("other", "o2", 2))
	m.dieWith("crashed", 2)
	lived := claims.Lived
	defer func() { claims.Lived = lived }()
	claims.Lived = time.Hour
	stop := m.Start(m.Inbox)
	m.WantWorked(idem.Done)
	m.WantState("other", idem.StateDone)
	m.Store(letter("late", "o3", 3)) // claimed by a later search
	m.WantWorked(idem.Done)
	stop()
	m.WantRow("crashed", "(state, starts, crashes)", "(pending,2,1)")
	claims.Lived = 0
	m.Start(m.NewInbox(m.Pool))
	m.WantWorked(idem.Done)
	m.WantRow("crashed", "(state, attempts)", "(done,0)")
}

// Not in parallel, like others below: the isolation is the whole process's, and
// would hold up tests that are none of its business.
func TestEventThatKilledTwoProcessesRunsAloneInItsProcess(t *testing.T) {
	m := openInboxApp(t, poolOf(t, 10))
	other := &otherNotes{}
	var running atomic.Int32
	entered, release := make(chan string, 10), make(chan struct{})
	handle := func(ctx context.Context, tx pgx.Tx, n *note) error {
		running.Add(1)
		defer running.Add(-1)
		entered <- n.ID
		<-release
		return pay(ctx, tx, n)
	}
	idem.Handle(&other.Routes, "paid", handle)
	bystander := idem.NewInbox(m.Pool, other)
	bystander.Workers, bystander.Poll, bystander.Logger, bystander.Observe = 2, m.Inbox.Poll, nil, m.Observe
	storeBystander := func(id string) {
		e := letter(id, id, 0)
		e.Source = "others"
		if o, err := bystander.Accept(t.Context(), e); o != idem.Pending {
			t.Errorf("Accept = %s, %v", o, err)
		}
	}
	m.Inbox.Workers = 4
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID != "crashed" {
			return handle(ctx, tx, n)
		}
		m.Store(letter("late", "late", 0)) // wakes the workers
		storeBystander("later")
		for range 10 { // it is alone for five seconds
			if n := running.Load(); n != 0 || !queryOne[bool](m, `select true`) {
				t.Errorf("%d other events are processed at the same time", n)
			}
		}
		return pay(ctx, tx, n)
	})
	for _, id := range []string{"a", "b", "crashed", "t", "u"} { // in the order that workers find them
		m.Store(letter(id, id, 0))
	}
	storeBystander("x")
	storeBystander("y")
	m.dieWith("crashed", 2)
	m.Start(bystander)
	<-entered
	<-entered
	m.Start(m.Inbox)
	for range 3 { // of the first four, of which crashed is one
		<-entered
	}
	close(release)
	for range 9 {
		m.WantWorked(idem.Done)
	}
	m.WantRow("crashed", `(state, attempts, crashes)`, `(done,0,2)`)
	for _, id := range []string{"a", "t", "x", "late", "later"} {
		m.WantRow(id, `(state, attempts, crashes)`, `(done,0,0)`)
	}
	m.WantEffects(9)
}

// An event may be claimed again before the worker of its last attempt has finished with it. The new claim is
// known to its process all the same, also when the session that kept others from it has ended.
func TestEventIsProcessedByOneWorkerHoweverLateAnEarlierOneFinishes(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.Inbox.Workers = 2
	release, running, goOn := make(chan bool), make(chan bool), make(chan bool)
	hold := sync.OnceFunc(func() { <-release })
	m.Inbox.Observe = func(ctx context.Context, o idem.Observation) {
		m.Observe(ctx, o)
		if o.Stage == idem.StageAttempt {
			hold()
		}
	}
	var attempts atomic.Int32
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		switch {
		case n.ID == "other":
		case attempts.Add(1) == 1:
			return errors.New("no")
		case attempts.Load() == 2:
			_, _ = tx.Exec(ctx, `select pg_terminate_backend(pg_backend_pid())`)
			running <- true
			<-goOn
		}
		return pay(ctx, tx, n)
	})
	m.Store(letter("e1", "o1", 1))
	m.Start(m.Inbox)
	<-running
	m.Store(letter("other", "o2", 1)) // for the worker that is held: it finishes with e1 before
	close(release)
	m.WantWorked(idem.Retrying, idem.Done)
	if n := attempts.Load(); n != 2 {
		t.Errorf("the handler has begun %d times, and its second run has not ended", n)
	}
	goOn <- true
	m.untilDone(1)
	m.WantRow("e1", `(state, attempts, crashes)`, `(done,2,0)`)
	m.WantEffects(2)
}

// Not in parallel, see above. Two Runs of a process look for events at the same time.
// Were each given one that must run alone, both would wait for the other.
func TestEventsThatKilledTwoProcessesRunOneAfterTheOther(t *testing.T) {
	m := openInboxApp(t, poolOf(t, 10))
	m.On(pay)
	for _, id := range []string{"e1", "e2"} {
		m.Store(letter(id, id, 0))
		m.dieWith(id, 2)
	}
	release := m.hold()
	m.Start(m.Inbox)
	m.Start(m.NewInbox(m.Pool))
	m.Until(`select count(*) >= 2 from pg_locks where relation = 'idem_payloads'::regclass and not granted`)
	release()
	m.WantWorked(idem.Done, idem.Done)
	for _, id := range []string{"e1", "e2"} {
		m.WantRow(id, `(state, starts)`, `(done,3)`) // the third claim is the first that was not left
	}
}

// Not in parallel, see above.
func TestEventThatKilledManyProcessesIsParkedUntried(t *testing.T) {
	m := newInboxApp(t)
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "deadly" {
			t.Error("it runs once more")
		}
		return pay(ctx, tx, n)
	})
	m.Store(letter("deadly", "o1", 1), letter("after", "o1", 2), letter("crashed", "o2", 1), letter("bystander", "o3", 1))
	m.dieWith("deadly", 3)
	m.dieWith("crashed", 2)
	m.dieWith("bystander", 1)
	m.Drain()
	for queryOne[bool](m, `select state = 'pending' from idem_events where event like '%crashed'`) { // the bystander ran for long: it was put off
		m.Exec(`update idem_payloads set due_at = now() where due_at > now()`)
		m.Drain()
	}
	m.WantRow("deadly", `(state, crashes, claimed_by, last_error like '%3 processes died%')`, `(parked,3,,t)`)
	m.WantPayload("deadly", string(letter("deadly", "o1", 1).Payload))
	m.WantRow("crashed", `(state, crashes)`, `(done,2)`)
	m.WantRow("bystander", `(state, crashes)`, `(done,1)`)
	m.WantState("after", idem.StatePending) // its key is held
}

// A process was killed, and leaves twelve claims. What comes next is processed at
// once, and as many at a time as ever.
func TestEventsOfADeadProcessHoldUpNobody(t *testing.T) {
	t.Parallel()
	const workers, crashed = 4, 12
	m := openInboxApp(t, poolOf(t, workers+2))
	m.Inbox.Workers = workers
	var mu sync.Mutex
	met, all := 0, make(chan struct{})
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		mu.Lock()
		meeting := all
		if met++; met == workers { // they go on together
			met, all = 0, make(chan struct{})
			close(meeting)
		}
		mu.Unlock()
		<-meeting
		return pay(ctx, tx, n)
	})
	for n := range crashed {
		id := fmt.Sprint("crashed", n)
		m.Store(letter(id, id, 0))
		m.dieWith(id, 1)
	}
	for n := range workers {
		m.Store(letter(fmt.Sprint(n), fmt.Sprint(n), 0))
	}
	m.Start(m.Inbox)
	for range crashed + workers {
		m.WantWorked(idem.Done)
	}
	m.WantEffects(crashed + workers)
}

// Its handler would not have the time that it needs, and others wait meanwhile.
func TestEventThatCannotRunAloneForLongIsPutOff(t *testing.T) {
	m := openInboxApp(t, poolOf(t, 10))
	entered, release := make(chan struct{}), make(chan struct{})
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "long" {
			close(entered)
			<-release
		}
		return pay(ctx, tx, n)
	})
	m.Store(letter("long", "o1", 0))
	m.Inbox.Workers = 1
	m.Start(m.Inbox)
	<-entered
	m.Store(letter("crashed", "o2", 0))
	m.dieWith("crashed", 2)
	hasty := m.NewInbox(m.Pool)
	hasty.Timeout = 3 * time.Second
	m.Start(hasty)
	m.Until(`select starts = 3 and claimed_by is null and due_at > now() from idem_events join idem_payloads p using (event) where event = 'notes//crashed'`)
	m.Store(letter("other", "o3", 0)) // which need not wait for it
	m.WantWorked(idem.Done)
	m.WantState("other", idem.StateDone)
	close(release)
	m.WantWorked(idem.Done)
	m.Exec(`update idem_payloads set due_at = now() where event = 'notes//crashed'`)
	m.WantWorked(idem.Done)
	m.WantState("crashed", idem.StateDone)
}

// Not in parallel, see above. What the claims had counted, and the right to run alone, are given back.
func TestEventThatMustRunAloneDoesSoAfterClaimsThatFailed(t *testing.T) {
	m := newInboxApp(t)
	m.On(pay)
	m.Store(letter("crashed", "o1", 0))
	m.dieWith("crashed", 2)
	m.Exec(`alter table idem_payloads rename to away`)
	m.Start(m.Inbox)
	for !strings.Contains(m.Logged(), "webhook workers cannot reach the events") {
		pause()
	}
	m.Exec(`alter table away rename to idem_payloads`)
	m.WantWorked(idem.Done)
	m.WantRow("crashed", `(state, crashes)`, `(done,2)`)
}

func TestCrashedEventThatFailsIsAnEventThatFailed(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.Inbox.Workers = 1 // two could tell of its attempts in another order
	runs := 0
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if runs++; runs < 3 {
			return errors.New("no such order")
		}
		return pay(ctx, tx, n)
	})
	m.Store(letter("e1", "o1", 1))
	m.dieWith("e1", 1)
	m.Drain()
	m.WantWorked(idem.Retrying, idem.Retrying, idem.Done)
	m.WantRow("e1", `(state, attempts, crashes)`, `(done,2,0)`)
}

// Whatever it returns: its process did not die.
func TestHandlerThatReturnsHasItsEventsCrashesForgotten(t *testing.T) {
	t.Parallel()
	for reason, c := range map[string]struct {
		err      error
		attempts int
	}{
		"a mistake":                     {errors.New("no such order"), 1},
		"it is not to be tried again":   {idem.NoRetry(errors.New("no such order")), 1},
		"it is to be tried later":       {idem.RetryAt(time.Now().Add(time.Hour), errors.New("the bank is closed")), 0},
		"Postgres asks to run it again": {&pgconn.PgError{Code: "40001"}, 0},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			m := newInboxApp(t)
			m.Inbox.Backoff = func(int) time.Duration { return time.Hour }
			m.On(func(context.Context, pgx.Tx, *note) error { return c.err })
			m.Store(letter("e1", "o1", 1))
			m.dieWith("e1", 1)
			m.Start(m.Inbox)
			m.Next()
			m.WantRow("e1", `(attempts, crashes)`, fmt.Sprintf("(%d,0)", c.attempts))
		})
	}
}

// With PassParked, as any other that is parked.
func TestEventThatKilledManyProcessesLetsItsKeyGoOnWithPassParked(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.On(pay)
	m.Inbox.PassParked = true
	m.Store(letter("deadly", "o1", 1), letter("after", "o1", 2))
	m.dieWith("deadly", 3)
	m.Start(m.Inbox)
	m.WantWorked(idem.Parked, idem.Done)
	m.WantState("after", idem.StateDone)
}

func TestClaimOfALivingWorkerIsLeftAlone(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.On(pay)
	m.Store(letter("a1", "a", 1), letter("a2", "a", 2), letter("b1", "b", 1))
	m.ClaimElsewhere("a1")
	m.Drain()
	m.WantWorked(idem.Done)
	m.WantState("b1", idem.StateDone)
	m.WantRow("a1", `(state, claimed_by is null, crashes)`, `(pending,f,0)`)
	m.WantState("a2", idem.StatePending)
}

// The process is not to blame. Whether the event is nobody knows: that is an attempt.
func TestConnectionLostUnderAWorkerIsNoCrash(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"by the network": func(_ context.Context, tx pgx.Tx) error { return tx.Conn().PgConn().Conn().Close() },
		"Postgres ends": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `select pg_terminate_backend(pg_backend_pid())`)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newInboxApp(t)
			m.Inbox.Workers = 1 // two could tell of its attempts in another order
			runs := 0
			m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if runs++; runs == 1 {
					if err := lose(ctx, tx); err != nil {
						return err
					}
				}
				return pay(ctx, tx, n)
			})
			m.Store(letter("e1", "o1", 1))
			m.Start(m.Inbox)
			m.WantWorked(idem.Retrying, idem.Done)
			m.WantEffects(1)
			m.WantRow("e1", `(state, attempts, crashes)`, `(done,1,0)`)
		})
	}
}

// otherNotes is another provider.
type otherNotes struct{ notes }

func (*otherNotes) Name() string { return "others" }

// dieWith leaves an event as a worker does whose process dies for the nth time:
// claimed by workers that are not there.
func (s *app) dieWith(id string, n int) {
	s.Exec(fmt.Sprintf(`update idem_events set starts = %[2]d, crashes = %[2]d - 1, claimed_at = now(), claimed_by = -1
		where event like '%%/%[1]s'`, id, n))
}
