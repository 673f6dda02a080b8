//go:build long

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Nobody says that the process is dead, and its handler had an hour.
func TestOtherProcessesGoOnWithWhatAKilledOneHadClaimed(t *testing.T) {
	t.Parallel()
	const events, keys = 20, 10
	p := openProcesses(t)
	p.Exec(`insert into fatal values ('3')`)
	first, second := p.startWorker(3), p.startWorker(3)
	for n := range events {
		p.storeOne(nth(n, keys))
	}
	var killed time.Time
	for done := 0; done < events; {
		switch state, of, _ := strings.Cut(p.nextState(), " "); {
		case state == "done":
			done++
		case state == "halfway" && of == first.name:
			first.kill()
			killed = time.Now()
		case state == "halfway":
			second.kill()
			killed = time.Now()
		default:
			t.Fatalf("%s is %s", of, state)
		}
	}
	t.Logf("others had done all %s after it was killed", time.Since(killed).Round(100*time.Millisecond))
	p.WantEffects(events)
	p.wantEachOnceInOrder()
	p.WantRow("3", "(state, starts, crashes)", "(done,2,1)")
	p.Until(`select count(*) = 2 from idem_workers`) // of the other process, for two sources
}

// Four runners, and two connections.
func TestWorkersThatWaitForAConnectionHaveNotCrashed(t *testing.T) {
	t.Parallel()
	const events, attempts = 40, 5
	m := openInboxApp(t, poolOf(t, 2))
	m.On(func(context.Context, pgx.Tx, *note) error { return errors.New("no such order") })
	for n := range events {
		m.Store(letter(fmt.Sprint(n), fmt.Sprint(n), 0))
	}
	for range 4 {
		i := m.NewInbox(m.Pool)
		i.Workers, i.MaxAttempts, i.Logger = 4, attempts, nil
		m.Start(i)
	}
	for parked := 0; parked < events; {
		if m.Next().Outcome == idem.Parked {
			parked++
		}
	}
	if got := queryOne[string](m, `select (sum(attempts), max(crashes))::text from idem_events`); got != fmt.Sprintf("(%d,0)", events*attempts) {
		t.Errorf("attempts and crashes are %s", got)
	}
}

// All of the pool's connections may be in use by handlers.
func TestSignsAreGivenWhileThePoolIsInUse(t *testing.T) {
	t.Parallel()
	m := openInboxApp(t, poolOf(t, 1))
	looking := openPool(t, m.Pool.Config().ConnString(), func(*pgxpool.Config) {})
	entered, release := make(chan struct{}), make(chan struct{})
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		close(entered)
		<-release
		return pay(ctx, tx, n)
	})
	m.Store(letter("e1", "o1", 0))
	m.Start(m.Inbox)
	<-entered
	own := m.Pool
	m.Pool = looking
	m.Until(`select seen_at > claimed_at + interval '1 second' from idem_workers, idem_events`)
	claim, err := store.FindClaim(t.Context(), looking, "notes//e1")
	if err != nil || !claim.Alive || claim.Host == "" || claim.PID == 0 || claim.At.IsZero() {
		t.Errorf("its claim is %+v, %v", claim, err)
	}
	if living, err := store.LivingWorkers(t.Context(), looking, "notes"); err != nil || len(living) != 1 || living[0].PID != claim.PID {
		t.Errorf("alive are %+v, %v", living, err)
	}
	m.Pool = own
	close(release)
	m.WantWorked(idem.Done)
}

// Postgres asks to run the transaction again more often than an attempt does: what was met
// is to blame, and not the event.
func TestSerializationFailuresAreNoFailuresOfTheEvent(t *testing.T) {
	t.Parallel()
	m := newInboxApp(t)
	m.Inbox.Workers = 1 // two could tell of its attempts in another order
	m.Inbox.Backoff = func(int) time.Duration { return time.Hour }
	runs := 0
	m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if runs++; runs <= 10 {
			_, err := tx.Exec(ctx, `do $$ begin raise exception 'again' using errcode = '40001'; end $$`)
			return err
		}
		return pay(ctx, tx, n)
	})
	m.Store(letter("e1", "o1", 1))
	m.Start(m.Inbox)
	m.WantWorked(idem.Retrying, idem.Retrying, idem.Done)
	m.WantRow("e1", "(state, attempts, crashes)", "(done,0,0)")
}

// Between the begin of its transaction and the commit, another process holds the next
// event back. A transaction that is stricter than Postgres's default does not see that.
func TestNextEventGoesOnWhateverTheIsolationOfTheHandler(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"read committed", "repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			m := openInboxApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
				c.ConnConfig.RuntimeParams["default_transaction_isolation"] = level
			}))
			m.Inbox.Workers = 1
			m.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if n.ID == "e1" {
					m.Exec(`update idem_payloads set due_at = null where event = 'notes//e2'`)
				}
				return pay(ctx, tx, n)
			})
			m.Store(letter("e1", "o1", 1), letter("e2", "o1", 2))
			m.Start(m.Inbox)
			m.WantWorked(idem.Done)
			m.Until(`select state = 'done' or due_at is not null from idem_events left join idem_payloads using (event) where event = 'notes//e2'`)
			m.WantWorked(idem.Done)
			m.WantEffects(2)
		})
	}
}
