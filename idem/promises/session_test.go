package promises_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/broker"
	"github.com/paghooks/paghooks/idem/broker/outbox"
	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/internal/testkit"
)

// With a schema for each tenant, a connection that stays in one has the next event
// recorded there, where it is new.
func TestSearchPathOfAHandlerIsNotThatOfTheNextEvent(t *testing.T) {
	t.Parallel()
	for name, move := range moves {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openApp(t, poolOf(t, 1))
			schema := s.tenant()
			s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := pay(ctx, tx, n); err != nil {
					return err
				}
				return move(ctx, tx, schema)
			})
			for range 2 {
				for n := range 3 {
					s.WantAnswer(paid(fmt.Sprint("e", n)), http.StatusOK)
				}
			}
			s.WantEffects(3)
			if n := queryOne[int](s, `select count(*) from `+schema+`.idem_events`); n != 0 {
				t.Errorf("%d events are recorded as the tenant's", n)
			}
		})
	}
}

// It is the same with workers, whose events also let the next of their entity go on.
func TestSearchPathOfAHandlerIsNotThatOfTheNextEventOfAnInbox(t *testing.T) {
	t.Parallel()
	for name, move := range moves {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openInboxApp(t, poolOf(t, 4))
			s.Inbox.Workers = 1
			schema := s.tenant()
			s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := pay(ctx, tx, n); err != nil {
					return err
				}
				return move(ctx, tx, schema)
			})
			for n := range 4 {
				s.Store(letter(fmt.Sprint("e", n), "o1", n+1))
			}
			s.Drain()
			s.WantEffects(4)
		})
	}
}

// So it is where the tenant's schema has no tables of this module, in which the promotion of the next event of the
// entity would look for them.
func TestSearchPathOfAFunctionMayLeadToASchemaWithoutTheTables(t *testing.T) {
	t.Parallel()
	s := openInboxApp(t, poolOf(t, 4))
	s.Inbox.Workers = 1
	schema := s.tenant()
	s.Exec(`drop table ` + schema + `.idem_events, ` + schema + `.idem_payloads cascade`)
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		if err := pay(ctx, tx, n); err != nil {
			return err
		}
		return moves["a function"](ctx, tx, schema)
	})
	for n := range 4 {
		s.Store(letter(fmt.Sprint("e", n), "o1", n+1))
	}
	s.Drain()
	s.WantEffects(4)
}

// What a handler sets for good, and what it opens, ends with its connection; what the
// pool has set stays.
func TestSettingsOfAHandlerAreNotThoseOfTheNextEvent(t *testing.T) {
	t.Parallel()
	exec := func(sql string) func(context.Context, pgx.Tx) error {
		return func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
			return err
		}
	}
	for name, do := range testkit.Named(map[string]func(context.Context, pgx.Tx) error{
		"SET":               exec(`set statement_timeout = '1ms'`),
		"a setting of ours": exec(`set shop.tenant = 'a'`),
		"characteristics":   exec(`set session characteristics as transaction read only`),
		"set_config":        exec(`select set_config('lock_timeout', '1ms', 1 > 2)`),
		"several":           exec(`select set_config('shop.one', '1', true), pg_catalog.set_config('shop.tenant', 'a', false)`),
		"RESET":             exec(`reset application_name`),
		"DISCARD":           exec(`discard plans; set shop.tenant = 'a'`),
		"DEALLOCATE":        exec(`deallocate all`),
		"a block":           exec(`do $$ begin perform set_config('shop.tenant', 'a', false); end $$`),
		"the connection": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Conn().Exec(ctx, `set shop.tenant = 'a'`)
			return err
		},
		"the connection, and nothing was committed": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Conn().Exec(ctx, `commit; set shop.tenant = 'a'; begin`, pgx.QueryExecModeSimpleProtocol)
			return err
		},
	}, "SET", "a block", "the connection") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
				c.MaxConns = 1
				c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
					_, err := conn.Exec(ctx, `set application_name = 'shop'`)
					return err
				}
			}))
			const settings = `select string_agg(name || '=' || setting, ' ' order by name) || coalesce(current_setting('shop.tenant', true), '') from pg_settings where name not like 'plpgsql.%'`
			before := queryOne[string](s, settings)
			spoils := true
			s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := pay(ctx, tx, n); err != nil || !spoils {
					return err
				}
				return do(ctx, tx)
			})
			s.Deliver(paid("e1"))
			if diff := cmp.Diff(before, queryOne[string](s, settings)); diff != "" {
				t.Error("settings (-before +after):\n" + diff)
			}
			s.Deliver(paid("e2"))
			spoils = false
			s.WantAnswer(paid("e3"), http.StatusOK)
			if n := strings.Count(s.Logged(), "may leave settings in its session"); n != 1 {
				t.Errorf("the log says it %d times, want once:\n%s", n, s.Logged())
			}
		})
	}
}

