//go:build long

package promises_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/oncall/operator"
)

// An application may have a stricter isolation than Postgres's default for its own sake.
// What this package executes for itself must not be asked to run again: who would do it?
func TestOurOwnStatementsMeetConcurrentChangesAtEveryDefaultIsolation(t *testing.T) {
	t.Parallel()
	const touch = `update idem_events set type = type where event = 'notes//e1'`
	noOrder := errors.New("no such order")
	parked := func(s *app) {
		if o, err := s.processor.Accept(s.Context(), identify([]byte(paid("e1")))); o != idem.Parked || err != nil {
			s.Fatalf("Accept = %s, %v, want parked", o, err)
		}
	}
	inline := func(id string) func(*app) (string, error) {
		return func(s *app) (string, error) {
			o, err := s.processor.Accept(s.Context(), identify([]byte(paid(id))))
			return string(o), err
		}
	}
	inbox := func(s *app) (string, error) {
		o, err := s.inbox.Accept(s.Context(), identify([]byte(paid("e1"))))
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
		{"a Processor keeps", "with kept as (\n\tinsert", nil, func(s *app) (string, error) {
			o, err := s.processor.Accept(s.Context(), identify([]byte(`{"id":"e1","type":"new"}`)))
			return string(o), err
		}, fmt.Sprintf(insert, 1, "unhandled"), nil, "duplicate"},
		{"a Processor counts a failure", "with counted as", nil, func(s *app) (string, error) {
			o, _ := s.processor.Accept(s.Context(), identify([]byte(paid("e1"))))
			return fmt.Sprint(o, " ", queryOne[int](s, `select attempts from idem_events`)), nil
		}, fmt.Sprintf(insert, 1, "retrying"), noOrder, "retrying 1"},
		{"a Processor holds a new event", "with head as", parked, inline("e2"), fmt.Sprintf(insert, 2, "retrying"), idem.NoRetry(noOrder), "parked"},
		{"a Processor holds a stored event", "with own as", func(s *app) {
			parked(s)
			s.exec(fmt.Sprintf(insert, 2, "retrying"))
		}, inline("e2"), strings.ReplaceAll(touch, "e1", "e2"), idem.NoRetry(noOrder), "parked"},
		{"a replay ends the turn of a held event", "with ended as", func(s *app) {
			parked(s)
			s.exec(`update idem_payloads set body = '{"id":5}'`)
		}, func(s *app) (string, error) {
			sum, err := s.processor.Replay(s.Context(), idem.Filter{})
			return fmt.Sprintf("%+v", sum), err
		}, touch, idem.NoRetry(noOrder), fmt.Sprintf("%+v", idem.Replayed{Failed: 1})},
		{"a discard", "set state = 'discarded'", parked, func(s *app) (string, error) {
			var level string
			n, err := engineOf(s.processor).Discard(s.Context(), idem.Filter{IDs: []string{"e1"}}, "x", func(ctx context.Context, tx pgx.Tx, _ []string) error {
				return tx.QueryRow(ctx, `show transaction_isolation`).Scan(&level)
			})
			return fmt.Sprint(n, " ", level), err
		}, touch, idem.NoRetry(noOrder), "1 read committed"},
		{"a requeue", "set state = 'pending'", parked, func(s *app) (string, error) {
			var level string
			n, err := engineOf(s.inbox).(requeuer).Requeue(s.Context(), idem.Filter{IDs: []string{"e1"}}, func(ctx context.Context, tx pgx.Tx, _ []string) error {
				return tx.QueryRow(ctx, `show transaction_isolation`).Scan(&level)
			})
			return fmt.Sprint(n, " ", level), err
		}, touch, idem.NoRetry(noOrder), "1 read committed"},
		{"an import", "select distinct on (event)", nil, func(s *app) (string, error) {
			sum, err := operator.New(s.processor, "ana").Import(s.Context(), "", all(doneBefore("e1", "e2")...), "")
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
				s.on(func(context.Context, pgx.Tx, *note) error { return c.fails })
				if c.prepare != nil {
					c.prepare(s)
				}
				other.exec(fmt.Sprintf(gate, "'"+strings.ReplaceAll(c.phrase, "'", "''")+"'"))
				type answer struct {
					what string
					err  error
				}
				acted := make(chan answer, 1)
				go func() {
					what, err := c.act(s)
					acted <- answer{what, err}
				}()
				other.until(`select is_called from arrived`)
				other.exec(c.meanwhile)
				other.exec(`select nextval('opened')`)
				if a := <-acted; a.what != c.want || a.err != nil && a.what != string(idem.Parked) {
					t.Errorf("it came to %q, %v, want %q\n%s", a.what, a.err, c.want, s.logged())
				}
			})
		}
	}
}
