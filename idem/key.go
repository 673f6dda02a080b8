package idem

import (
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
)

// rowKey is the one column that names an event: source/scope/id. A key of three
// columns costs every insert a fifth more.
func rowKey(e Event) string {
	return e.Source + "/" + url.PathEscape(e.Scope) + "/" + e.ID
}

// queueOf names the queue that an event waits in for its work: that of its key,
// or one of its own.
func queueOf(e Event) string {
	if e.Key == "" {
		return rowKey(e)
	}
	return e.Source + "/" + url.PathEscape(e.Scope) + "/" + e.Key
}

// parseRowKey undoes rowKey.
func parseRowKey(key string) (source, scope, id string) {
	source, rest, _ := strings.Cut(key, "/")
	scope, id, _ = strings.Cut(rest, "/")
	if unescaped, err := url.PathUnescape(scope); err == nil {
		scope = unescaped
	}
	return source, scope, id
}

// maxName is the length in bytes of the longest id, type and key that are
// stored. Providers use a fifth of it; Postgres refuses index entries that are
// ten times as long.
const maxName = 255

// normalize makes sure that an event can be stored, whatever its body says: a
// genuine event is never refused because of its bytes.
func (p *Processor) normalize(e Event) Event {
	if e.Source == "" {
		e.Source = p.source.Name()
	}
	if e.ID == "" || !nameable(e.ID) {
		e.ID = BodyID(e.Payload)
	}
	if !nameable(e.Type) {
		e.Type, e.Decoded = "", nil
	}
	if !nameable(e.Key) {
		e.Key = BodyID([]byte(e.Key))
	}
	if year := e.OccurredAt.Year(); year < 1 || year > 9999 {
		e.OccurredAt = time.Time{}
	}
	if e.Payload == nil {
		e.Payload = []byte{}
	}
	return e
}

func nameable(s string) bool {
	return len(s) <= maxName && utf8.ValidString(s) && !strings.Contains(s, "\x00")
}
