package idem_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/idemtest"
)

// statements collects what pgx sends, with its arguments.
type statements struct {
	mu   sync.Mutex
	sent map[string][]any // the last arguments of each
}

func (s *statements) add(sql string, args []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sent == nil {
		s.sent = make(map[string][]any)
	}
	s.sent[sql] = args
}

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	s.add(data.SQL, data.Args)
	return ctx
}

func (s *statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (s *statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (s *statements) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	s.add(data.SQL, data.Args)
}

func (s *statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// ofTables are the statements on the package's tables, and the settings that
// the claim has for itself.
func (s *statements) ofTables() (on map[string][]any, settings string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	on = make(map[string][]any)
	for sql, args := range s.sent {
		switch {
		case strings.Contains(sql, "'plan_cache_mode'"):
			settings = sql
		case !strings.Contains(sql, "$1"), strings.Contains(sql, " like "): // the test's own
		case strings.Contains(sql, "idem_events"), strings.Contains(sql, "idem_payloads"):
			on[sql] = args
		}
	}
	return on, settings
}

// everyWay leads events on every way that deliveries and workers have.
func everyWay(s *shop, o *office) {
	s.Helper()
	for range 2 {
		s.wantAnswer(paid("done"), 200)
		s.wantAnswer(newBody, 200)
		s.deliver(`{"id":"fails","type":"paid","order":"fails"}`)
	}
	for range 2 {
		for _, id := range []string{"fails", "e1"} {
			if _, err := o.Accept(s.Context(), booking(id, id)); err != nil {
				s.Fatal(err)
			}
		}
	}
	o.work(2)
	o.queue(booking("suspect", "suspect"), booking("twice", "twice"), booking("bad1", "bad"))
	s.exec(`insert into idem_claims select event, now() - interval '1 s' from idem_events where event like '%suspect'`)
	s.wantAnswer(paid("twice"), 200)
	o.KeepPayloads, s.processor.KeepPayloads = true, true
	s.wantAnswer(paid("kept"), 200)
	s.wantAnswer(paid("twice"), 200)
	o.work(2)
}

var seqScan = regexp.MustCompile(`Seq Scan on (idem_\w+)`)

// Whatever is in the tables, and whatever Postgres knows of it: what deliveries
// and workers execute goes along indexes.
func TestDeliveriesAndWorkersNeverReadATableThrough(t *testing.T) {
	t.Parallel()
	sent := &statements{}
	s := openShop(t, openPool(t, idemtest.URL(t), func(c *poolConfig) { c.ConnConfig.Tracer = sent }))
	s.exec(`alter table idem_events set (autovacuum_enabled = off); alter table idem_payloads set (autovacuum_enabled = off)`)
	s.on(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if n.ID == "fails" {
			return errors.New("no such order")
		}
		return refuseBad(ctx, tx, n)
	})
	sent.sent = nil // the migration's
	everyWay(s, newOffice(s, s.pool))
	on, settings := sent.ofTables()
	for _, part := range []string{ // so that this test cannot come to look at nothing
		"with recursive ring", "with suspect as", "unnest($1::text[], $2::text[]", "with kept as", "pg_try_advisory_xact_lock",
		"delete from idem_payloads where ctid", "set done = true", "with failed as", "attempts = e.attempts + 1", "select $1::text",
		"delete from idem_payloads b", "where ctid = $1", "insert into idem_claims", "delete from idem_claims",
	} {
		found := false
		for sql := range on {
			found = found || strings.Contains(sql, part)
		}
		if !found {
			t.Errorf("no statement was executed that has %q", part)
		}
	}

	for _, state := range []struct{ name, sql string }{
		{"200,000 done, not analysed", `delete from idem_events; delete from idem_payloads;` + prefill(1, 200_000)},
		{"analysed", `analyze idem_events; analyze idem_payloads`},
		{"1,000 pending", `insert into idem_events (event, type, key, state) select 'notes//p' || n, 'paid', n, 'pending' from generate_series(1, 1000) n;
			insert into idem_payloads (event, done, queue, received_at, body)
				select event, false, 'notes//' || key, received_at, '{}' from idem_events where state = 'pending'`},
		{"analysed again", `vacuum analyze idem_events, idem_payloads`},
	} {
		for sql := range strings.SplitSeq(state.sql, ";") {
			s.exec(sql)
		}
		for sql, args := range on {
			for kind, plan := range s.plans(sql, args, settings) {
				if found := seqScan.FindString(plan); found != "" {
					t.Errorf("%s, %s plan: %s in\n%s\n%s", state.name, kind, found, sql, plan)
				}
			}
		}
	}
}

// prefill is the SQL for so many events that are done, half of them with
// payloads, named as Asaas names its events.
func prefill(first, last int) string {
	return fmt.Sprintf(`insert into idem_events (event, type, key, state, received_at)
		select 'notes//evt_' || md5(n::text) || '&' || n, 'PAYMENT_RECEIVED', 'pay_' || n / 3, 'done', now() - interval '1 day'
		from generate_series(%d, %d) n;
		insert into idem_payloads (event, done, received_at, body)
		select event, true, received_at, '{}' from idem_events where right(event, 1) in ('0', '2', '4', '6', '8')`, first, last)
}

var placeholder = regexp.MustCompile(`\$\d+`)

// plans are the two plans that Postgres may execute a statement by: the one for
// these arguments, and the one for any.
func (s *shop) plans(sql string, args []any, settings string) map[string]string {
	s.Helper()
	plans := make(map[string]string)
	err := pgx.BeginFunc(s.Context(), s.pool, func(tx pgx.Tx) error {
		if strings.Contains(sql, "with recursive ring") {
			if _, err := tx.Exec(s.Context(), settings); err != nil {
				return err
			}
		} else {
			plan, err := explained(s.Context(), tx, `explain (costs off) `+sql, args...)
			if err != nil {
				return err
			}
			plans["custom"] = plan
		}
		if _, err := tx.Exec(s.Context(), `set local plan_cache_mode = force_generic_plan`); err != nil {
			return err
		}
		highest := 0
		for _, p := range placeholder.FindAllString(sql, -1) {
			var n int
			_, _ = fmt.Sscanf(p, "$%d", &n)
			highest = max(highest, n)
		}
		if _, err := tx.Exec(s.Context(), `prepare generic as `+sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		nulls := strings.TrimSuffix(strings.Repeat("null,", highest), ",")
		plan, err := explained(s.Context(), tx, `explain (costs off) execute generic (`+nulls+`)`)
		if err != nil {
			return err
		}
		plans["generic"] = plan
		_, err = tx.Exec(s.Context(), `deallocate generic`)
		return err
	})
	if err != nil {
		s.Fatalf("%v in the plan of\n%s", err, sql)
	}
	return plans
}

func explained(ctx context.Context, tx pgx.Tx, sql string, args ...any) (string, error) {
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return "", err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	return strings.Join(lines, "\n"), err
}
