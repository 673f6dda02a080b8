package pgtx_test

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/idemtest"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
)

func TestStatementsThatEndTheTransactionAreRecognized(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ why, sql string }{
		{"plain", "commit"},
		{"any case", "CoMMiT"},
		{"END is COMMIT", "end"},
		{"ABORT is ROLLBACK", "abort"},
		{"with a noise word", "rollback work"},
		{"with the other noise word", "end transaction"},
		{"and begins the next", "commit and chain"},
		{"and begins the next, after undoing", "rollback transaction and chain"},
		{"and does not chain", "abort and no chain"},
		{"prepared for a second phase", "prepare transaction 'x'"},
		{"the name in dollars", "prepare transaction $$x$$"},
		{"the second phase", "commit prepared 'x'"},
		{"the second phase undone", "rollback prepared 'x'"},
		{"the end of one, the beginning of another", "rollback; begin"},
		{"the last of several", "select 1; select 2; commit"},
		{"behind empty statements", ";; ;commit;"},
		{"a savepoint first", "rollback to savepoint s; rollback"},
		{"a savepoint first, without its noise word", "rollback to s;commit"},
		{"behind white space", " \t\r\n\f\vcommit"},
		{"behind a comment, as sqlc writes it", "-- name: End :exec\nrollback"},
		{"a line ends with a carriage return", "-- select 1\rcommit"},
		{"behind a nested comment", "/* a /* b */ c */ commit"},
		{"a comment with stars", "/***/commit"},
		{"a comment begins with a slash and is not closed by it", "/*/ ; select 1 */ commit"},
		{"a comment inside", "rollback/* to */;"},
		{"a comment for a space", "rollback/**/work--x\n"},
		{"a comment behind an operator", "select 1 +--;\n2; commit"},
		{"a quote in a comment", "/* ' */ commit"},
		{"a doubled quote", "select 'it''s'; commit; select ''"},
		{"a doubled double quote", `select 1 as "a""b;"; commit`},
		{"a backslash does not escape", `select '\'; commit --'`},
		{"a backslash escapes, with standard_conforming_strings off", `select '\';', '; commit --'`},
		{"a backslash escapes in E", `select E'\';'; commit`},
		{"E continues on the next line", "select E'a' -- b\n '\\';'; commit"},
		{"E in capitals, doubled", `select e'a''\''; commit`},
		{"a name that ends in e is no E", `select date'\'; commit --'`},
		{"Unicode escapes do not escape quotes", `select U&'\'; commit --'`},
		{"dollars", "select $$;'$$; commit"},
		{"dollars with a tag", "select $a$ $$ $b$; $a$; commit"},
		{"a tag in another alphabet", "select $é$;$é$; commit"},
		{"a dollar in a name", "select 1 as a$b$; commit; select 2 as c$b$"},
		{"a parameter is no tag", "select $1; commit; select $1"},
		{"the end of a body, taken for one", "create function f() returns int begin atomic select 1; end"},
		{"NUL behind it", "commit\x00"},
		{"invalid UTF-8 before it", "select '\xff\xfe'; commit"},
	} {
		t.Run(test.why, func(t *testing.T) {
			t.Parallel()
			if !pgtx.EndsTransaction(test.sql) {
				t.Errorf("%q passes", test.sql)
			}
		})
	}
}

