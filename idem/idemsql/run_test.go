package idemsql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/idemsql"
	"github.com/paghooks/paghooks/idem/idemtest"
)

var modes = []pgx.QueryExecMode{
	pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
	pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
}

// inEachMode runs a test with a pool of each of pgx's modes, on a table of notes.
func inEachMode(t *testing.T, test func(*testing.T, *pgxpool.Pool)) {
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			config, err := pgxpool.ParseConfig(idemtest.URL(t))
			if err != nil {
				t.Fatal(err)
			}
			config.ConnConfig.DefaultQueryExecMode = mode
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			if err := idem.Migrate(t.Context(), pool); err != nil {
				t.Fatal(err)
			}
			if _, err := pool.Exec(t.Context(), `create table notes (id bigint generated always as identity, note text unique)`); err != nil {
				t.Fatal(err)
			}
			test(t, pool)
		})
	}
}

// deliver has a Processor process one event with f, and returns the outcome.
func deliver(t *testing.T, pool *pgxpool.Pool, id string, f func(context.Context, *sql.DB) error) (idem.Outcome, error) {
	t.Helper()
	routes := &noteRoutes{work: func(ctx context.Context, tx pgx.Tx) error {
		return idemsql.Run(ctx, tx, func(db *sql.DB) error { return f(ctx, db) })
	}}
	p := idem.NewProcessor(pool, routes)
	p.Logger = nil
	return p.Accept(t.Context(), idem.Event{ID: id, Type: "NOTE", Payload: []byte("{}")})
}

