package idem

import (
	"errors"
	"net/url"
	"time"
)

// eventName is what names an event outside of Postgres: in the records of a spool, and in
// the messages of a relay. A scope need not be text, and is written as in a row key.
type eventName struct {
	Source     string `json:"source"`
	Scope      string `json:"scope,omitempty"`
	ID         string `json:"id"`
	Type       string `json:"type,omitempty"`
	Key        string `json:"key,omitempty"`
	OccurredAt *int64 `json:"occurred_at,omitempty"` // in microseconds since 1970, as Postgres counts
}

func nameOf(e Event) eventName {
	n := eventName{Source: e.Source, Scope: url.PathEscape(e.Scope), ID: e.ID, Type: e.Type, Key: e.Key}
	if !e.OccurredAt.IsZero() {
		n.OccurredAt = new(e.OccurredAt.UnixMicro())
	}
	return n
}

// event is the event of that name, with a payload.
func (n eventName) event(payload []byte) (Event, error) {
	scope, err := url.PathUnescape(n.Scope)
	if err != nil {
		return Event{}, err
	}
	if n.Source == "" || n.ID == "" {
		return Event{}, errors.New("it has no source or id")
	}
	e := Event{Source: n.Source, Scope: scope, ID: n.ID, Type: n.Type, Key: n.Key, Payload: payload}
	if n.OccurredAt != nil {
		e.OccurredAt = time.UnixMicro(*n.OccurredAt).UTC()
	}
	return e, nil
}
