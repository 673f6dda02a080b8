package promises_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgproxy"
	"github.com/paghooks/paghooks/internal/testkit"
)

func TestWorkersCommitEffectAndRecordTogether(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		m.WantState("e1", idem.StatePending) // for everybody else, as long as the handler runs
		m.WantPayload("e1", paid("e1"))
		var state idem.State
		if err := tx.QueryRow(ctx, `select state from idem_events`).Scan(&state); err != nil || state != idem.StateDone {
			t.Errorf("in the transaction the event is %s, %v, want done", state, err)
		}
		return pay(ctx, tx, n)
	})
	m.WantAnswer(paid("e1"), 200)
	m.Start(m.Inbox)
	m.WantWorked(idem.Done)
	m.WantEffects(1)
	m.WantPayload("e1", "")
	m.WantRow("e1", `(state, attempts, crashes, last_error, claimed_by)`, `(done,0,0,,)`)
	if !queryOne[bool](m, `select e.xmin = f.xmin from idem_events e, effects f`) {
		t.Error("the effect and the record are not of one transaction")
	}
}

func TestWorkersKeepPayloadsWhenAsked(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.On(pay)
	m.Inbox.KeepPayloads = true
	m.WantAnswer(paid("e1"), 200)
	m.Start(m.Inbox)
	m.WantWorked(idem.Done)
	m.WantPayload("e1", paid("e1"))
	if n := queryOne[int](m, `select count(*) from idem_payloads`); n != 0 {
		t.Error("the payload of a done event is still among those of events that are not")
	}
}

func TestAfterCommitRunsUnderWorkers(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	committed := make(chan int, 1)
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		idem.AfterCommit(ctx, func(context.Context) { committed <- queryOne[int](m, `select count(*) from effects`) })
		return pay(ctx, tx, n)
	})
	m.WantAnswer(paid("e1"), 200)
	m.Start(m.Inbox)
	m.WantWorked(idem.Done)
	if n := <-committed; n != 1 {
		t.Errorf("the function saw %d effects, want 1", n)
	}
}

// What is ignored since it was stored has no handler, and is done without one.
func TestIgnoredEventIsDoneAfterADeadlockToo(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.Exec(`
		create sequence marks;
		create function fail_once() returns trigger language plpgsql as $$ begin
			if nextval('marks') = 1 then raise 'again' using errcode = '40P01'; end if;
			return new;
		end $$;
		create trigger fail_once before update on idem_events for each row when (new.state = 'done') execute function fail_once()`)
	m.Store(identify([]byte(`{"id":"e1","type":"viewed"}`)))
	since := &notes{}
	idem.HandleFamily(&since.Routes, []string{"viewed"}, func(context.Context, pgx.Tx, *note) error {
		t.Error("the handler of its family runs")
		return nil
	})
	since.Ignore("viewed")
	inbox := idem.NewInbox(m.Pool, since)
	inbox.Logger = m.Logger()
	if err := inbox.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.WantRow("e1", `(state, attempts)`, `(done,0)`)
	if n := queryOne[int](m, `select last_value::int from marks`); n != 2 {
		t.Errorf("it was marked %d times, want 2: the first met a deadlock", n)
	}
}

// Workers are stopped at each message that they send, or get the answer of: when
// Postgres has committed a claim, and they do not know it yet, for example.
// Nobody has died.
func TestRunThatIsStoppedAtAnyMomentLeavesNoClaim(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.On(pay)
	proxy := new(pgproxy.Proxy)
	worker := m.NewInbox(openPool(t, m.Pool.Config().ConnString(), proxy.Through))
	worker.Workers, worker.PollOnly = 1, true
	done := 0
	for step := 1; step <= 40; step++ { // prepare, claim, work, claim
		m.Store(letter("e1", "o1", 1))
		ctx, stop := context.WithCancel(t.Context())
		proxy.Arm(pgproxy.Fault{Step: step, Point: pgproxy.BeforeAnswer, Do: func(uint32) { stop() }})
		ended := make(chan error, 1)
		go func() { ended <- worker.Run(ctx) }()
		if err := <-ended; err != nil {
			t.Errorf("stopped at message %d, Run = %v", step, err)
		}
		proxy.Disarm()
		stop()
		m.WantRow("e1", `(claimed_by, attempts, crashes)`, `(,0,0)`)
		if queryOne[bool](m, `select state = 'done' from idem_events`) {
			done++
		}
		m.Exec(`truncate idem_events, idem_payloads`)
	}
	m.WantEffects(done)
	if done == 0 {
		t.Error("no event was done")
	}
}

