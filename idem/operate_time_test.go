package idem_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
)

// statements calls a function at the begin and another at the end of each statement, with its
// context and its first words.
type statements struct {
	begins, ends func(ctx context.Context, sql string)
}

type statementKey struct{}

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

func (s *app) tracedPool(tracer *statements) *pgxpool.Pool {
	s.Helper()
	return openPool(s.T, s.pool.Config().ConnString(), func(c *pgxpool.Config) { c.ConnConfig.Tracer = tracer })
}

// Nobody waits without an end for a network that has forgotten the connection.
func TestEachStatementOfAnOperationHasADeadline(t *testing.T) {
	t.Parallel()
	s := newInboxApp(t)
	s.on(refuseBad)
	s.store(letter("bad1", "o1", 0), letter("bad2", "o2", 0), letter("a2", "o2", 0))
	s.drain(2)
	s.stock(50)
	var during atomic.Value
	var seen atomic.Int64
	pool := s.tracedPool(&statements{begins: func(ctx context.Context, sql string) { // also of the goroutine that notifies
		seen.Add(1)
		if _, ends := ctx.Deadline(); !ends {
			t.Errorf("%s executes %.60q without a deadline", during.Load(), strings.TrimSpace(sql))
		}
	}})
	i := s.newInbox(pool)
	o, bia := operator.New(i, "ana"), operator.New(s.inbox, "bia")
	o.RequeueWithoutWorkers, bia.RequeueWithoutWorkers = true, true
	all := idem.Filter{States: []idem.State{idem.StateParked, idem.StatePending}}
	for name, do := range map[string]func(context.Context) error{
		"Stats":     func(ctx context.Context) error { _, err := i.Stats(ctx); return err },
		"Blocked":   func(ctx context.Context) error { _, _, err := o.Blocked(ctx, 10); return err },
		"Conflicts": func(ctx context.Context) error { _, _, err := o.Conflicts(ctx, 10); return err },
		"Count":     func(ctx context.Context) error { _, err := o.Count(ctx, all); return err },
		"Choose":    func(ctx context.Context) error { _, err := i.Choose(ctx, all); return err },
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
		"DryPrune":  func(ctx context.Context) error { _, err := i.DryPrune(ctx); return err },
		"Replay":    func(ctx context.Context) error { _, err := o.Replay(ctx, all, ""); return err },
		"DryReplay": func(ctx context.Context) error { _, err := o.DryReplay(ctx, all, ""); return err },
		"Requeue":   func(ctx context.Context) error { _, err := o.Requeue(ctx, all, ""); return err },
		"Discard": func(ctx context.Context) error {
			_, err := o.Discard(ctx, idem.Filter{IDs: []string{"bad1"}}, "")
			return err
		},
		"Actions": func(ctx context.Context) error { _, err := o.Actions(ctx, 0, 10); return err },
		"ActionEvents": func(ctx context.Context) error {
			_, err := o.ActionEvents(ctx, queryOne[int64](s, `select min(id) from idem_audit`))
			return err
		},
	} {
		if name == "ActionEvents" {
			if _, err := bia.Requeue(t.Context(), idem.Filter{IDs: []string{}}, ""); err != nil {
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
			s.on(pay)
			s.exec(`insert into idem_events (event, type, key, state) values ('notes//e1', 'new', '', 'done')`)
			var forgotten atomic.Bool
			p := idem.NewProcessor(s.tracedPool(&statements{ends: func(_ context.Context, sql string) {
				if strings.Contains(sql, "insert into idem_events") && !forgotten.Swap(true) {
					s.exec(`delete from idem_events`)
				}
			}}), s.notes)
			p.Logger = s.logger()
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