func TestStatementsThatKeepTheTransactionPass(t *testing.T) {
	t.Parallel()
	pool := marksPool(t)
	for _, test := range []struct{ why, sql string }{
		{"nothing", ""},
		{"white space", " \n"},
		{"a semicolon", ";"},
		{"a comment", "-- commit"},
		{"a comment that is not closed", "/* ; commit"},
		{"a savepoint", "savepoint commit"},
		{"back to a savepoint", "rollback to s"},
		{"back to a savepoint, all words", "ROLLBACK WORK TO SAVEPOINT s; select 1"},
		{"back to a savepoint, the other noise word", "rollback transaction/**/to s"},
		{"a savepoint released", "release savepoint s; select 1"},
		{"case … end", "select case when true then 1 end; select 2"},
		{"a column", "select 1 as commit, end_at from events; select 2"},
		{"a name in quotes", `select 1 as "x; commit"`},
		{"a word that begins so", "commits; endless; aborted; rollbacks"},
		{"a word that begins so, in another alphabet", "commité; select 1"},
		{"a prepared statement", "prepare p as select 1; execute p"},
		{"a string", "select '; commit'"},
		{"a string on two lines", "select 'a'\n'; commit'"},
		{"a string with Unicode escapes", "select U&'; commit'; select 1"},
		{"a string with backslashes that escape nothing", `select 'C:\dir; commit'; select E'\\'`},
		{"bits", "select b'01', x'af', n'; commit'; select 1"},
		{"a body in dollars", "do $$ begin perform 1; end $$; select 1"},
		{"a body in dollars with a tag", "do $body$ begin commit; perform $$x$$; end; $body$; select 1"},
		{"a rule", "create rule r as on insert to t do (delete from a; delete from b); select 1"},
		{"garbage of psql", `\commit`},
		{"NUL", "\x00; select 1"},
		{"invalid UTF-8", "\xffcommit; \xc3commit"},
		{"quotes that are not closed", "select 'a; commit"},
		{"dollars that are not closed", "select $x$ ; commit"},
		{"E that is not closed", `select e'\`},
	} {
		t.Run(test.why, func(t *testing.T) {
			t.Parallel()
			if pgtx.EndsTransaction(test.sql) {
				t.Errorf("%q is refused", test.sql)
			}
			for _, standard := range []bool{true, false} {
				if lost := execute(t, pool, test.sql, standard); lost != "" {
					t.Errorf("%q, standard_conforming_strings %t: %s", test.sql, standard, lost)
				}
			}
		})
	}
}

// whole are pieces of SQL that make sense beside each other; with one or two of
// scraps between them they often still do.
var whole = []string{
	"commit;", "COMMIT and chain;", "abort;", "end work;", "rollback;", "rollback transaction and no chain;", "rollback and chain;",
	"rollback to s;", "rollback work to savepoint s;", "begin;", "start transaction;", "prepare transaction 'x';", "savepoint s;",
	"select 1;", "select ';';", "select 'it''s';", `select '\';`, `select '\'';`, `select E'\';';`, "select E'a'\n", `'\';';`,
	"select U&';';", "select $$;'$$;", "select $a$ $$ ; $a$;", "select 1 as a$b$;", `select 1 as "a;""b";`, "select case when true then 1 end;",
	"create or replace function f() returns int begin atomic select 1; end;", "create or replace procedure f(begin int) begin atomic end;",
	"prepare x as select 1;", "do $$ begin perform 1; end $$;", "/* ; */", "/* a /* ' */ b */", "/***/", "-- '\n", "--;\r", " ", "\n", "\t;",
}

var scraps = strings.Split("commit|end|rollback|to s|work|transaction|and chain|begin|atomic|create|function|;|--|/*|*/|/|*|'|''|\"|\\|\\'|E'|e'|U&'|n'|b'|"+
	"$|$$|$a$|$1|1|a|select |(|)|+|,|é|\xff|\x00|\v|\f|\r|\n", "|")

// compose makes SQL of the pieces that picks choose.
func compose(picks []byte) string {
	var sql strings.Builder
	for _, pick := range picks {
		if pick < 200 {
			sql.WriteString(whole[int(pick)%len(whole)])
		} else {
			sql.WriteString(scraps[int(pick)%len(scraps)])
		}
	}
	return sql.String()
}

func FuzzEndsTransaction(f *testing.F) {
	for seed := range uint64(1000) {
		picks, random := make([]byte, 1+seed%8), rand.New(rand.NewPCG(seed, 0))
		for i := range picks {
			picks[i] = byte(random.IntN(256))
		}
		f.Add(picks, seed%2 == 0)
	}
	pool := marksPool(f)
	f.Fuzz(func(t *testing.T, picks []byte, standard bool) {
		sql := compose(picks)
		if lost := execute(t, pool, sql, standard); lost != "" && !pgtx.EndsTransaction(sql) {
			t.Errorf("%q, standard_conforming_strings %t: %s", sql, standard, lost)
		}
	})
}

func marksPool(t testing.TB) *pgxpool.Pool {
	pool := idemtest.Pool(t)
	if _, err := pool.Exec(t.Context(), "create table marks (id text)"); err != nil {
		t.Fatal(err)
	}
	return pool
}

// execute executes sql in a transaction, and says how that was ended, if it was.
func execute(t *testing.T, pool *pgxpool.Pool, sql string, standard bool) (lost string) {
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	raw, mark := conn.Conn().PgConn(), crand.Text()
	begin := fmt.Sprintf(`set standard_conforming_strings = %t; begin; insert into marks values ('%s'); savepoint s`, standard, mark)
	if err := raw.Exec(t.Context(), begin).Close(); err != nil {
		if standard {
			t.Fatal(err)
		}
		return "" // a Postgres that reads strings in the standard way only
	}
	before := xid(t, raw)
	_ = raw.Exec(t.Context(), sql).Close()
	switch raw.TxStatus() {
	case 'I':
		lost = "it is over"
	case 'T':
		if after := xid(t, raw); after != before {
			lost = fmt.Sprintf("%s became %s", before, after)
		}
	}
	_ = raw.Exec(context.Background(), "rollback; deallocate all").Close()
	var marked bool
	if err := conn.QueryRow(t.Context(), `select exists (select from marks where id = $1)`, pgx.QueryExecModeExec, mark).Scan(&marked); err != nil {
		t.Fatal(err)
	}
	if marked {
		lost = "it is committed"
	}
	return lost
}

func xid(t *testing.T, conn *pgconn.PgConn) string {
	results, err := conn.Exec(t.Context(), `select pg_current_xact_id()`).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return string(results[0].Rows[0][0])
}

func BenchmarkEndsTransaction(b *testing.B) {
	const update = `update invoices set paid_at = now(), state = case when due < $2 then 'late' else 'paid' end where charge = $1`
	for name, sql := range map[string]string{
		"one statement":                update,
		"one statement and semicolon":  update + ";\n",
		"one statement behind comment": "-- name: PayInvoice :exec\n" + update,
		"three statements":             update + "; " + update + "; " + update,
		"backslashes":                  `insert into files values ('C:\a'); ` + update,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if pgtx.EndsTransaction(sql) {
					b.Fatal("refused")
				}
			}
		})
	}
}