// A lock that is over leaves its trace in the row: that is no lock.
func TestClaimPassesOverWhatIsLockedAndTakesWhatWas(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.On(pay)
	m.Store(letter("e1", "o1", 1), letter("e2", "o2", 1))
	tx, err := m.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `select from idem_events where event like '%e1' for update`); err != nil {
		t.Fatal(err)
	}
	m.Drain()
	m.WantState("e1", idem.StatePending)
	m.WantState("e2", idem.StateDone)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.Drain()
	m.WantState("e1", idem.StateDone)
}

func TestBackoffSaysWhenAnEventIsTriedAgain(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	var asked []int
	m.Inbox.Workers = 1
	m.Inbox.Backoff = func(attempt int) time.Duration {
		asked = append(asked, attempt)
		return time.Duration(attempt) * time.Hour
	}
	m.On(func(context.Context, pgx.Tx, *note) error { return errors.New("no such order") })
	m.WantAnswer(paid("e1"), 200)
	m.Start(m.Inbox)
	for attempt := 1; attempt <= 3; attempt++ {
		m.WantWorked(idem.Retrying)
		m.WantRow("e1", `(state, attempts, claimed_by, last_error)`, fmt.Sprintf(`(pending,%d,,"no such order")`, attempt))
		m.wantDueIn("e1", time.Duration(attempt)*time.Hour)
		m.Exec(`update idem_payloads set due_at = now()`)
	}
	m.Next()
	if diff := cmp.Diff([]int{1, 2, 3}, asked[:3]); diff != "" {
		t.Error("Backoff was asked for (-want +got):\n" + diff)
	}
}

func TestHandlersSayWhatIsNotToBeTriedAgain(t *testing.T) {
	t.Parallel()
	closed := errors.New("closed account")
	inThreeHours := func() time.Time { return time.Now().Add(3 * time.Hour) } // when the handler runs
	for name, c := range testkit.Named(map[string]struct {
		err   func() error
		state idem.State
	}{
		"never":                {func() error { return idem.NoRetry(closed) }, idem.StateParked},
		"never, wrapped":       {func() error { return fmt.Errorf("order: %w", idem.NoRetry(closed)) }, idem.StateParked},
		"never, whatever else": {func() error { return idem.RetryAt(inThreeHours(), idem.NoRetry(closed)) }, idem.StateParked},
		"not before":           {func() error { return idem.RetryAt(inThreeHours(), closed) }, idem.StatePending},
		"not before, wrapped":  {func() error { return fmt.Errorf("order: %w", idem.RetryAt(inThreeHours(), closed)) }, idem.StatePending},
	}, "never, whatever else", "not before, wrapped") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newInboxApp(t)
			m.Inbox.MaxAttempts = 5
			m.On(func(ctx context.Context, tx pgx.Tx, n *note) error { return errors.Join(pay(ctx, tx, n), c.err()) })
			m.WantAnswer(paid("e1"), 200)
			m.Start(m.Inbox)
			o := m.Next()
			m.WantEffects(0)
			m.WantPayload("e1", paid("e1"))
			m.WantState("e1", c.state)
			if !strings.Contains(queryOne[string](m, `select last_error from idem_events`), "closed account") {
				t.Error("the reason is not stored")
			}
			if c.state == idem.StateParked {
				m.WantRow("e1", `attempts`, `1`)
				if o.Outcome != idem.Parked {
					t.Errorf("the outcome is %s, want parked", o.Outcome)
				}
				return
			}
			m.WantRow("e1", `(attempts, claimed_by)`, `(0,)`)
			m.wantDueIn("e1", 3*time.Hour)
		})
	}
}

// Postgres is shutting down, or another database that the handler has asked is. Nobody
// knows for how long.
func TestWhatIsNotTheEventsFaultIsTriedLessAndLessOften(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.On(func(context.Context, pgx.Tx, *note) error { return &pgconn.PgError{Code: "57P03"} })
	m.Store(letter("e1", "o1", 0))
	m.Exec(`update idem_events set starts = 20`)
	m.Drain()
	m.WantWorked(idem.Retrying)
	m.WantRow("e1", `(state, attempts, crashes, claimed_by)`, `(pending,0,0,)`)
	if wait := queryOne[time.Duration](m, `select due_at - received_at from idem_payloads`); wait < 5*time.Second {
		t.Errorf("the 22nd attempt is due %s after the 21st, want 5s", wait)
	}
}

