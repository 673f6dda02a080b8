package promises_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// Postgres has timeouts of its own, which the administrator may have set to
// anything. The handlers set them here, so that they end nothing else. None ends
// COMMIT: Postgres disarms statement_timeout before it.
func TestTimeoutOfPostgresIsAFailureLikeAnyOther(t *testing.T) {
	t.Parallel()
	for name, hang := range map[string]func(ctx context.Context, s *app, tx pgx.Tx) error{
		"statement_timeout": func(ctx context.Context, _ *app, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `set local statement_timeout = '10ms'; select pg_sleep(60)`)
			return err
		},
		"lock_timeout": func(ctx context.Context, _ *app, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `set local lock_timeout = '10ms'; lock table held`)
			return err
		},
		"idle_in_transaction_session_timeout": func(ctx context.Context, s *app, tx pgx.Tx) error {
			if err := s.idleUntilEnded(ctx, tx); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `select 1`)
			return err
		},
		"idle_in_transaction_session_timeout before COMMIT": func(ctx context.Context, s *app, tx pgx.Tx) error {
			return s.idleUntilEnded(ctx, tx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			s.Exec(`create table held ()`)
			holder, err := s.Pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer holder.Rollback(context.Background())
			if _, err := holder.Exec(t.Context(), `lock table held`); err != nil {
				t.Fatal(err)
			}
			runs := 0
			s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := pay(ctx, tx, n); err != nil {
					return err
				}
				if runs++; runs > 1 {
					return nil
				}
				return hang(ctx, s, tx)
			})
			s.WantAnswer(paid("e1"), http.StatusServiceUnavailable)
			s.WantEffects(0)
			s.WantState("e1", "")
			s.WantAnswer(paid("e1"), http.StatusOK)
			s.WantEffects(1)
			if runs != 2 {
				t.Errorf("the handler ran %d times, want 2", runs)
			}
		})
	}
}

// While another process processes the event, a statement_timeout ends the mark,
// which waits for it, before the handler runs.
func TestStatementTimeoutOfTheMarkIsNoFailureOfTheEvent(t *testing.T) {
	t.Parallel()
	s := openApp(t, poolOf(t, 1)) // one session, so that it can be set
	s.On(pay)
	first := s.Session(`begin; insert into idem_events values ('notes//e1', 'paid', '', 'done')`)
	s.Exec(`set statement_timeout = '10ms'`)
	s.WantAnswer(paid("e1"), http.StatusServiceUnavailable)
	for range 100 { // the time-out may end this as well
		if _, err := s.Pool.Exec(t.Context(), `set statement_timeout = 0`); err == nil {
			break
		}
	}
	if _, err := first.Exec(t.Context(), `rollback`); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(s.Logged(), "statement timeout") {
		t.Error("the log does not tell that a timeout ended the mark:\n" + s.Logged())
	}
	s.WantState("e1", "")
	s.WantAnswer(paid("e1"), http.StatusOK)
	s.WantEffects(1)
}

