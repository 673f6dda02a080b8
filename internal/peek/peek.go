// Package peek finds a few members of a JSON object without decoding the rest.
// A provider names an event by it, before anything else is known about the
// body. In valid JSON it finds the values that encoding/json decodes,
// for any order, case and number of the members.
package peek

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Members calls each with the members of a JSON object, in their order: a name
// for [Name], a value for [Text] or for Members again. It reports whether the
// object is whole. The values are not checked: JSON that is not valid may look
// whole.
func Members(object []byte, each func(name, value []byte)) (whole bool) {
	rest, ok := cut(object, '{')
	if !ok {
		return false
	}
	if end, ok := cut(rest, '}'); ok {
		return len(trimmed(end)) == 0
	}
	for {
		var name, value []byte
		if name, rest = element(rest); len(name) == 0 || name[0] != '"' {
			return false
		}
		if rest, ok = cut(rest, ':'); !ok {
			return false
		}
		if value, rest = element(rest); len(value) == 0 {
			return false
		}
		each(name, value)
		if end, ok := cut(rest, '}'); ok {
			return len(trimmed(end)) == 0
		}
		if rest, ok = cut(rest, ','); !ok {
			return false
		}
	}
}

// Name returns a member's decoded name, to be compared as encoding/json does, by
// [bytes.EqualFold].
func Name(name []byte) []byte {
	if plain(name) {
		return name[1 : len(name)-1]
	}
	return []byte(unquoted(name, ""))
}

// Text reads a value that is a string, or a number as it is written. Any other
// value, such as null, leaves s alone.
func Text(value []byte, s *string) {
	switch c := value[0]; {
	case c == '"' && plain(value):
		*s = string(value[1 : len(value)-1])
	case c == '"':
		*s = unquoted(value, *s)
	case c == '-' || '0' <= c && c <= '9':
		*s = string(value)
	}
}

// unquoted returns a string's decoded value, or fallback if it is not valid.
func unquoted(value []byte, fallback string) string {
	var s string
	if json.Unmarshal(value, &s) != nil {
		return fallback
	}
	return s
}

// Lossy reports whether a value is a string with bytes that decoding replaces by U+FFFD,
// or with U+FFFD itself: others stand for the same text.
func Lossy(value []byte) bool {
	return value[0] == '"' && !plain(value) && strings.ContainsRune(unquoted(value, ""), utf8.RuneError)
}

// cut takes a byte from the front of text, and the white space before it.
func cut(text []byte, c byte) (rest []byte, ok bool) {
	text = trimmed(text)
	if len(text) == 0 || text[0] != c {
		return text, false
	}
	return text[1:], true
}

func trimmed(text []byte) []byte {
	for len(text) > 0 && isSpace(text[0]) {
		text = text[1:]
	}
	return text
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// element takes a value from the front of text, as far as its quotes and
// brackets tell; nothing if it does not end.
func element(text []byte) (value, rest []byte) {
	text = trimmed(text)
	n := 0
	if len(text) > 0 {
		switch text[0] {
		case '"':
			n = quoted(text)
		case '{', '[':
			n = nested(text)
		default:
			n = bytes.IndexAny(text, ",:{}[]\" \t\r\n")
		}
	}
	n = max(n, 0)
	return text[:n], text[n:]
}

// quoted returns the length of the string that text begins with; 0 without an end.
func quoted(text []byte) int {
	for n := 1; ; n++ {
		i := bytes.IndexByte(text[n:], '"')
		if i < 0 {
			return 0
		}
		n += i
		backslashes := 0
		for text[n-1-backslashes] == '\\' {
			backslashes++
		}
		if backslashes%2 == 0 {
			return n + 1
		}
	}
}

// nested returns the length of the object or array that text begins with; 0 without
// an end.
func nested(text []byte) int {
	depth := 0
	for n := 0; n < len(text); n++ {
		switch text[n] {
		case '"':
			length := quoted(text[n:])
			if length == 0 {
				return 0
			}
			n += length - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return n + 1
			}
		}
	}
	return 0
}

// plain reports whether a JSON string stands for the very bytes between its
// quotes.
func plain(literal []byte) bool {
	for _, c := range literal[1 : len(literal)-1] {
		if c < ' ' || c >= utf8.RuneSelf || c == '\\' {
			return false
		}
	}
	return true
}