// A library in a handler may ask the connection for its settings or its types, as River does. That sends nothing.
func TestConnectionIsKeptAfterAHandlerThatOnlyLooksAtIt(t *testing.T) {
	t.Parallel()
	s := openApp(t, poolOf(t, 1))
	look := func(tx pgx.Tx) { _ = tx.Conn().Config().DefaultQueryExecMode; _ = tx.Conn().TypeMap() }
	s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
		look(tx)
		inner, err := tx.Begin(ctx) // a savepoint
		if err != nil {
			return err
		}
		look(inner)
		if err := pay(ctx, inner, n); err != nil {
			return err
		}
		b := &pgx.Batch{}
		b.Queue(`select 1`)
		b.Queue(`select n from generate_series(1, $1::int) n`, 1000)
		results := inner.SendBatch(ctx, b)
		if _, err := results.Exec(); err != nil {
			return err
		}
		if err := results.Close(); err != nil {
			return err
		}
		rows, err := inner.Query(ctx, `select n from generate_series(1, $1::int) n`, 1000)
		if err != nil {
			return err
		}
		rows.Close() // without reading them
		if err := inner.Commit(ctx); err != nil {
			return err
		}
		_, err = tx.CopyFrom(ctx, pgx.Identifier{"effects"}, []string{"event"}, pgx.CopyFromRows(nil))
		return err
	})
	before := queryOne[int](s, `select pg_backend_pid()`)
	for n := range 3 {
		s.WantAnswer(paid(fmt.Sprint("e", n)), http.StatusOK)
	}
	if after := queryOne[int](s, `select pg_backend_pid()`); after != before || strings.Contains(s.Logged(), "may leave settings") {
		t.Errorf("the connection is another one, or the log complains:\n%s", s.Logged())
	}
	s.WantEffects(3)
}

// Handlers that only work keep their connection, and settings that end with the
// transaction are theirs to make.
func TestConnectionIsKeptAfterAnOrdinaryHandler(t *testing.T) {
	t.Parallel()
	for _, sql := range testkit.First(5, []string{
		`select count(*) from effects`, `select lower('A')`, `select pg_advisory_lock(1)`, `update effects set scope = 'set x'`, `set local lock_timeout = '1s'`, `set constraints all immediate`,
		`set transaction isolation level read committed`, `select set_config('shop.tenant', $1, true)`,
		`select pg_catalog.SET_CONFIG ('a.b', lower($1), TRUE)`,
		"-- name: Lock :one\nselect pg_try_advisory_xact_lock(1)", `with x as (select 1) select from x`, `call nothing()`, `lock table effects`, `create temp table staging (id text) on commit drop`, `"work"`,
		"work on it",
	}) {
		t.Run(sql, func(t *testing.T) {
			t.Parallel()
			s := openApp(t, openPool(t, idemtest.URL(t), func(c *pgxpool.Config) {
				c.MaxConns = 1
				c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
					for _, name := range []string{`"work"`, "work on it"} {
						if _, err := conn.Prepare(ctx, name, `select 1`); err != nil {
							return err
						}
					}
					return nil
				}
			}))
			s.Exec(`create procedure nothing() language plpgsql as $$ begin end $$`)
			s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := pay(ctx, tx, n); err != nil {
					return err
				}
				var args []any
				if strings.Contains(sql, "$1") {
					args = append(args, "a")
				}
				_, err := tx.Exec(ctx, sql, args...)
				return err
			})
			before := queryOne[int](s, `select pg_backend_pid()`)
			s.WantAnswer(paid("e1"), http.StatusOK)
			if after := queryOne[int](s, `select pg_backend_pid()`); after != before {
				t.Errorf("the connection was closed\n%s", s.Logged())
			}
		})
	}
}

