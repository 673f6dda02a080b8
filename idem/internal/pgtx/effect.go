package pgtx

import (
	"strings"
)

// EndsTransaction reports whether a statement in sql ends, replaces or prepares
// the current transaction: ABORT, COMMIT, END, ROLLBACK (but not to a
// savepoint) and PREPARE TRANSACTION, in all their forms.
//
// Whether a backslash escapes in '…' depends on a setting of the session, so
// both readings count. SQL that Postgres cannot parse may be reported either
// way: none of it is executed. A statement that is prepared under the name
// "transaction" is reported, though it ends nothing.
func EndsTransaction(sql string) bool { return effectOf(sql)&ends != 0 }

// effect is a possible effect of SQL on the transaction and its session, beyond its work.
type effect uint8

const (
	ends  effect = 1 << iota // the transaction is ended, replaced or prepared: see EndsTransaction
	lasts                    // a setting of the session is another one after the commit, or a prepared statement is left in it
	moves                    // another search path, role or synchronous_commit is set
	calls                    // a function is called, or a temporary table, a cursor or a lock may be left: see Tx.look
)

// effectOf returns the possible effects of the statements in sql. Only ends is certain. A wrong lasts costs a
// connection, a wrong moves a round trip, a wrong calls part of a round trip. The calls of a trigger, a view,
// an operator or the default of a column are not looked for.
func effectOf(sql string) (found effect) {
	sql = strings.TrimRight(sql, "; \t\r\n")
	standard, escaping := lexer{rest: sql}, lexer{rest: sql, escapes: true}
	found = standard.statements()
	if strings.IndexByte(sql, '\\') >= 0 {
		found |= escaping.statements()
	}
	return found | effectOfCalls(sql)
}

// statements returns the effect of each statement's first words. Most SQL is one statement, and its first
// word decides.
func (l *lexer) statements() (found effect) {
	for body := false; ; {
		word := l.next()
		switch {
		case word == ";": // an empty statement
			continue
		case body && is(word, "end"):
			body = false
		default:
			found |= l.statement(word)
		}
		if found&ends != 0 || strings.IndexByte(l.rest, ';') < 0 {
			return found
		}
		body = l.skip(word) || body
	}
}

// statement is the effect of the statement that begins with word, from its first words.
func (l *lexer) statement(word string) effect {
	switch {
	case is(word, "select"), is(word, "with"), is(word, "values"), is(word, "("), is(word, "insert"), is(word, "update"), is(word, "delete"), is(word, "merge"):
		if !l.calls(is(word, "insert")) {
			return 0
		}
	case is(word, "savepoint"), is(word, "release"), is(word, "lock"):
		return 0
	case is(word, "set"):
		return l.set()
	case is(word, "reset"), is(word, "discard"), is(word, "deallocate"), is(word, "listen"), is(word, "load"),
		is(word, "do"), is(word, "execute"): // the SQL to execute is in a string, or elsewhere
		return lasts | moves
	case is(word, "abort"), is(word, "commit"), is(word, "end"):
		return ends
	case is(word, "prepare"):
		if is(l.next(), "transaction") {
			return ends
		}
		return lasts
	case is(word, "rollback"):
		if word = l.next(); is(word, "work") || is(word, "transaction") {
			word = l.next()
		}
		if !is(word, "to") {
			return ends
		}
		return 0
	}
	return calls
}

// calls reports whether the rest of a statement calls a function, as book(id) or as the attribute orders.book, or makes
// a table. The columns that an INSERT lists are no arguments.
func (l lexer) calls(insert bool) bool {
	before, columns := "", insert
	for word := l.next(); word != "" && word != ";"; before, word = word, l.next() {
		named := before == `"` || wordLen(before) > 0
		switch {
		case word == "(" && named && !isNoCall(before) && !columns, word == "." && named && !is(before, "excluded"), is(word, "into") && !insert:
			return true
		case word == "(" && named && !isNoCall(before): // the list of columns
			columns = false
		}
		columns = columns && !is(word, "values") && !is(word, "select") && !is(word, "with")
	}
	return false
}

// isNoCall reports whether a parenthesis behind a word opens no call, or one that runs no function of the
// application's.
func isNoCall(word string) bool {
	switch strings.ToLower(word) {
	case "values", "set", "where", "in", "any", "some", "all", "exists", "and", "or", "not", "on", "conflict", "using", "from", "as", "select",
		"insert", "returning", "when", "then", "else", "between",
		"coalesce", "nullif", "greatest", "least", "cast", "now", "count", "sum":
		return true
	}
	return false
}

// set returns the effect of SET.
func (l *lexer) set() effect {
	switch word := l.next(); {
	case is(word, "local"):
		return moves
	case is(word, "transaction"), is(word, "constraints"):
		return 0
	}
	return lasts | moves
}

// effectOfCalls returns the effect of set_config, which sets for the session unless its last argument is the
// word true.
func effectOfCalls(sql string) effect {
	left := 0
	for _, rest, ok := strings.Cut(sql, "_"); ok; _, rest, ok = strings.Cut(rest, "_") {
		if start := len(sql) - len(rest) - len("set_"); start >= 0 && len(rest) >= len("config") && is(sql[start:start+len("set_config")], "set_config") {
			left++
		}
	}
	if left == 0 {
		return 0
	}
	l := lexer{rest: sql}
	for word := l.next(); word != ""; word = l.next() {
		if is(word, "set_config") && l.lastArgumentIsTrue() {
			left--
		}
	}
	if left > 0 { // a string, a comment or a quoted name counts as a call
		return lasts | moves
	}
	return moves
}

