package pgtx

import "testing"

func TestEffectOfAStatementOnItsSession(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why, sql string
		want     effect
	}{
		{"work", "update orders set paid_at = now()", works},
		{"work by aliases", "update orders o set paid = true from charges as c where o.id = c.external_reference and s.scope = c.scope", works},
		{"a row", "update orders set (id, paid) = row ($1, $2)", works},
		{"work with columns", `insert into "orders" ("id", paid) values ($1, coalesce($2, now())) on conflict (id) do update set paid = excluded.paid where ("orders"."id" is null)`, works},
		{"columns of a table with a schema", `insert into shop . "orders" /* all */ (id) values ($1)`, works},
		{"work of the values that were to be inserted", `insert into orders (id, paid) values ($1, 1.5) on conflict (id) do update set paid = EXCLUDED.paid`, works},
		{"work of a list", "delete from orders where id = any ($1) and (paid or id in (select id from gone))", works},
		{"a query", "select id from orders for update", works},
		{"a query with one of Postgres's own", "select count(*) from orders", works},
		{"a savepoint", "savepoint a; release a; rollback to a; lock table orders", works},
		{"an attribute that may be a function", "select orders.book from orders", works},
		{"a type", "select $1::numeric(10, 2)", works},
		{"a function in a literal", "select 'book(id)', $$book(id)$$, 1 /* book(id) */", works},

		{"columns of an alias, taken for a call", "select a from orders as t (a)", moves},
		{"a function in an insert", "insert into orders values ($1, book($2))", moves},
		{"a function behind columns", "insert into orders (id, paid) values ($1, book($2))", moves},
		{"a function in an insert of rows", "insert into orders select book(id) from gone", moves},
		{"a function in an insert of rows in parentheses", "insert into orders (select book(id) from gone)", moves},
		{"a function in an update", `update orders set paid = "book"(id)`, moves},
		{"one of a schema", `update orders set paid = shop.book /* it */ (id)`, moves},
		{"one of a schema that has the name of one of Postgres's own", `select shop . now /* it */ ()`, moves},
		{"one of a schema that a word of a statement names", `update orders set paid = tenant.set(id)`, moves},
		{"a function behind the table of an INTO", "select 1 as a into temp made limit book(1)", moves},
		{"a function in an insert of a table", "insert into orders table gone order by book(1)", moves},
		{"a function in the second statement", "delete from orders; update orders set paid = book(id)", moves},
		{"a function in a cursor", "declare c cursor with hold for select book()", moves},
		{"a function in a new table", "create temp table staging as select book()", moves},
		{"a function in a copy", "copy (select book()) to '/dev/null'", moves},
		{"a procedure", "call move($1)", moves},
		{"a lock of the transaction", "select pg_advisory_xact_lock($1)", works},
		{"a lock of the session", "select pg_advisory_lock($1)", moves},
		{"a query with a function", "select book(id) from orders", moves},
		{"behind a backslash", `select '\', book('')`, moves},
		{"part of a name", "select get_set_config('a')", moves},

		{"SET LOCAL", "set local lock_timeout = 1", moves},
		{"for this transaction", "select set_config('a.b', f($1, 2), true)", moves},
		{"in an update", "update t set a = pg_catalog.set_config ('a.b', 'c', True)", moves},

		{"SET", "set lock_timeout = 1", lasts},
		{"SET SESSION", "SET SESSION lock_timeout = 1", lasts},
		{"SET ROLE", "set role shop", lasts},
		{"behind a comment", "-- name: Move :exec\nset/**/x = 1", lasts},
		{"the second statement", "select 1; set x = 1", lasts},
		{"of all transactions", "set session characteristics as transaction read only", lasts},
		{"RESET", "reset all", lasts},
		{"DISCARD", "discard plans", lasts},
		{"a block", "do $$ begin end $$", lasts},
		{"a prepared statement", "prepare pay as select 1", lasts},
		{"one that is executed", "execute pay", lasts},
		{"for good", "select set_config('a.b', $1, false)", lasts},
		{"who knows", "select set_config('a.b', $1, $2)", lasts},
		{"who knows either", "select set_config('a.b', $1, not true)", lasts},
		{"a quoted name", `select "set_config"('a.b', $1, false)`, lasts},
		{"both", "select set_config('a.b', '', true), SET_CONFIG('a.c', '', false)", lasts},
		{"not closed", "select set_config('a', 'b', true", lasts},
		{"in the other reading of a backslash", `select '\', set_config('a', 'b', false), '`, lasts},

		{"of this transaction", "set transaction read only; set constraints all deferred", works},
		{"a table that is named so", "update set_configs set a = 1", works},
		{"in a string", "select 'set_config(1)'", works},
		{"no call", "select set_config, true", works},
		{"the end", "select book(id); commit", ends},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			if got := effectOf(c.sql); got != c.want {
				t.Errorf("%q: %d, want %d", c.sql, got, c.want)
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
