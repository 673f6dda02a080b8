package pgtx_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

// Of the words of Postgres, those that name a function are taken for one, but for a few that hardly anybody gives to
// a function of his own.
func TestEachWordThatNamesAFunctionIsTakenForOne(t *testing.T) {
	t.Parallel()
	hardly := []string{"conflict", "set"}
	pool := idemtest.Pool(t)
	rows, _ := pool.Query(t.Context(), `select word from pg_get_keywords()`)
	words, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	functions := 0
	for _, word := range append(words, "book", "é", "a$1", "_") {
		create := fmt.Sprintf(`create function "%s"(int, int) returns int language plpgsql as $$ begin raise 'it is called'; end $$`, word)
		if _, err := pool.Exec(t.Context(), create); err != nil {
			t.Fatal(err)
		}
		call := fmt.Sprintf(`select %s(1, 2)`, word)
		if _, err := pool.Exec(t.Context(), call); err == nil || !strings.Contains(err.Error(), "it is called") {
			continue // it names something else
		}
		functions++
		if !pgtx.MayMove(call) && !slices.Contains(hardly, word) {
			t.Errorf("%s calls a function", call)
		}
	}
	if functions < len(words)/2 {
		t.Errorf("only %d of %d words name a function", functions, len(words))
	}
}

// settings are pieces of SQL that set something, by a function or directly, and such that only seem to.
var settings = []string{
	"select move('a');", `select "move" ('b');`, "select move/* ( */('b');", "select move--(\n('c');", "select 1 / length(move('a'));",
	"insert into marks select move('a');", "insert into marks (id) values (move('a'));", "insert into marks (select move('a'));",
	"update marks m set id = coalesce(move(m.id), '');", "delete from marks where id in (move('a'), 'b');", "values (move('a'));", "table marks;",
	"with a (b) as (select move('a')) select b from a;", "declare c cursor for select move('a'); move all in c;", "call moving('a');",
	"do $$ begin perform move('a'); end $$;", "prepare p as select move('a'); execute p;", "create temp table made as select move('a');",
	"set search_path = a;", "set local search_path = a;", "SET/**/SESSION lock_timeout = 7;", "set local lock_timeout = 7;", "set schema 'a';", "set role pg_monitor;",
	"set local role pg_monitor;", "reset search_path;", "discard plans;", "select set_config('lock_timeout', '7', true);", "select set_config('lock_timeout', '7', false);",
	"select set_config('search_path', 'a', 'true');", "select pg_catalog.set_config('lock_timeout', '7', not true);", `select "set_config" ('lock_timeout', '7', false);`,
	"select SET_CONFIG('lock_timeout', ('7'), /* , true */ false);", "do 'begin set lock_timeout = 7; end';", "set synchronous_commit = off;",
	"select 'move(1)';", "select $$move(1)$$;", "select 1 as move;", "-- move(1)\n", "insert into marks (id) values ('a');", "select m.id from marks m;",
}

// FuzzEffect has Postgres execute SQL: what has set something is found.
func FuzzEffect(f *testing.F) {
	for n := range settings {
		f.Add([]byte{byte(n)})
	}
	for seed := range uint64(500) {
		picks, random := make([]byte, 2+seed%5), rand.New(rand.NewPCG(seed, 1))
		for i := range picks {
			picks[i] = byte(random.IntN(256))
		}
		f.Add(picks)
	}
	pool := movingPool(f)
	f.Fuzz(func(t *testing.T, picks []byte) {
		var sql strings.Builder
		for _, pick := range picks {
			if pick < 150 {
				sql.WriteString(settings[int(pick)%len(settings)])
			} else {
				sql.WriteString(compose([]byte{pick}))
			}
		}
		moved, lasting := set(t, pool, sql.String())
		if moved && !pgtx.MayMove(sql.String()) {
			t.Errorf("%q sets something", sql.String())
		}
		if lasting && !pgtx.MayLast(sql.String()) {
			t.Errorf("%q sets something for good", sql.String())
		}
	})
}

// movingPool has a function and a procedure that set the search path.
func movingPool(t testing.TB) *pgxpool.Pool {
	pool := marksPool(t)
	const functions = `
create function move(a text) returns text language plpgsql as $$ begin perform set_config('search_path', 'moved', false); return a; end $$;
create procedure moving(a text) language plpgsql as $$ begin perform move(a); end $$`
	if _, err := pool.Exec(t.Context(), functions); err != nil {
		t.Fatal(err)
	}
	return pool
}

// set executes sql in a transaction, and reports whether that has set something there, and whether a statement
// itself has set something for longer. A transaction that sql has ended is another test's.
func set(t *testing.T, pool *pgxpool.Pool, sql string) (moved, lasting bool) {
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	raw := conn.Conn().PgConn()
	defer func() {
		for _, sql := range []string{`rollback`, `discard all`} {
			if err := raw.Exec(context.Background(), sql).Close(); err != nil {
				t.Error(err)
			}
		}
		conn.Release()
	}()
	ask := func(sql string) string {
		t.Helper()
		results, err := raw.Exec(t.Context(), sql).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return string(results[0].Rows[0][0])
	}
	const (
		all    = `select concat_ws(' ', current_setting('search_path'), current_setting('role'), current_setting('synchronous_commit'), current_setting('lock_timeout'))`
		direct = `select concat_ws(' ', current_setting('role'), current_setting('synchronous_commit'), current_setting('lock_timeout'))`
	)
	before, beforeDirect := ask(all), ask(direct)
	_ = raw.Exec(t.Context(), `begin; savepoint s`).Close()
	_ = raw.Exec(t.Context(), sql).Close()
	if raw.TxStatus() != 'T' || pgtx.EndsTransaction(sql) {
		return false, false
	}
	moved = ask(all) != before
	_ = raw.Exec(t.Context(), `commit`).Close()
	return moved, ask(direct) != beforeDirect
}