// A handler may be wrong about the time, or late: it must not run without end.
func TestRetryAtInThePastCountsAndWaits(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.Inbox.MaxAttempts = 3
	var asked []int
	m.Inbox.Backoff = func(attempt int) time.Duration { asked = append(asked, attempt); return time.Hour }
	m.On(func(context.Context, pgx.Tx, *note) error {
		return idem.RetryAt(time.Now().Add(-time.Hour), errors.New("the bank is closed"))
	})
	m.Store(letter("e1", "o1", 0))
	for attempt := 1; attempt < 3; attempt++ {
		m.Drain()
		m.WantWorked(idem.Retrying)
		m.WantRow("e1", `(state, attempts)`, fmt.Sprintf(`(pending,%d)`, attempt))
		m.wantDueIn("e1", time.Hour)
		m.Exec(`update idem_payloads set due_at = now()`)
	}
	m.Drain()
	m.WantWorked(idem.Parked)
	if diff := cmp.Diff([]int{1, 2}, asked); diff != "" {
		t.Error("Backoff was asked for (-want +got):\n" + diff)
	}
}

func TestDefaultBackoffTakesEightHours(t *testing.T) {
	t.Parallel()
	total, inbox := time.Duration(0), idem.NewInbox(idemtest.Pool(t), &notes{})
	for attempt := range inbox.MaxAttempts - 1 { // the last one that fails waits for nothing
		want := min(time.Second<<attempt, time.Hour)
		total += want
		for range 100 { // it has jitter
			if wait := inbox.Backoff(attempt + 1); wait < want*3/4 || wait > want*5/4 {
				t.Fatalf("after attempt %d it waits for %s, want a quarter more or less than %s", attempt+1, wait, want)
			}
		}
	}
	if total.Round(time.Hour) != 8*time.Hour {
		t.Errorf("all of them take %s", total)
	}
	if wait := inbox.Backoff(1 << 30); wait > 75*time.Minute {
		t.Errorf("it waits for %s in the end", wait)
	}
}

// A worker looks for events, and sees one as due. Before it locks the event, another
// worker has tried it, and put it off: the first one leaves it alone.
func TestEventIsNotTriedBeforeItIsDueAgain(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.Inbox.Backoff = func(int) time.Duration { return time.Hour }
	m.On(func(context.Context, pgx.Tx, *note) error { return errors.New("no such order") })
	const lock = `(hashtextextended(current_schema(), 0))`
	m.Exec(`create function now() returns timestamptz language plpgsql as $$ begin
		perform pg_advisory_xact_lock_shared` + lock + `; return clock_timestamp(); end $$`)
	slow := m.NewInbox(openPool(t, m.Pool.Config().ConnString(), func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["options"] += ",pg_catalog" // the search_path is last; its statements wait in now()
	}))
	slow.Backoff = m.Inbox.Backoff
	m.Store(letter("e1", "o1", 1))
	holder, err := m.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Rollback(context.Background())
	if _, err := holder.Exec(t.Context(), `select pg_advisory_xact_lock`+lock); err != nil {
		t.Fatal(err)
	}
	drained := make(chan error, 1)
	go func() { drained <- slow.Drain(t.Context()) }()
	m.Until(`select exists (select from pg_locks where locktype = 'advisory' and not granted and pid in (
		select pid from pg_stat_activity where application_name = current_setting('application_name')))`)
	stop := m.Start(m.Inbox)
	m.WantWorked(idem.Retrying)
	stop()
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
	m.WantRow("e1", "(starts, attempts)", "(1,1)")
	m.wantDueIn("e1", time.Hour)
}

func TestRunReturnsOnceRunningHandlersAreDone(t *testing.T) {
	t.Parallel()
	const workers, events = 2, 20
	m := openInboxApp(t, poolOf(t, workers+2))
	m.Inbox.Workers = workers
	ctx, stop := context.WithCancel(t.Context())
	entered, release, ended := make(chan struct{}, events), make(chan struct{}), make(chan error, 1)
	var begun atomic.Int32
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if begun.Add(1) > 10 {
			entered <- struct{}{}
			<-release
			if err := ctx.Err(); err != nil {
				t.Errorf("the handler's context ended with that of Run: %v", err)
			}
		}
		return pay(ctx, tx, n)
	})
	for n := range events {
		m.Store(letter(fmt.Sprint(n), fmt.Sprint(n), 0))
	}
	go func() { ended <- m.Inbox.Run(ctx) }()
	for range workers {
		<-entered
	}
	stop()
	select {
	case err := <-ended:
		t.Errorf("Run returned %v while handlers ran", err)
	default:
	}
	close(release)
	if err := <-ended; err != nil {
		t.Errorf("Run = %v", err)
	}
	done := int(begun.Load())
	if done != 10+workers {
		t.Errorf("%d events were begun, want %d: none after the stop", done, 10+workers)
	}
	m.WantEffects(done)
	const left = `select count(*) from idem_events e where state = 'pending' and crashes = 0 and attempts = 0 and claimed_by is null`
	if n := queryOne[int](m, left); n != events-done {
		t.Errorf("%d events wait for the next worker, want %d", n, events-done)
	}
	m.Start(m.Inbox) // again
	m.Until(`select not exists (select from idem_payloads)`)
	m.WantEffects(events)
}

