package idem_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
)

func TestBackoffSaysWhenAnEventIsTriedAgain(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	var asked []int
	m.inbox.Workers = 1
	m.inbox.Backoff = func(attempt int) time.Duration {
		asked = append(asked, attempt)
		return time.Duration(attempt) * time.Hour
	}
	m.on(func(context.Context, pgx.Tx, *note) error { return errors.New("no such order") })
	m.wantAnswer(paid("e1"), 200)
	m.start(m.inbox)
	for attempt := 1; attempt <= 3; attempt++ {
		m.wantWorked(idem.Retrying)
		m.wantRow("e1", `(state, attempts, claimed_by, last_error)`, fmt.Sprintf(`(pending,%d,,"no such order")`, attempt))
		m.wantDueIn("e1", time.Duration(attempt)*time.Hour)
		m.exec(`update idem_payloads set due_at = now()`)
	}
	m.next()
	if diff := cmp.Diff([]int{1, 2, 3}, asked[:3]); diff != "" {
		t.Error("Backoff was asked for (-want +got):\n" + diff)
	}
}

// wantDueIn checks when an event is due, give or take a minute.
func (m *app) wantDueIn(id string, want time.Duration) {
	m.Helper()
	got := queryOne[time.Duration](m, `select due_at - now() from idem_payloads where event like '%/' || $1`, id)
	if (got - want).Abs() > time.Minute {
		m.Errorf("%s is due in %s, want in %s", id, got, want)
	}
}

func TestEventThatFailsTooOftenIsKeptWithWhatIsKnownOfIt(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.inbox.MaxAttempts = 3
	runs := 0
	m.on(func(context.Context, pgx.Tx, *note) error { runs++; return fmt.Errorf("no such order, %d", runs) })
	m.wantAnswer(paid("e1"), 200)
	m.start(m.inbox)
	m.wantWorked(idem.Retrying, idem.Retrying, idem.Parked)
	m.wantRow("e1", `(state, attempts, crashes, last_error, claimed_by)`, `(parked,3,0,"no such order, 3",)`)
	m.wantPayload("e1", paid("e1"))
	m.wantAnswer(paid("e1"), 200) // somebody sends it again, who wants it done: it gets all its attempts anew
	m.wantWorked(idem.Retrying, idem.Retrying, idem.Parked)
}

func TestHandlersSayWhatIsNotToBeTriedAgain(t *testing.T) {
	t.Parallel()
	closed := errors.New("closed account")
	inThreeHours := func() time.Time { return time.Now().Add(3 * time.Hour) } // when the handler runs
	for name, c := range map[string]struct {
		err   func() error
		state idem.State
	}{
		"never":                {func() error { return idem.NoRetry(closed) }, idem.StateParked},
		"never, wrapped":       {func() error { return fmt.Errorf("order: %w", idem.NoRetry(closed)) }, idem.StateParked},
		"never, whatever else": {func() error { return idem.RetryAt(inThreeHours(), idem.NoRetry(closed)) }, idem.StateParked},
		"not before":           {func() error { return idem.RetryAt(inThreeHours(), closed) }, idem.StatePending},
		"not before, wrapped":  {func() error { return fmt.Errorf("order: %w", idem.RetryAt(inThreeHours(), closed)) }, idem.StatePending},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newInboxApp(t)
			m.inbox.MaxAttempts = 5
			m.on(func(ctx context.Context, tx pgx.Tx, n *note) error { return errors.Join(pay(ctx, tx, n), c.err()) })
			m.wantAnswer(paid("e1"), 200)
			m.start(m.inbox)
			o := m.next()
			m.wantEffects(0)
			m.wantPayload("e1", paid("e1"))
			m.wantState("e1", c.state)
			if !strings.Contains(queryOne[string](m, `select last_error from idem_events`), "closed account") {
				t.Error("the reason is not stored")
			}
			if c.state == idem.StateParked {
				m.wantRow("e1", `attempts`, `1`)
				if o.Outcome != idem.Parked {
					t.Errorf("the outcome is %s, want parked", o.Outcome)
				}
				return
			}
			m.wantRow("e1", `(attempts, claimed_by)`, `(0,)`)
			m.wantDueIn("e1", 3*time.Hour)
		})
	}
}

func TestRetryAtDoesNotCountTowardsMaxAttempts(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.inbox.MaxAttempts = 1
	runs := 0
	m.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if runs++; runs <= 3 {
			return idem.RetryAt(time.Now().Add(time.Hour), errors.New("the bank is closed"))
		}
		return pay(ctx, tx, n)
	})
	m.wantAnswer(paid("e1"), 200)
	m.start(m.inbox)
	for range 3 {
		m.wantWorked(idem.Retrying)
		m.exec(`update idem_payloads set due_at = now()`)
	}
	m.wantWorked(idem.Done)
	m.wantRow("e1", `(attempts, last_error)`, `(0,)`)
}

