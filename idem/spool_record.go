package idem

import (
	"encoding/json"
	"time"

	"github.com/paghooks/paghooks/idem/internal/store"
)

// record is an event as it is kept in a spool.
type record struct {
	eventName
	Trace     string    `json:"trace,omitempty"`
	SpooledAt time.Time `json:"spooled_at"`
	Payload   []byte    `json:"payload"`
}

func encodeRecord(e store.Incoming, at time.Time) ([]byte, error) {
	return json.Marshal(record{nameOf(Event(e.Event)), e.Trace, at.UTC(), e.Payload})
}

// decodeRecord reads what encodeRecord has written.
func decodeRecord(data []byte) (in store.Incoming, at time.Time, err error) {
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return in, at, err
	}
	e, err := r.event(r.Payload)
	return store.Incoming{Event: e.row(), Trace: r.Trace}, r.SpooledAt, err
}
