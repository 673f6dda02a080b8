//go:build long

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/store"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// An application may have a stricter isolation than Postgres's default for its own sake.
// What this package executes for itself must not be asked to run again: who would do it?
func TestOurOwnStatementsMeetConcurrentChangesAtEveryDefaultIsolation(t *testing.T) {
	t.Parallel()
	const touch = `update idem_events set type = type where event = 'notes//e1'`
	noOrder := errors.New("no such order")
	parked := func(s *app) {
		if o, err := s.First.Accept(s.Context(), identify([]byte(paid("e1")))); o != idem.Parked || err != nil {
			s.Fatalf("Accept = %s, %v, want parked", o, err)
		}
	}
	replay := func(s *app) (string, error) {
		sum, err := s.First.Replay(s.Context(), idem.Filter{})
		return fmt.Sprintf("%+v", sum), err
	}
	inbox := func(s *app) (string, error) {
		o, err := s.Inbox.Accept(s.Context(), identify([]byte(paid("e1"))))
		return string(o), err
	}
	const insert = `insert into idem_events (event, type, key, state) values ('notes//e%[1]d', 'paid', 'o1', '%[2]s');
		insert into idem_payloads (event, source, received_at, body) values ('notes//e%[1]d', 'notes', now(), '')`
	for _, c := range []struct {
		name      string
		phrase    string // of the statement
		prepare   func(*app)
		act       func(*app) (string, error)
		meanwhile string
		fails     error // of the handler
		want      string
	}{
		{"an inbox stores", "with input as", nil, inbox, fmt.Sprintf(insert, 1, "pending"), nil, "duplicate"},
		{"an inbox revives", "with kept as (\n\tselect", parked, inbox, touch, idem.NoRetry(noOrder), "pending"},
		{"a first try keeps", "with kept as (\n\tinsert", nil, func(s *app) (string, error) {
			o, err := s.First.Accept(s.Context(), identify([]byte(`{"id":"e1","type":"new"}`)))
			return string(o), err
		}, fmt.Sprintf(insert, 1, "unhandled"), nil, "duplicate"},
		{"a replay claims an event", "with own as materialized (\n\tselect e.event, p.occurred_at", parked, replay, touch, idem.NoRetry(noOrder), fmt.Sprintf("%+v", idem.Replayed{Failed: 1})},
		{"a replay ends its claim", "with settled as", parked, replay, touch, idem.NoRetry(noOrder), fmt.Sprintf("%+v", idem.Replayed{Failed: 1})},
		{"a discard", "set state = 'discarded'", parked, func(s *app) (string, error) {
			var level string
			n, err := engineOf(s.First).Discard(s.Context(), idem.Filter{IDs: []string{"e1"}}, "x", func(ctx context.Context, tx pgx.Tx, _ []string) error {
				return tx.QueryRow(ctx, `show transaction_isolation`).Scan(&level)
			})
			return fmt.Sprint(n, " ", level), err
		}, touch, idem.NoRetry(noOrder), "1 read committed"},
		{"a requeue", "set state = 'pending'", parked, func(s *app) (string, error) {
			var level string
			n, err := engineOf(s.Inbox).(requeuer).Requeue(s.Context(), idem.Filter{IDs: []string{"e1"}}, func(ctx context.Context, tx pgx.Tx, _ []string) error {
				return tx.QueryRow(ctx, `show transaction_isolation`).Scan(&level)
			})
			return fmt.Sprint(n, " ", level), err
		}, touch, idem.NoRetry(noOrder), "1 read committed"},
		{"an import", "select distinct on (event)", nil, func(s *app) (string, error) {
			sum, err := operator.New(s.First, "ana").Import(s.Context(), "", func(yield func(operator.OldEvent, error) bool) {
				_ = yield(operator.OldEvent{ID: "e1", Done: true}, nil) && yield(operator.OldEvent{ID: "e2", Done: true}, nil)
			}, "")
			return fmt.Sprint(sum.Stored), err
		}, fmt.Sprintf(insert, 1, "pending"), nil, "1"},
	} {
		for _, level := range isolationLevels {
			t.Run(c.name+", "+level, func(t *testing.T) {
				t.Parallel()
				url := idemtest.URL(t)
				other := openApp(t, openPool(t, url, func(*pgxpool.Config) {}))
				s := openApp(t, openPool(t, url, func(p *pgxpool.Config) {
					p.ConnConfig.RuntimeParams["default_transaction_isolation"] = level
					p.ConnConfig.RuntimeParams["application_name"] = "gated"
				})).openInbox()
				s.On(func(context.Context, pgx.Tx, *note) error { return c.fails })
				if c.prepare != nil {
					c.prepare(s)
				}
				other.Exec(fmt.Sprintf(gate, "'"+strings.ReplaceAll(c.phrase, "'", "''")+"'"))
				type answer struct {
					what string
					err  error
				}
				acted := make(chan answer, 1)
				go func() {
					what, err := c.act(s)
					acted <- answer{what, err}
				}()
				other.Until(`select is_called from arrived`)
				other.Exec(c.meanwhile)
				other.Exec(`select nextval('opened')`)
				if a := <-acted; a.what != c.want || a.err != nil && a.what != string(idem.Parked) {
					t.Errorf("it came to %q, %v, want %q\n%s", a.what, a.err, c.want, s.Logged())
				}
			})
		}
	}
}