func notes(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	rows, _ := pool.Query(t.Context(), `select note from notes order by id`)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func insert(ctx context.Context, db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, note string,
) error {
	_, err := db.ExecContext(ctx, `insert into notes (note) values ($1)`, note)
	return err
}

func TestWhatADBWritesIsCommittedWithItsEvent(t *testing.T) {
	t.Parallel()
	inEachMode(t, func(t *testing.T, pool *pgxpool.Pool) {
		for range 2 { // the second is a duplicate
			_, err := deliver(t, pool, "1", func(ctx context.Context, db *sql.DB) error {
				var id int64
				if err := db.QueryRowContext(ctx, `insert into notes (note) values ($1) returning id`, "direct").Scan(&id); err != nil {
					return err
				}
				s, err := db.PrepareContext(ctx, `insert into notes (note) values ($1)`)
				if err != nil {
					return err
				}
				defer s.Close()
				_, err = s.ExecContext(ctx, "prepared")
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff([]string{"direct", "prepared"}, notes(t, pool)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWhatADBWritesIsRolledBackWithItsEvent(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, test := range []struct {
		why  string
		f    func(ctx context.Context, db *sql.DB) error
		want error // nil: any
	}{
		{"the function fails", func(ctx context.Context, db *sql.DB) error {
			return errors.Join(insert(ctx, db, "x"), broken)
		}, broken},
		{"it panics", func(ctx context.Context, db *sql.DB) error {
			_ = insert(ctx, db, "x")
			panic("oops")
		}, nil},
		{"it panics in a transaction", func(ctx context.Context, db *sql.DB) error {
			tx, _ := db.BeginTx(ctx, nil)
			_ = insert(ctx, tx, "x")
			panic("oops")
		}, nil},
		{"a transaction is left open", func(ctx context.Context, db *sql.DB) error {
			tx, err := db.BeginTx(ctx, nil)
			return errors.Join(err, insert(ctx, tx, "x"))
		}, idemsql.ErrTxNotEnded},
		{"an error in SQL is swallowed", func(ctx context.Context, db *sql.DB) error {
			_ = insert(ctx, db, "x")
			_ = insert(ctx, db, "x")
			return nil
		}, nil},
		{"the error of a Commit is swallowed", func(ctx context.Context, db *sql.DB) error {
			tx, err := db.BeginTx(ctx, nil)
			_, _ = tx.ExecContext(ctx, `insert into nothing values (1)`)
			_ = tx.Commit()
			return err
		}, nil},
		{"COMMIT as SQL", func(ctx context.Context, db *sql.DB) error {
			_, err := db.ExecContext(ctx, "commit")
			return err
		}, nil},
	} {
		t.Run(test.why, func(t *testing.T) {
			t.Parallel()
			inEachMode(t, func(t *testing.T, pool *pgxpool.Pool) {
				outcome, err := deliver(t, pool, "1", test.f)
				if outcome != idem.Retrying || err == nil || test.want != nil && !errors.Is(err, test.want) {
					t.Errorf("%s, %v, want %v", outcome, err, test.want)
				}
				if got := notes(t, pool); len(got) > 0 {
					t.Errorf("stayed: %q", got)
				}
			})
		})
	}
}

func TestTransactionsOfADBAreSavepoints(t *testing.T) {
	t.Parallel()
	inEachMode(t, func(t *testing.T, pool *pgxpool.Pool) {
		_, err := deliver(t, pool, "1", func(ctx context.Context, db *sql.DB) error {
			for _, end := range []struct {
				note string
				end  func(*sql.Tx) error
			}{{"kept", (*sql.Tx).Commit}, {"undone", (*sql.Tx).Rollback}, {"kept, too", (*sql.Tx).Commit}} {
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					return err
				}
				if err := insert(ctx, tx, end.note); err != nil {
					return err
				}
				if err := insert(ctx, db, "beside"); !errors.Is(err, idemsql.ErrTxOpen) {
					return fmt.Errorf("a statement beside the transaction: %w", err)
				}
				if _, err := db.BeginTx(ctx, nil); !errors.Is(err, idemsql.ErrTxOpen) {
					return fmt.Errorf("a transaction beside the transaction: %w", err)
				}
				if err := end.end(tx); err != nil {
					return err
				}
			}
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			if err := insert(ctx, tx, "kept"); err == nil {
				return errors.New("a note twice")
			}
			if err := tx.Rollback(); err != nil {
				return err
			}
			return insert(ctx, db, "goes on after an error that was rolled back")
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"kept", "kept, too", "goes on after an error that was rolled back"}, notes(t, pool)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestATransactionWhoseContextEndsIsRolledBack(t *testing.T) {
	t.Parallel()
	inEachMode(t, func(t *testing.T, pool *pgxpool.Pool) {
		_, err := deliver(t, pool, "1", func(ctx context.Context, db *sql.DB) error {
			short, cancel := context.WithCancel(ctx)
			defer cancel()
			tx, err := db.BeginTx(short, nil)
			if err != nil {
				return err
			}
			if err := insert(ctx, tx, "undone"); err != nil {
				return err
			}
			cancel()
			for { // database/sql rolls back in a goroutine of its own
				if err := insert(ctx, db, "stays"); !errors.Is(err, idemsql.ErrTxOpen) {
					return err
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"stays"}, notes(t, pool)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRefusedIsWhatASavepointCannotDo(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	inTx(t, pool, func(ctx context.Context, db *sql.DB) error {
		if _, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable}); !errors.Is(err, idemsql.ErrIsolation) {
			t.Errorf("an isolation level: %v", err)
		}
		if _, err := db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}); !errors.Is(err, idemsql.ErrIsolation) {
			t.Errorf("read-only: %v", err)
		}
		if _, err := db.ExecContext(ctx, `select @a`, sql.Named("a", 1)); !errors.Is(err, idemsql.ErrNamedArgs) {
			t.Errorf("a named argument: %v", err)
		}
		result, err := db.ExecContext(ctx, `create table numbers as select 1 as n`)
		if err != nil {
			return err
		}
		if _, err := result.LastInsertId(); err == nil {
			t.Error("there is a last insert ID")
		}
		if n, err := result.RowsAffected(); n != 1 || err != nil {
			t.Errorf("rows affected: %d, %v", n, err)
		}
		return nil
	})
}

// inTx calls f with a DB on a plain transaction, which is rolled back.
func inTx(t *testing.T, pool *pgxpool.Pool, f func(context.Context, *sql.DB) error) {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if err := idemsql.Run(t.Context(), tx, func(db *sql.DB) error { return f(t.Context(), db) }); err != nil {
		t.Fatal(err)
	}
}

func TestStatementsMayBeExecutedWhileRowsAreRead(t *testing.T) {
	t.Parallel()
	inEachMode(t, func(t *testing.T, pool *pgxpool.Pool) {
		inTx(t, pool, func(ctx context.Context, db *sql.DB) error {
			numbers, err := db.QueryContext(ctx, `select n from generate_series(1, 3) n`)
			if err != nil {
				return err
			}
			defer numbers.Close()
			for numbers.Next() {
				var n, same int
				if err := numbers.Scan(&n); err != nil {
					return err
				}
				if err := db.QueryRowContext(ctx, `select $1::int`, n).Scan(&same); err != nil || same != n {
					return fmt.Errorf("%d is %d: %w", n, same, err)
				}
			}
			leaked, err := db.QueryContext(ctx, `select 1`) // and never closed
			if err != nil {
				return err
			}
			_ = leaked
			return numbers.Err()
		})
	})
}

func TestGoroutinesMayShareADB(t *testing.T) {
	t.Parallel()
	inEachMode(t, func(t *testing.T, pool *pgxpool.Pool) {
		_, err := deliver(t, pool, "1", func(ctx context.Context, db *sql.DB) error {
			var all sync.WaitGroup
			errs := make([]error, 20)
			for i := range errs {
				all.Go(func() { errs[i] = insert(ctx, db, fmt.Sprint(i)) })
			}
			all.Wait()
			return errors.Join(errs...)
		})
		if got := notes(t, pool); err != nil || len(got) != 20 {
			t.Errorf("%d notes, %v", len(got), err)
		}
	})
}

func TestADBIsOverWhenItsFunctionReturns(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	var leaked *sql.DB
	var conn *sql.Conn
	err = idemsql.Run(t.Context(), tx, func(db *sql.DB) (err error) {
		leaked = db
		conn, err = db.Conn(t.Context())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leaked.ExecContext(t.Context(), "select 1"); err == nil {
		t.Error("a DB works after its function")
	}
	if _, err := conn.ExecContext(t.Context(), "select 1"); !errors.Is(err, idemsql.ErrOver) {
		t.Errorf("a connection of the DB, after its function: %v", err)
	}
}

// Values come as they do from pgx's own driver of database/sql.
func TestValuesAreThoseOfPgxsOwnDriver(t *testing.T) {
	t.Parallel()
	expressions := []string{
		"null", "true", "1::int2", "2::int4", "3::int8", "1.5::float4", "2.5::float8", "12345678901234567890.12::numeric", "'x'::text",
		"''::text", "'a'::char(3)", "'ab'::varchar", `'\x00ff'::bytea`, "'2026-11-22'::date", "'infinity'::date", "'10:11:12.5'::time",
		"'2026-11-22 10:11:12.123456'::timestamp", "'2026-11-22 10:11:12.123456+03'::timestamptz", "'1 day 2 hours'::interval",
		"'5e0c5a3e-4a2c-4d4b-9d0e-0f7d2b0c9a11'::uuid", `'{"a": [1, null]}'::json`, `'{"a": [1, null]}'::jsonb`, "array[1,null,3]",
		"array['a b','c']", "'127.0.0.1/8'::inet", "'08:00:2b:01:02:03'::macaddr", "'(1,2)'::point", "b'101'", "'[1,5)'::int4range",
		"1::oid", "'pg_class'::regclass", "'{}'::int[]", "row(1,'a')", "'a'::name", "1::money", "'<a/>'::xml",
	}
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			config, err := pgxpool.ParseConfig(idemtest.URL(t))
			if err != nil {
				t.Fatal(err)
			}
			config.ConnConfig.DefaultQueryExecMode = mode
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			theirs := stdlib.OpenDBFromPool(pool)
			defer theirs.Close()
			inTx(t, pool, func(ctx context.Context, ours *sql.DB) error {
				for _, e := range expressions {
					want, got := column(ctx, t, theirs, "select "+e), column(ctx, t, ours, "select "+e)
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s: %s", e, diff)
					}
					if diff := cmp.Diff(column(ctx, t, theirs, "select "+e+" where false"), column(ctx, t, ours, "select "+e+" where false")); diff != "" {
						t.Errorf("%s, no rows: %s", e, diff)
					}
				}
				return nil
			})
		})
	}
}

type seen struct {
	Value            any
	Name, Type, Scan string
}

func column(ctx context.Context, t *testing.T, db *sql.DB, query string) (s seen) {
	t.Helper()
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		t.Fatal(query, err)
	}
	defer rows.Close()
	types, err := rows.ColumnTypes()
	if err != nil {
		t.Fatal(err)
	}
	s.Name, s.Type, s.Scan = types[0].Name(), types[0].DatabaseTypeName(), types[0].ScanType().String()
	for rows.Next() {
		if err := rows.Scan(&s.Value); err != nil {
			t.Fatal(query, err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(query, err)
	}
	return s
}

func TestErrorsOfPostgresKeepTheirType(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	inTx(t, pool, func(ctx context.Context, db *sql.DB) error {
		_, err := db.QueryContext(ctx, `select 1/0`)
		if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "22012" {
			t.Errorf("not Postgres's error: %v", err)
		}
		return nil
	})
	if _, err := sql.Open("idemsql", ""); err == nil || !strings.Contains(err.Error(), "unknown driver") {
		t.Errorf("a driver is registered: %v", err)
	}
}

func TestHandlersKeepTheirEvent(t *testing.T) {
	t.Parallel()
	pool := idemtest.Pool(t)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	type key struct{}
	h := idemsql.Handler(func(ctx context.Context, db *sql.DB, e *string) (err error) {
		if ctx.Value(key{}) != "kept" {
			t.Error("another context")
		}
		return db.QueryRowContext(ctx, `select $1`, *e+"!").Scan(e)
	})
	event := "paid"
	if err := h(context.WithValue(t.Context(), key{}, "kept"), tx, &event); err != nil || event != "paid!" {
		t.Error(event, err)
	}
}
