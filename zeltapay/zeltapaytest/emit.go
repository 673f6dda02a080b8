package zeltapaytest

import (
	"bytes"
	"net/http"
	"time"

	"github.com/paghooks/paghooks/zeltapay"
)

// Emit makes events happen, one per body: each is due at once for the webhooks that subscribe to its type.
// [Fake.Settle] and [Fake.Advance] deliver them.
//
// A body without an eventId gets one in its header. It panics for an id that was emitted before: the faults
// [Duplicate] and [Concurrent] deliver an event twice.
func (f *Fake) Emit(bodies ...[]byte) {
	f.change(func() {
		for _, body := range bodies {
			f.emit(body)
		}
	})
}

func (f *Fake) emit(body []byte) {
	h := make(http.Header)
	zeltapay.Sign(h, body, "", time.Time{}) // names the event as each delivery will
	id, kind := h.Get(headerEventID), zeltapay.EventType(h.Get(headerEventType))
	switch {
	case id == "":
		id = newID()
	case f.emitted[id]:
		panic("zeltapaytest: " + id + " was emitted before: leave its id to zeltapaytest.Event, or Inject an attempt with Duplicate")
	}
	f.emitted[id] = true
	for _, w := range f.webhooks {
		if w.subscribes(kind) {
			p := &pending{webhook: w, id: id, kind: kind, body: bytes.Clone(body), due: f.now()}
			f.pending = append(f.pending, p)
			f.record(p, Entry{Kind: Queued})
		}
	}
}
