package pgtx

import "testing"

func TestWhatAStatementMayLeaveInItsSession(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why, sql string
		want     effect
	}{
		{"work", "update orders set paid_at = now()", 0},
		{"a table that is named so", "update set_configs set a = 1", lasts | moves}, // a wrong guess, which costs a connection
		{"work with columns", `insert into "orders" ("id", paid) values ($1, coalesce($2, now())) on conflict (id) do update set paid = excluded.paid where ("orders"."id" is null)`, calls}, // a wrong guess, which costs little
		{"work of the values that were to be inserted", `insert into orders (id, paid) values ($1, 1.5) on conflict (id) do update set paid = EXCLUDED.paid`, 0},
		{"work of a list", "delete from orders where id = any ($1) and (paid or id in (select id from gone))", 0},
		{"a function in an insert", "insert into orders values ($1, book($2))", calls},
		{"a function behind columns", "insert into orders (id, paid) values ($1, book($2))", calls},
		{"a function in an insert of rows", "insert into orders select book(id) from gone", calls},
		{"a function in an update", `update orders set paid = "book"(id)`, calls},
		{"a function in the second statement", "delete from orders; update orders set paid = book(id)", calls},
		{"a function in an attribute", "select orders.book from orders", calls},
		{"a function in a quoted attribute", `update orders o set paid = "o"."book"`, calls},
		{"a temporary table", "create temp table staging as select 1", calls},
		{"one of the temporary schema", `create table "pg_temp".staging (id text)`, calls},
		{"one of a query", "select id into temp staging from orders", calls},
		{"a cursor", "declare c cursor with hold for select 1", calls},
		{"what a cursor selects", "fetch c", calls},
		{"a procedure", "call move", calls},
		{"a prepared statement", "prepare pay as select 1", lasts},
		{"a lock of the session", "select pg_advisory_lock($1)", calls},
		{"a savepoint", "savepoint a; release a; rollback to a; lock table orders", 0},
		{"a lock of the transaction", "select pg_advisory_xact_lock($1)", calls},
		{"a query", "select id from orders for update", 0},
		{"a query with a function", "select book(id) from orders", calls},
		{"a query with one of Postgres's own", "select count(*) from orders", 0},
		{"a procedure", "call move($1)", calls},
		{"SET", "set lock_timeout = 1", lasts | moves},
		{"SET SESSION", "SET SESSION lock_timeout = 1", lasts | moves},
		{"SET ROLE", "set role shop", lasts | moves},
		{"SET LOCAL", "set local lock_timeout = 1", moves},
		{"behind a comment", "-- name: Move :exec\nset/**/x = 1", lasts | moves},
		{"the second statement", "select 1; set x = 1", lasts | moves},
		{"of this transaction", "set transaction read only; set constraints all deferred", 0},
		{"of all transactions", "set session characteristics as transaction read only", lasts | moves},
		{"RESET", "reset all", lasts | moves},
		{"DISCARD", "discard plans", lasts | moves},
		{"a block", "do $$ begin end $$", lasts | moves},
		{"for this transaction", "select set_config('a.b', f($1, 2), true)", calls | moves},
		{"for good", "select set_config('a.b', $1, false)", calls | lasts | moves},
		{"who knows", "select set_config('a.b', $1, $2)", calls | lasts | moves},
		{"who knows either", "select set_config('a.b', $1, not true)", calls | lasts | moves},
		{"both", "select set_config('a.b', '', true), SET_CONFIG('a.c', '', false)", calls | lasts | moves},
		{"in an update", "update t set a = pg_catalog.set_config ('a.b', 'c', True)", calls | moves},
		{"in a string", "select 'set_config'", lasts | moves},
		{"not closed", "select set_config('a', 'b', true", calls | lasts | moves},
		{"no call", "select set_config, true", lasts | moves},
		{"a word", "set_config", calls | lasts | moves},
		{"part of a word", "_config; t_config; set_confi", calls},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			if got := effectOf(c.sql); got != c.want {
				t.Errorf("%q: %04b, want %04b", c.sql, got, c.want)
			}
		})
	}
}

func TestWhatMayBeTheNameOfAPreparedStatement(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]bool{
		"pay": true, "pay order": true, `"pay"`: true, "orders: pay": true, "1 pay": true, "commit": true, "select": true,
		"select 1": false, " -- name: Pay :exec\n update orders set paid": false, "(select 1) union select 2": false, "with x as (select 1) select": false,
		"CALL pay()": false, "": true, "/* a */ values (1)": false,
	} {
		if got := mayBeName(sql); got != want {
			t.Errorf("%q: %t, want %t", sql, got, want)
		}
	}
}