// A handler that does not want to wait for the disk is acknowledged nevertheless: its
// commit waits.
func TestCommitWaitsForTheDiskWhateverTheHandlerSets(t *testing.T) {
	t.Parallel()
	exec := func(sql string) func(context.Context, pgx.Tx) error {
		return func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, sql)
			return err
		}
	}
	for name, set := range testkit.Named(map[string]func(context.Context, pgx.Tx) error{
		"SET LOCAL":  exec(`set local synchronous_commit = off`),
		"quoted":     exec(`set local "synchronous_commit" to 'local'`),
		"SET":        exec(`set synchronous_commit = off`),
		"set_config": exec(`select set_config('synchronous_commit', 'off', true)`),
		"a function": exec(`select hurry()`),
		"a block":    exec(`do $$ begin set local synchronous_commit = off; end $$`),
		"the connection": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Conn().Exec(ctx, `set local synchronous_commit = off`)
			return err
		},
		"ExecAtCommit": func(ctx context.Context, _ pgx.Tx) error {
			idem.ExecAtCommit(ctx, `set local synchronous_commit = off`)
			return nil
		},
	}, "SET LOCAL", "a function") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newInboxApp(t)
			s.Exec(`create function hurry() returns text language sql as $$ select set_config('synchronous_commit', 'off', true) $$;
				create table commits (n serial, what text);
				create function note_commit() returns trigger language plpgsql as $$ begin
					insert into commits (what) values (new.state || ' ' || current_setting('synchronous_commit')); return null; end $$;
				create constraint trigger note_commit after insert or update of state on idem_events
					deferrable initially deferred for each row execute function note_commit()`)
			s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := pay(ctx, tx, n); err != nil {
					return err
				}
				return set(ctx, tx)
			})
			if o, err := s.First.Accept(t.Context(), letter("e1", "o1", 1)); o != idem.Done {
				t.Errorf("Accept = %s, %v", o, err)
			}
			s.Store(letter("e2", "o1", 2))
			s.Drain()
			want := []string{"done on", "pending on", "done on"}
			if diff := cmp.Diff(want, queryOne[[]string](s, `select array_agg(what order by n) from commits`)); diff != "" {
				t.Error("commits, with synchronous_commit (-want +got):\n" + diff)
			}
		})
	}
}

// What is executed with COMMIT finds its tables whatever the handler has set for its
// transaction. What the handler declares is executed with the handler's settings.
func TestHandlerMaySetSearchPathAndRoleForItsTransaction(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"search_path": "pg_catalog", "role": "pg_monitor"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, w := newInboxApp(t), &testkit.Broker{}
			outbox := outbox.New(s.Pool, "shop", w)
			s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
				if err := pay(ctx, tx, n); err != nil {
					return err
				}
				if _, err := tx.Exec(ctx, fmt.Sprintf(`set local %s = %s`, name, value)); err != nil {
					return err
				}
				idem.ExecAtCommit(ctx, `select 1 / (current_setting($1) = $2)::int`, name, value)
				return outbox.Emit(ctx, broker.Message{Type: "order.paid", Key: n.Order, Body: []byte(n.ID)})
			})
			s.Store(letter("e1", "o1", 1))
			s.Store(letter("e2", "o1", 2))
			s.Drain(2)
			s.WantEffects(2)
			outbox.Logger = s.Logger()
			if err := outbox.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.Want(t, "order.paid o1 e1", "order.paid o1 e2")
		})
	}
}

// Who wants no limit sets the largest number that there is.
func TestLimitsMayBeAsLargeAsTheirTypes(t *testing.T) {
	t.Parallel()
	t.Run("MaxAttempts", func(t *testing.T) {
		t.Parallel()
		s := newApp(t).openInbox()
		s.Inbox.MaxAttempts = math.MaxInt
		s.On(payAndFail)
		s.Store(letter("e1", "o1", 0))
		s.Drain(1)
		s.WantState("e1", idem.StatePending)
	})
	t.Run("AnswerWithin", func(t *testing.T) {
		t.Parallel()
		s := newApp(t)
		s.First.AnswerWithin = math.MaxInt64
		s.On(pay)
		s.WantAnswer(paid("e1"), http.StatusOK)
		s.WantState("e1", idem.StateDone)
	})
	t.Run("Timeout", func(t *testing.T) {
		t.Parallel()
		s := newInboxApp(t)
		s.Inbox.Timeout = math.MaxInt64
		s.On(func(ctx context.Context, tx pgx.Tx, n *note) error {
			if !queryOne[bool](s, `select bool_and(claimed_by is not null) from idem_events`) {
				t.Error("the claim has ended before its attempt began")
			}
			return pay(ctx, tx, n)
		})
		s.Store(letter("e1", "o1", 0))
		s.Drain(1)
		s.WantEffects(1)
	})
}

