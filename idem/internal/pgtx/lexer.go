package pgtx

import "strings"

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
