package zeltapaytest

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/paghooks/paghooks/zeltapay"
)

// Webhook holds the settings of a webhook in Zelta Pay's dashboard.
type Webhook struct {
	URL    string // of the receiver; for a Handler the URL that its requests show
	Secret string // signs every event

	// Handler, if not nil, receives the events in this process, without a socket, and so also in a synctest bubble.
	Handler http.Handler

	// Events are the event types that it gets; all by default, also those that this module does not know.
	Events []zeltapay.EventType
}

// AddWebhook adds a webhook, like a person in Zelta Pay's dashboard. It panics without a receiver, and for a URL that
// is none.
func (f *Fake) AddWebhook(w Webhook) {
	if w.URL == "" && w.Handler == nil {
		panic("zeltapaytest: a webhook needs a URL or a Handler")
	}
	if w.URL == "" {
		w.URL = "http://receiver.example/webhooks/zeltapay"
	}
	if to, err := url.Parse(w.URL); err != nil || to.Host == "" {
		panic(fmt.Sprintf("zeltapaytest: %q is not the URL of a receiver: it needs http:// and a host", w.URL))
	}
	w.Events = slices.Clone(w.Events)
	f.timeline.Lock()
	defer f.timeline.Unlock()
	f.webhooks = append(f.webhooks, &w)
}

func (w *Webhook) subscribes(kind zeltapay.EventType) bool {
	return w.Events == nil || slices.Contains(w.Events, kind)
}

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
