package pgtx

import "strings"

// EndsTransaction reports whether a statement in sql ends, replaces or prepares
// the current transaction: ABORT, COMMIT, END, ROLLBACK (but not to a
// savepoint) and PREPARE TRANSACTION, in all their forms.
//
// Whether a backslash escapes in '…' depends on a setting of the session, so
// both readings count. SQL that Postgres cannot parse may be reported either
// way: none of it is executed. Two statements are reported though they end
// nothing: one that is prepared under the name "transaction", and the END of a
// function's body after BEGIN ATOMIC.
func EndsTransaction(sql string) bool { return effectOf(sql) == ends }

// effect is the effect of SQL on the transaction and its session, beyond its work. A greater one includes the
// smaller ones.
type effect uint8

const (
	works effect = iota // none
	moves               // another search path, role or synchronous_commit may be set, by a function for longer
	lasts               // a setting of the session may be another one after the commit
	ends                // the transaction is ended, replaced or prepared: see EndsTransaction
)

// effectOf returns the greatest effect of the statements in sql. Only ends is certain. A wrong lasts costs a
// connection, a wrong moves a statement and, before statements of ours, a round trip. The calls of a trigger, a
// view, an operator or the default of a column are not looked for.
func effectOf(sql string) effect {
	found := lexer{rest: sql}.effect()
	if strings.IndexByte(sql, '\\') >= 0 {
		found = max(found, lexer{rest: sql, escapes: true}.effect())
	}
	return found
}

// effect returns the greatest effect of the statements in the rest. The columns that an INSERT lists are no
// arguments of a function. Behind a schema each name may be that of a function.
func (l lexer) effect() (found effect) {
	earlier, before, into := "", ";", false
	for token := l.next(); token != ""; earlier, before, token = before, token, l.next() {
		switch {
		case before == ";":
			found = max(found, l.statement(token))
		case token == "(" && !into && (earlier == "." || mayBeFunction(before)):
			found = max(found, l.call(before))
		}
		into = is(before, "into") || into && (token == "." || before == ".") // token is of the table's name
	}
	return found
}

// statement returns the effect of a statement as its first words have it: word, and those that follow.
func (l lexer) statement(word string) effect {
	switch strings.ToLower(word) {
	case "abort", "commit", "end":
		return ends
	case "rollback":
		if word = l.next(); is(word, "work") || is(word, "transaction") {
			word = l.next()
		}
		if !is(word, "to") {
			return ends
		}
	case "prepare":
		if is(l.next(), "transaction") {
			return ends
		}
		return lasts
	case "reset", "discard", "deallocate", "listen", "load",
		"do", "execute": // the SQL to execute is in a string, or elsewhere
		return lasts
	case "set":
		switch strings.ToLower(l.next()) {
		case "local":
			return moves
		case "transaction", "constraints":
			return works
		}
		return lasts
	}
	return works
}

// call returns the effect of the call of a function, whose arguments follow. set_config sets for the session
// unless its last argument is the word true.
func (l lexer) call(name string) effect {
	if is(strings.Trim(name, `"`), "set_config") && !l.lastArgumentIsTrue() {
		return lasts
	}
	return moves
}

func (l lexer) lastArgumentIsTrue() bool {
	before, last := "", ""
	for depth := 1; depth > 0; {
		token := l.next()
		switch token {
		case "":
			return false
		case "(":
			depth++
		case ")":
			depth--
		}
		if depth > 0 {
			before, last = last, token
		}
	}
	return is(last, "true") && before == ","
}

// mayBeFunction reports whether a token before a parenthesis may be the name of a function of the
// application's. The words are those that often stand there and name none.
func mayBeFunction(token string) bool {
	switch strings.ToLower(token) {
	case "all", "and", "any", "array", "as", "between", "cast", "coalesce", "distinct", "else", "except", "exists", "extract", "from",
		"greatest", "having", "in", "intersect", "lateral", "least", "not", "nullif", "numeric", "on", "or", "returning", "row", "select",
		"some", "then", "trim", "union", "using", "values", "varchar", "when", "where", "with",
		"conflict", "set", // words of a statement, which hardly name a function though they may
		"abs", "array_agg", "clock_timestamp", "concat", "count", "date_trunc", "gen_random_uuid", "jsonb_build_object", "length",
		"lower", "max", "min", "now", "pg_advisory_xact_lock", "round", "string_agg", "sum", "to_char", "unnest", "upper": // Postgres's own
		return false
	}
	return token[0] == '"' || wordLen(token) > 0
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

// next returns the next token: a word, a quoted name, a literal as its quote,
// one byte of anything else, or "" at the end.
func (l *lexer) next() string {
	l.space()
	from := l.rest
	if n := wordLen(from); n > 0 {
		l.rest = from[n:]
		for is(from[:n], "e") && strings.HasPrefix(l.rest, "'") {
			l.quoted(true)
			l.space() // a literal that follows continues this one
		}
		return from[:n]
	}
	if from == "" {
		return ""
	}
	switch from[0] {
	case '\'':
		l.quoted(l.escapes)
	case '"':
		l.quoted(false)
		return from[:len(from)-len(l.rest)]
	default:
		l.rest = from[1:]
		if i := strings.IndexByte(l.rest, '$'); from[0] == '$' && i == wordLen(l.rest[:max(i, 0)]) {
			_, l.rest, _ = strings.Cut(l.rest[i+1:], from[:i+2])
		}
	}
	return from[:1]
}

// space skips white space and comments.
func (l *lexer) space() {
	for {
		l.rest = strings.TrimLeft(l.rest, " \t\r\n\f\v")
		switch {
		case strings.HasPrefix(l.rest, "--"):
			end := strings.IndexAny(l.rest, "\r\n")
			if end < 0 {
				end = len(l.rest)
			}
			l.rest = l.rest[end:]
		case strings.HasPrefix(l.rest, "/*"):
			l.comment()
		default:
			return
		}
	}
}

// comment skips a comment, which may hold others.
func (l *lexer) comment() {
	for depth := 0; l.rest != ""; {
		switch {
		case l.cut("/*"):
			depth++
		case !l.cut("*/"):
			l.rest = l.rest[1:]
		case depth == 1:
			return
		default:
			depth--
		}
	}
}

// quoted skips a literal or a name in quotes. A doubled quote in it reads as
// the end of one and the beginning of another, which comes to the same.
func (l *lexer) quoted(escapes bool) {
	i := 1
	for ; i < len(l.rest) && l.rest[i] != l.rest[0]; i++ {
		if escapes && l.rest[i] == '\\' {
			i++
		}
	}
	l.rest = l.rest[min(i+1, len(l.rest)):]
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