// moves are ways in which a handler sets the search path for good.
var moves = testkit.Named(map[string]func(ctx context.Context, tx pgx.Tx, schema string) error{
	"SET": func(ctx context.Context, tx pgx.Tx, schema string) error {
		_, err := tx.Exec(ctx, `set search_path = `+schema)
		return err
	},
	"SET of several": func(ctx context.Context, tx pgx.Tx, schema string) error {
		_, err := tx.Exec(ctx, `select 1; set session search_path = `+schema, pgx.QueryExecModeSimpleProtocol)
		return err
	},
	"SET SCHEMA": func(ctx context.Context, tx pgx.Tx, schema string) error {
		_, err := tx.Exec(ctx, `set schema '`+schema+`'`)
		return err
	},
	"set_config": func(ctx context.Context, tx pgx.Tx, schema string) error {
		_, err := tx.Exec(ctx, `select set_config('search_path', $1, false)`, schema)
		return err
	},
	"a savepoint": func(ctx context.Context, tx pgx.Tx, schema string) error {
		return pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `set search_path = `+schema)
			return err
		})
	},
	"a batch": func(ctx context.Context, tx pgx.Tx, schema string) error {
		b := &pgx.Batch{}
		b.Queue(`set search_path = ` + schema)
		return tx.SendBatch(ctx, b).Close()
	},
	"a rewriter": func(ctx context.Context, tx pgx.Tx, schema string) error {
		_, err := tx.Exec(ctx, `select 1`, rewritten(`set search_path = `+schema))
		return err
	},
	"a block": func(ctx context.Context, tx pgx.Tx, schema string) error {
		_, err := tx.Exec(ctx, `do $$ begin set search_path = `+schema+`; end $$`)
		return err
	},
	"a function": func(ctx context.Context, tx pgx.Tx, schema string) error {
		_, err := tx.Exec(ctx, `select move_to($1, false)`, schema)
		return err
	},
	"a function in an update": func(ctx context.Context, tx pgx.Tx, schema string) error {
		_, err := tx.Exec(ctx, `update effects set scope = coalesce(move_to($1, false), '')`, schema)
		return err
	},
	"a procedure": func(ctx context.Context, tx pgx.Tx, schema string) error {
		_, err := tx.Exec(ctx, `call moving_to($1)`, schema)
		return err
	},
	"a function in an insert": func(ctx context.Context, tx pgx.Tx, schema string) error {
		_, err := tx.Exec(ctx, `insert into effects (event) select '' where move_to($1, false) = ''`, schema)
		return err
	},
	"a prepared statement": func(ctx context.Context, tx pgx.Tx, schema string) error {
		if _, err := tx.Prepare(ctx, "move", `select set_config('search_path', $1, false)`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "move", schema)
		return err
	},
	"a prepared statement with a space in its name": func(ctx context.Context, tx pgx.Tx, schema string) error {
		if _, err := tx.Prepare(ctx, "tenants: move to", `select set_config('search_path', $1, false)`); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "tenants: move to", schema)
		return err
	},
	"the connection": func(ctx context.Context, tx pgx.Tx, schema string) error {
		_, err := tx.Conn().Exec(ctx, `set search_path = `+schema)
		return err
	},
	"ExecAtCommit": func(ctx context.Context, _ pgx.Tx, schema string) error {
		idem.ExecAtCommit(ctx, `select set_config('search_path', $1, false)`, schema)
		return nil
	},
	"ExecAtCommit of a function": func(ctx context.Context, _ pgx.Tx, schema string) error {
		idem.ExecAtCommit(ctx, `select move_to($1, false)`, schema)
		return nil
	},
	"ExecAtCommit of a rewriter": func(ctx context.Context, _ pgx.Tx, schema string) error {
		idem.ExecAtCommit(ctx, `select 1`, rewritten(`set search_path = `+schema))
		return nil
	},
	"SET LOCAL": func(ctx context.Context, tx pgx.Tx, schema string) error {
		_, err := tx.Exec(ctx, `set local search_path = `+schema)
		return err
	},
}, "SET", "a function")

// tenant is a schema with tables of its own, and functions that move a session there.
func (s *app) tenant() (schema string) {
	s.Helper()
	schema = queryOne[string](s, `select current_schema() || '_tenant'`)
	s.Exec(`create schema ` + schema)
	s.Cleanup(func() {
		if _, err := s.Pool.Exec(context.Background(), `drop schema `+schema+` cascade`); err != nil {
			s.Error(err)
		}
	})
	other := openPool(s.TB, s.Pool.Config().ConnString(), func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["search_path"] = schema })
	if err := idem.Migrate(s.Context(), other); err != nil {
		s.Fatal(err)
	}
	s.Exec(`create table ` + schema + `.effects (event text not null, scope text not null default '');
		create function move_to(schema text, this_transaction bool) returns text language plpgsql as $$ begin
			return set_config('search_path', schema, this_transaction); end $$;
		create procedure moving_to(schema text) language sql as $$ select move_to(schema, false) $$`)
	return schema
}
