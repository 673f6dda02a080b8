package store

import (
	"net/url"
	"strings"
)

// RowKey names an event in one column: source/scope/id. A primary key of three
// columns costs every insert a fifth more.
func (e Event) RowKey() string {
	return e.Source + "/" + url.PathEscape(e.Scope) + "/" + e.ID
}

// Lane names the events that are processed in order with e: those of its entity,
// or e alone when it has none. The % of the latter is in no scope that is escaped: an
// entity may have the id of an event.
func (e Event) Lane() string {
	account := e.Source + "/" + url.PathEscape(e.Scope)
	if e.Key == "" {
		return account + "%/" + e.ID
	}
	return account + "/" + e.Key
}

// EventOf returns the event that a row key names, of which it says no more.
func EventOf(key string) (e Event) {
	e.setRowKey(key)
	return e
}

// setRowKey sets the fields that a row key is made of.
func (e *Event) setRowKey(key string) {
	var rest, scope string
	e.Source, rest, _ = strings.Cut(key, "/")
	scope, e.ID, _ = strings.Cut(rest, "/")
	e.Scope = scope
	if unescaped, err := url.PathUnescape(scope); err == nil {
		e.Scope = unescaped
	}
}

// escaped is scopes as row keys have them; nil stays nil.
func escaped(scopes []string) []string {
	if scopes == nil {
		return nil
	}
	all := make([]string, len(scopes))
	for i, s := range scopes {
		all[i] = url.PathEscape(s)
	}
	return all
}

// sourcePrefix returns the prefix of the row keys and lanes of a source.
func sourcePrefix(source string) string { return source + "/" }

// rowLane is Lane in SQL, for the row e of idem_events.
const rowLane = `case e.key
	when '' then overlay(e.event placing '%' from length(substring(e.event from '^[^/]*/[^/]*')) + 1 for 0)
	else substring(e.event from '^[^/]*/[^/]*/') || e.key end`
