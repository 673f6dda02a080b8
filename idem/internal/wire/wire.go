// Package wire writes events outside of Postgres: in the messages of a relay.
package wire

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// Name names an event outside of Postgres. A scope need not be text, and is written as in
// a row key.
type Name struct {
	Source     string `json:"source"`
	Scope      string `json:"scope,omitempty"`
	ID         string `json:"id"`
	Type       string `json:"type,omitempty"`
	Key        string `json:"key,omitempty"`
	OccurredAt *int64 `json:"occurred_at,omitempty"` // in microseconds since 1970, as Postgres counts
}

// NameOf returns the name of an event.
func NameOf(e store.Event) Name {
	n := Name{Source: e.Source, Scope: url.PathEscape(e.Scope), ID: e.ID, Type: e.Type, Key: e.Key}
	if !e.OccurredAt.IsZero() {
		n.OccurredAt = new(e.OccurredAt.UnixMicro())
	}
	return n
}

// Event returns the event of that name, with a payload.
func (n Name) Event(payload []byte) (store.Event, error) {
	scope, err := url.PathUnescape(n.Scope)
	if err != nil {
		return store.Event{}, err
	}
	if n.Source == "" || n.ID == "" {
		return store.Event{}, errors.New("it has no source or id")
	}
	e := store.Event{Source: n.Source, Scope: scope, ID: n.ID, Type: n.Type, Key: n.Key, Payload: payload}
	if n.OccurredAt != nil {
		e.OccurredAt = time.UnixMicro(*n.OccurredAt).UTC()
	}
	return e, nil
}

// relayedKey is the context's key of the time at which a relay published a message.
type relayedKey struct{}

// WithRelayed returns a context with the time at which a relay published the event that is accepted with it.
func WithRelayed(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, relayedKey{}, at)
}

// SinceRelayed returns the time from a relay's publishing of an event until now; 0 if no relay published it.
// It is more than 0 otherwise, also if the clocks of the two hosts disagree.
func SinceRelayed(ctx context.Context, now time.Time) time.Duration {
	if at, ok := ctx.Value(relayedKey{}).(time.Time); ok {
		return max(now.Sub(at), 1)
	}
	return 0
}