// Postgres is shutting down, or another database that the handler has asked is. Nobody
// knows for how long.
func TestWhatIsNotTheEventsFaultIsTriedLessAndLessOften(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.on(func(context.Context, pgx.Tx, *note) error { return &pgconn.PgError{Code: "57P03"} })
	m.store(letter("e1", "o1", 0))
	m.exec(`update idem_events set starts = 20`)
	m.drain()
	m.wantWorked(idem.Retrying)
	m.wantRow("e1", `(state, attempts, crashes, claimed_by)`, `(pending,0,0,)`)
	if wait := queryOne[time.Duration](m, `select due_at - received_at from idem_payloads`); wait < 5*time.Second {
		t.Errorf("the 22nd attempt is due %s after the 21st, want 5s", wait)
	}
}

// A handler may be wrong about the time, or late: it must not run without end.
func TestRetryAtInThePastCountsAndWaits(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.inbox.MaxAttempts = 3
	var asked []int
	m.inbox.Backoff = func(attempt int) time.Duration { asked = append(asked, attempt); return time.Hour }
	m.on(func(context.Context, pgx.Tx, *note) error {
		return idem.RetryAt(time.Now().Add(-time.Hour), errors.New("the bank is closed"))
	})
	m.store(letter("e1", "o1", 0))
	for attempt := 1; attempt < 3; attempt++ {
		m.drain()
		m.wantWorked(idem.Retrying)
		m.wantRow("e1", `(state, attempts)`, fmt.Sprintf(`(pending,%d)`, attempt))
		m.wantDueIn("e1", time.Hour)
		m.exec(`update idem_payloads set due_at = now()`)
	}
	m.drain()
	m.wantWorked(idem.Parked)
	if diff := cmp.Diff([]int{1, 2}, asked); diff != "" {
		t.Error("Backoff was asked for (-want +got):\n" + diff)
	}
}

func TestDefaultBackoffTakesEightHours(t *testing.T) {
	t.Parallel()
	total := time.Duration(0)
	for attempt := range idem.NewInbox(idemtest.Pool(t), &notes{}).MaxAttempts - 1 { // the last one that fails waits for nothing
		want := min(time.Second<<attempt, time.Hour)
		total += want
		for range 100 { // it has jitter
			if wait := idem.DefaultBackoff(attempt + 1); wait < want*3/4 || wait > want*5/4 {
				t.Fatalf("after attempt %d it waits for %s, want a quarter more or less than %s", attempt+1, wait, want)
			}
		}
	}
	if total.Round(time.Hour) != 8*time.Hour {
		t.Errorf("all of them take %s", total)
	}
	if wait := idem.DefaultBackoff(1 << 30); wait > 75*time.Minute {
		t.Errorf("it waits for %s in the end", wait)
	}
}

// A worker looks for events, and sees one as due. Before it locks the event, another
// worker has tried it, and put it off: the first one leaves it alone.
func TestEventIsNotTriedBeforeItIsDueAgain(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.inbox.Backoff = func(int) time.Duration { return time.Hour }
	m.on(func(context.Context, pgx.Tx, *note) error { return errors.New("no such order") })
	const lock = `(hashtextextended(current_schema(), 0))`
	m.exec(`create function now() returns timestamptz language plpgsql as $$ begin
		perform pg_advisory_xact_lock_shared` + lock + `; return clock_timestamp(); end $$`)
	slow := m.newInbox(openPool(t, m.pool.Config().ConnString(), func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["options"] += ",pg_catalog" // the search_path is last; its statements wait in now()
	}))
	slow.Backoff = m.inbox.Backoff
	m.store(letter("e1", "o1", 1))
	holder, err := m.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Rollback(context.Background())
	if _, err := holder.Exec(t.Context(), `select pg_advisory_xact_lock`+lock); err != nil {
		t.Fatal(err)
	}
	drained := make(chan error, 1)
	go func() { drained <- slow.Drain(t.Context()) }()
	m.until(`select exists (select from pg_locks where locktype = 'advisory' and not granted and pid in (
		select pid from pg_stat_activity where application_name = current_setting('application_name')))`)
	stop := m.start(m.inbox)
	m.wantWorked(idem.Retrying)
	stop()
	if err := holder.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
	m.wantRow("e1", "(starts, attempts)", "(1,1)")
	m.wantDueIn("e1", time.Hour)
}