// What is stored and held back after the statement that marks has begun is not in that
// transaction's snapshot, where the application's isolation is stricter.
func TestEventThatIsHeldBackWhileAnEarlierOneIsMarkedGoesOnAtEveryDefaultIsolation(t *testing.T) {
	t.Parallel()
	for _, level := range isolationLevels {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			url := idemtest.URL(t)
			other := openInboxApp(t, openPool(t, url, func(*pgxpool.Config) {}))
			s := openInboxApp(t, openPool(t, url, func(p *pgxpool.Config) {
				p.ConnConfig.RuntimeParams["default_transaction_isolation"] = level
				p.ConnConfig.RuntimeParams["application_name"] = "gated"
			}))
			s.On(pay)
			s.Store(letter("a", "o", 1))
			other.Exec(fmt.Sprintf(gate, `'set state = ''done'''`))
			defer s.Start(s.Inbox)()
			other.Until(`select is_called from arrived`)
			other.Store(letter("b", "o", 2))
			for held := false; !held; held = queryOne[bool](other, `select due_at is null from idem_payloads where event = 'notes//b'`) {
				if _, err := store.ClaimEvents(t.Context(), other.Pool, store.Search{Source: "notes", Limit: 10, Worker: 1, Crashed: 2}); err != nil {
					t.Fatal(err)
				}
			}
			other.Exec(`select nextval('opened')`)
			s.WantWorked(idem.Done)
			if stuck := queryOne[bool](other, `select exists (select from idem_payloads where due_at is null)`); stuck {
				t.Error("b is held back behind nothing")
			}
		})
	}
}

func TestConcurrentDuplicatesHaveOneEffectAtEveryDefaultIsolation(t *testing.T) {
	t.Parallel()
	for _, level := range isolationLevels {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			s := isolated(t, level)
			other := s.NewFirst()
			delivered := s.StartDeliveryUntil(func(ctx context.Context) error {
				for before := s.Pool.Stat().AcquireCount(); s.Pool.Stat().AcquireCount() < before+2 && ctx.Err() == nil; pause() {
				}
				return ctx.Err() // the other delivery has tried twice to have its turn
			})
			if outcome, err := other.Accept(t.Context(), identify([]byte(paid("e1")))); outcome != idem.Duplicate || err != nil {
				t.Errorf("the duplicate's outcome is %s, %v, want duplicate", outcome, err)
			}
			delivered()
			s.WantEffects(1)
		})
	}
}

// What is stored without a handler is stored by one statement of this package's own.
func TestConcurrentDuplicatesWithoutAHandlerAreStoredOnceAtEveryDefaultIsolation(t *testing.T) {
	t.Parallel()
	for _, level := range isolationLevels {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			s := isolated(t, level)
			first, err := s.Pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer first.Rollback(context.Background())
			_, err = first.Exec(t.Context(), `insert into idem_events values ('notes//e1', 'new', '', 'unhandled');
				insert into idem_payloads (event, source, received_at, body) values ('notes//e1', 'notes', now(), '')`)
			if err != nil {
				t.Fatal(err)
			}
			var duplicate sync.WaitGroup
			duplicate.Go(func() {
				s.WantAnswer(newBody, http.StatusOK)
			})
			if err := s.Await(t.Context(), blocked); err != nil {
				t.Fatal(err)
			}
			if err := first.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			duplicate.Wait()
			s.WantAnswer(newBody, http.StatusOK)
			s.WantState("e1", idem.StateUnhandled)
			s.WantPayload("e1", "") // the first one's
		})
	}
}

// All times in the database are its own, compared with its own: it does not
// matter how wrong they are.
func TestClockOfTheDatabaseMayBeWrong(t *testing.T) {
	t.Parallel()
	for _, ahead := range []string{"1 hour", "-1 hour", "10 years"} {
		t.Run(ahead, func(t *testing.T) {
			t.Parallel()
			s := appWithClock(t, ahead)
			s.On(pay)
			for range 2 {
				s.WantAnswer(paid("e1"), http.StatusOK)
				s.WantAnswer(`{"id":"e2","type":"new"}`, http.StatusOK)
			}
			s.WantEffects(1)
			const wrong = `select count(*) from idem_events
				where received_at - $1::interval between pg_catalog.now() - interval '30 minutes' and pg_catalog.now()`
			if n := queryOne[int](s, wrong, ahead); n != 2 {
				t.Fatalf("%d of the stored times are wrong, want 2", n)
			}
			stats, err := s.First.Stats(t.Context())
			if oldest := stats.Unhandled.Oldest; err != nil || oldest < 0 || oldest > 30*time.Minute {
				t.Errorf("Stats = %+v, %v, want an unhandled event that has just come", stats, err)
			}
			if n, err := s.First.Prune(t.Context()); n != 0 || err != nil {
				t.Errorf("Prune = %d, %v, and nothing is old", n, err)
			}
			s.Deploy(func(n *notes) { idem.Handle(&n.Routes, "new", pay) })
			s.WantReplayed(idem.Filter{}, idem.Replayed{Done: 1})
			s.Exec(`update idem_events set received_at = received_at - interval '50 days'`)
			s.Exec(`delete from idem_prunes`) // as if they had been there
			s.wantPruned(s.First, 2)
		})
	}
}