func TestStopTimeoutCancelsHandlersAndCountsNothing(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(context.Context, pgx.Tx) error{
		"waits for its context": func(ctx context.Context, _ pgx.Tx) error { <-ctx.Done(); return ctx.Err() },
		"waits in SQL": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `select pg_sleep(60)`)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newInboxApp(t)
			m.Inbox.StopTimeout = 10 * time.Millisecond
			ctx, stop := context.WithCancel(t.Context())
			runs := 0
			m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := pay(ctx, tx, n); err != nil {
					return err
				}
				if runs++; runs > 1 {
					return nil
				}
				stop()
				return wait(ctx, tx)
			})
			m.Store(letter("e1", "o1", 1))
			if err := m.Inbox.Run(ctx); err != nil {
				t.Errorf("Run = %v", err)
			}
			m.WantEffects(0)
			m.WantRow("e1", `(state, attempts, crashes, claimed_by)`, `(pending,0,0,)`)
			m.WantWorked(idem.Retrying)
			m.Start(m.Inbox)
			m.WantWorked(idem.Done)
			m.WantEffects(1)
		})
	}
}

func TestHandlerThatDoesNotReturnIsAnErrorOfRun(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.Inbox.StopTimeout = 10 * time.Millisecond
	ctx, stop := context.WithCancel(t.Context())
	release := make(chan struct{})
	var runs atomic.Int32
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if err := pay(ctx, tx, n); err != nil || runs.Add(1) > 1 {
			return err
		}
		stop()
		<-release
		return nil
	})
	m.Store(letter("e1", "o1", 1))
	err := m.Inbox.Run(ctx)
	if err == nil || !strings.Contains(err.Error(), "1 handlers did not return") {
		t.Errorf("Run = %v, want an error that tells of the handler", err)
	}
	m.Start(m.Inbox)            // the next one goes on
	m.WantWorked(idem.Retrying) // by the first Run
	m.Store(letter("e2", "o2", 1))
	m.WantWorked(idem.Done, idem.Done)
	close(release)
	m.Until(`select not exists (select from idem_payloads)`)
	m.WantEffects(2)
}

func TestSettingsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	for name, set := range map[string]func(*idem.Inbox){
		"Workers":     func(i *idem.Inbox) { i.Workers = 0 },
		"Timeout":     func(i *idem.Inbox) { i.Timeout = 0 },
		"MaxAttempts": func(i *idem.Inbox) { i.MaxAttempts = -1 },
		"Poll":        func(i *idem.Inbox) { i.Poll = 0 },
		"Backoff":     func(i *idem.Inbox) { i.Backoff = nil },
	} {
		i := m.NewInbox(m.Pool)
		set(i)
		for _, err := range []error{i.Run(t.Context()), i.Drain(t.Context())} {
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v, want an error that names it", name, err)
			}
		}
	}
}

func TestRunThatIsStoppedBeforeItStartsDoesNothing(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.On(func(context.Context, pgx.Tx, *note) error { t.Error("worked"); return nil })
	m.Store(letter("e1", "o1", 1))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := m.Inbox.Run(ctx); err != nil {
		t.Errorf("Run = %v", err)
	}
	m.WantRow("e1", `(state, claimed_by)`, `(pending,)`)
}

// Postgres is unavailable when workers start, and when they stop.
func TestRunGoesOnWhenPostgresIsBack(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.On(pay)
	m.Store(letter("e1", "o1", 1))
	var down atomic.Bool
	down.Store(true)
	stop := m.Start(m.NewInbox(openPool(t, m.Pool.Config().ConnString(), func(c *pgxpool.Config) { takeDown(c, &down) })))
	for !strings.Contains(m.Logged(), "cannot reach the events") {
		pause()
	}
	down.Store(false)
	m.WantWorked(idem.Done)
	down.Store(true)
	stop()
	m.WantEffects(1)
}

// wantDueIn checks when an event is due, give or take a minute.
func (m *app) wantDueIn(id string, want time.Duration) {
	m.Helper()
	got := queryOne[time.Duration](m, `select due_at - now() from idem_payloads where event like '%/' || $1`, id)
	if (got - want).Abs() > time.Minute {
		m.Errorf("%s is due in %s, want in %s", id, got, want)
	}
}
