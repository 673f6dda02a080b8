package wire

import (
	"encoding/json"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// record is an event in a spool.
type record struct {
	Name
	Trace     string    `json:"trace,omitempty"`
	SpooledAt time.Time `json:"spooled_at"`
	Payload   []byte    `json:"payload"`
}

// EncodeRecord returns the record of an event that goes to a spool at a time.
func EncodeRecord(e store.Incoming, at time.Time) ([]byte, error) {
	return json.Marshal(record{NameOf(e.Event), e.Trace, at.UTC(), e.Payload})
}

// DecodeRecord parses a record of [EncodeRecord].
func DecodeRecord(data []byte) (in store.Incoming, at time.Time, err error) {
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return in, at, err
	}
	e, err := r.Event(r.Payload)
	return store.Incoming{Event: e, Trace: r.Trace}, r.SpooledAt, err
}
