package store

import (
	"strings"
	"unicode/utf8"
)

// MaxName is the length in bytes of the longest scope, id, type and key that are
// stored. Providers use a fifth of it; Postgres refuses index entries that are
// ten times as long.
const MaxName = 255

// Nameable reports whether a text can be stored as an event's scope, id, type or key.
func Nameable(s string) bool {
	return len(s) <= MaxName && utf8.ValidString(s) && !strings.Contains(s, "\x00")
}