// lastArgumentIsTrue moves behind the arguments of a call.
func (l *lexer) lastArgumentIsTrue() bool {
	if l.next() != "(" {
		return false
	}
	before, last := "", ""
	for depth := 1; depth > 0; {
		word := l.next()
		switch word {
		case "":
			return false
		case "(":
			depth++
		case ")":
			depth--
		}
		if depth > 0 {
			before, last = last, word
		}
	}
	return is(last, "true") && before == ","
}

// mayBeName reports whether sql may be the name of a prepared statement, which pgx executes instead. A text
// of several words that begins with a command is taken for SQL.
func mayBeName(sql string) bool {
	l := lexer{rest: sql}
	return !isCommand(l.next()) || !strings.ContainsAny(strings.TrimSpace(sql), " \t\r\n")
}

// isCommand reports whether SQL may begin with a word: the commands of PostgreSQL 18.
func isCommand(word string) bool {
	switch strings.ToLower(word) {
	case "", ";", "(",
		"abort", "alter", "analyse", "analyze", "begin", "call", "checkpoint", "close", "cluster", "comment", "commit", "copy",
		"create", "deallocate", "declare", "delete", "discard", "do", "drop", "end", "execute", "explain", "fetch", "grant",
		"import", "insert", "listen", "load", "lock", "merge", "move", "notify", "prepare", "reassign", "refresh", "reindex",
		"release", "reset", "revoke", "rollback", "savepoint", "security", "select", "set", "show", "start", "table",
		"truncate", "unlisten", "update", "vacuum", "values", "with":
		return true
	}
	return false
}

// lexer cuts SQL into tokens as Postgres's scanner does.
type lexer struct {
	rest    string
	escapes bool // a backslash escapes in '…', as with standard_conforming_strings off
}

// skip moves behind the statement that begins with word; or, if that creates a
// function or procedure, behind the BEGIN ATOMIC before its statements.
func (l *lexer) skip(word string) (body bool) {
	create, routine, depth := is(word, "create"), false, 0
	for i := 1; ; i++ {
		before := word
		switch word = l.next(); {
		case word == "" || word == ";":
			return false
		case create && (i == 1 || i == 3 && is(before, "replace")):
			routine = is(word, "function") || is(word, "procedure")
		case word == "(":
			depth++
		case word == ")":
			depth--
		case routine && depth == 0 && is(before, "begin") && is(word, "atomic"):
			return true
		}
	}
}

// next returns the next token: a word, a literal or quoted name as its quote,
// one byte of anything else, or "" at the end.
func (l *lexer) next() string {
	l.space()
	if n := wordLen(l.rest); n > 0 {
		word := l.take(n)
		for is(word, "e") && l.cut("'") {
			l.quoted('\'', true)
			l.space() // a literal that follows continues this one
		}
		return word
	}
	from := l.rest
	token := l.take(1)
	switch token {
	case "'":
		l.quoted('\'', l.escapes)
	case `"`:
		l.quoted('"', false)
	case "$":
		if i := strings.IndexByte(l.rest, '$'); i == wordLen(l.rest[:max(i, 0)]) {
			_, l.rest, _ = strings.Cut(l.rest[i+1:], from[:i+2])
		}
	}
	return token
}

// space skips white space and comments, which nest.
func (l *lexer) space() {
	for depth, line := 0, false; l.rest != ""; {
		switch {
		case line:
			line = l.rest[0] != '\r' && l.rest[0] != '\n'
			l.take(1)
		case l.cut("/*"):
			depth++
		case depth > 0 && l.cut("*/"):
			depth--
		case depth > 0 || strings.IndexByte(" \t\r\n\f\v", l.rest[0]) >= 0:
			l.take(1)
		default:
			if line = l.cut("--"); !line {
				return
			}
		}
	}
}

// quoted skips the rest of a literal or name. A doubled quote in it reads as
// the end of one and the beginning of another, which comes to the same.
func (l *lexer) quoted(quote byte, escapes bool) {
	i := 0
	for ; i < len(l.rest) && l.rest[i] != quote; i++ {
		if escapes && l.rest[i] == '\\' {
			i++
		}
	}
	l.take(i + 1)
}

// take returns the next bytes, up to n, and moves behind them.
func (l *lexer) take(n int) (taken string) {
	n = min(n, len(l.rest))
	taken, l.rest = l.rest[:n], l.rest[n:]
	return taken
}

func (l *lexer) cut(prefix string) (ok bool) {
	l.rest, ok = strings.CutPrefix(l.rest, prefix)
	return ok
}

// wordLen is the length of the word that s begins with.
func wordLen(s string) int {
	for i := range len(s) {
		switch c := s[i]; {
		case c|0x20 >= 'a' && c|0x20 <= 'z', c == '_', c >= 0x80:
		case i > 0 && (c >= '0' && c <= '9' || c == '$'):
		default:
			return i
		}
	}
	return len(s)
}

func is(word, keyword string) bool { return strings.EqualFold(word, keyword) }
