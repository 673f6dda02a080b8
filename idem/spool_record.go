package idem

import (
	"encoding/json"
	"errors"
	"net/url"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// record is an event as it is kept in a spool. Names are text; a scope need not be,
// and is written as in a row key.
type record struct {
	Source     string    `json:"source"`
	Scope      string    `json:"scope,omitempty"`
	ID         string    `json:"id"`
	Type       string    `json:"type"`
	Key        string    `json:"key,omitempty"`
	OccurredAt *int64    `json:"occurred_at,omitempty"` // in microseconds since 1970, as Postgres counts
	Trace      string    `json:"trace,omitempty"`
	SpooledAt  time.Time `json:"spooled_at"`
	Payload    []byte    `json:"payload"`
}

func encodeRecord(e store.Incoming, at time.Time) ([]byte, error) {
	r := record{
		Source: e.Source, Scope: url.PathEscape(e.Scope), ID: e.ID, Type: e.Type, Key: e.Key,
		Trace: e.Trace, SpooledAt: at.UTC(), Payload: e.Payload,
	}
	if !e.OccurredAt.IsZero() {
		r.OccurredAt = new(e.OccurredAt.UnixMicro())
	}
	return json.Marshal(r)
}

// decodeRecord reads what encodeRecord has written.
func decodeRecord(data []byte) (e store.Incoming, at time.Time, err error) {
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return e, at, err
	}
	scope, err := url.PathUnescape(r.Scope)
	if err != nil {
		return e, at, err
	}
	if r.Source == "" || r.ID == "" {
		return e, at, errors.New("it has no source or id")
	}
	e = store.Incoming{Event: store.Event{
		Source: r.Source, Scope: scope, ID: r.ID, Type: r.Type, Key: r.Key, Payload: r.Payload,
	}, Trace: r.Trace}
	if r.OccurredAt != nil {
		e.OccurredAt = time.UnixMicro(*r.OccurredAt)
	}
	return e, r.SpooledAt, nil
}