// Nobody waits without an end for a network that has forgotten the connection.
func TestEachStatementOfAnOperationHasADeadline(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.On(refuseBad)
	s.Store(letter("bad1", "o1", 0), letter("bad2", "o2", 0), letter("a2", "o2", 0))
	s.Drain(2)
	s.stock(50)
	var during atomic.Value
	var seen atomic.Int64
	pool := s.tracedPool(&statements{begins: func(ctx context.Context, sql string) { // also of the goroutine that notifies
		seen.Add(1)
		if _, ends := ctx.Deadline(); !ends {
			t.Errorf("%s executes %.60q without a deadline", during.Load(), strings.TrimSpace(sql))
		}
	}})
	i := s.NewInbox(pool)
	o, bia := operator.New(i, "ana"), operator.New(s.Inbox, "bia")
	o.RequeueWithoutWorkers, bia.RequeueWithoutWorkers = true, true
	all := idem.Filter{States: []idem.State{idem.StateParked, idem.StatePending}}
	for name, do := range map[string]func(context.Context) error{
		"Stats":     func(ctx context.Context) error { _, err := i.Stats(ctx); return err },
		"Blocked":   func(ctx context.Context) error { _, _, err := o.Blocked(ctx, 10); return err },
		"Conflicts": func(ctx context.Context) error { _, _, err := o.Conflicts(ctx, 10); return err },
		"Count":     func(ctx context.Context) error { _, err := o.Count(ctx, all); return err },
		"Choose":    func(ctx context.Context) error { _, err := engineOf(i).Choose(ctx, all); return err },
		"Page": func(ctx context.Context) error {
			_, err := o.Page(ctx, all, operator.Place{}, 10)
			return err
		},
		"Lookup":    func(ctx context.Context) error { _, _, err := o.Lookup(ctx, "", "a2"); return err },
		"WithID":    func(ctx context.Context) error { _, err := o.WithID(ctx, "a2"); return err },
		"ScanOfKey": func(ctx context.Context) error { _, err := o.ScanOfKey(ctx); return err },
		"OfKey":     func(ctx context.Context) error { _, err := o.OfKey(ctx, nil, "o1", 10); return err },
		"List": func(ctx context.Context) (err error) {
			for _, failure := range i.List(ctx, all) {
				err = failure
			}
			return err
		},
		"Prune":     func(ctx context.Context) error { _, err := i.Prune(ctx); return err },
		"DryPrune":  func(ctx context.Context) error { _, err := engineOf(i).DryPrune(ctx); return err },
		"Replay":    func(ctx context.Context) error { _, err := replayed(ctx, "")(o.PlanReplay(ctx, all)); return err },
		"DryReplay": func(ctx context.Context) error { _, err := replayed(ctx, "")(o.PlanDryReplay(ctx, all)); return err },
		"Requeue":   func(ctx context.Context) error { _, err := acted(ctx, "")(o.PlanRequeue(ctx, all)); return err },
		"Discard": func(ctx context.Context) error {
			_, err := acted(ctx, "")(o.PlanDiscard(ctx, idem.Filter{IDs: []string{"bad1"}}))
			return err
		},
		"Actions": func(ctx context.Context) error { _, err := o.Actions(ctx, 0, 10); return err },
		"ActionEvents": func(ctx context.Context) error {
			_, err := o.ActionEvents(ctx, queryOne[int64](s, `select min(id) from idem_audit`))
			return err
		},
	} {
		if name == "ActionEvents" {
			if _, err := acted(t.Context(), "")(bia.PlanRequeue(t.Context(), idem.Filter{IDs: []string{}})); err != nil {
				t.Fatal(err)
			}
		}
		during.Store(name)
		seen.Store(0)
		if err := do(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if seen.Load() == 0 {
			t.Errorf("%s executes no statement that the tracer sees", name)
		}
	}
}

// An event may be forgotten between the statement that finds it stored and the one that looks at it.
func TestEventThatIsBeingForgottenIsNoDuplicate(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]idem.Event{
		"no handler":      {ID: "e1", Type: "new", Payload: []byte(newBody)},
		"does not decode": {ID: "e1", Type: "paid", Payload: []byte(`{"order":7}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newApp(t)
			s.On(pay)
			s.Exec(`insert into idem_events (event, type, key, state) values ('notes//e1', 'new', '', 'done')`)
			var forgotten atomic.Bool
			p := newFirst(s.tracedPool(&statements{ends: func(_ context.Context, sql string) {
				if strings.Contains(sql, "insert into idem_events") && !forgotten.Swap(true) {
					s.Exec(`delete from idem_events`)
				}
			}}), s.Notes)
			p.Logger = s.Logger()
			if outcome, err := p.Accept(t.Context(), e); outcome != idem.Retrying || err == nil || !strings.Contains(err.Error(), "being forgotten") {
				t.Errorf("Accept = %s, %v, want retrying: nothing is stored", outcome, err)
			}
			if !forgotten.Load() {
				t.Fatal("the event was not forgotten in between")
			}
			if outcome, err := p.Accept(t.Context(), e); outcome == idem.Duplicate || err != nil {
				t.Errorf("Accept again = %s, %v, want it stored", outcome, err)
			}
		})
	}
}

// idleUntilEnded leaves a transaction idle until Postgres has ended its session.
func (s *app) idleUntilEnded(ctx context.Context, tx pgx.Tx) error {
	var pid int
	if err := tx.QueryRow(ctx, `select pg_backend_pid()`).Scan(&pid); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `set local idle_in_transaction_session_timeout = '10ms'`); err != nil {
		return err
	}
	return s.Await(ctx, `select not exists (select from pg_stat_activity where pid = $1)`, pid)
}

func (s *app) tracedPool(tracer *statements) *pgxpool.Pool {
	s.Helper()
	return openPool(s.TB, s.Pool.Config().ConnString(), func(c *pgxpool.Config) { c.ConnConfig.Tracer = tracer })
}

// statements calls a function at the begin and another at the end of each statement, with its
// context and its first words.
type statements struct {
	begins, ends func(ctx context.Context, sql string)
}

func (s *statements) begin(ctx context.Context, sql string) context.Context {
	if s.begins != nil {
		s.begins(ctx, sql)
	}
	return context.WithValue(ctx, statementKey{}, sql)
}

func (s *statements) end(ctx context.Context) {
	if s.ends != nil {
		s.ends(ctx, ctx.Value(statementKey{}).(string))
	}
}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	return s.begin(ctx, q.SQL)
}

func (s *statements) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryEndData) {
	s.end(ctx)
}

func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, b pgx.TraceBatchStartData) context.Context {
	var sql strings.Builder
	for _, q := range b.Batch.QueuedQueries {
		sql.WriteString(q.SQL + ";")
	}
	return s.begin(ctx, sql.String())
}

func (s *statements) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

func (s *statements) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchEndData) {
	s.end(ctx)
}

type statementKey struct{}
