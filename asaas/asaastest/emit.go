package asaastest

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/paghooks/paghooks/asaas"
)

// Emit makes events happen, one per body: each is queued for the enabled
// webhooks that subscribe to its type, in the order of the bodies. [Fake.Settle]
// and [Fake.Advance] deliver them. The API shows the charge of an event as the newest
// of its events has it.
//
// It panics for a body without id or event, and for an id that was emitted
// before: [Fake.Resend] sends an event again.
func (f *Fake) Emit(bodies ...[]byte) {
	events := make([]event, 0, len(bodies))
	for _, body := range bodies {
		events = append(events, newEvent(body))
	}
	f.change(func() {
		for _, e := range events {
			if _, ok := f.events[e.id]; ok {
				panic("asaastest: " + e.id + " was emitted before: leave its id to asaastest.Event, or Resend it")
			}
			f.events[e.id] = e
			f.account.learn(e)
			f.enqueue(e)
		}
	})
}

// Resend queues an event again, with the same id, as a person can do in Asaas's
// web interface. It panics for an event that was not emitted.
func (f *Fake) Resend(eventID string) {
	f.change(func() {
		e, ok := f.events[eventID]
		if !ok {
			panic(fmt.Sprintf("asaastest: there is no event %q: Emit it first", eventID))
		}
		f.enqueue(e)
	})
}

func newEvent(body []byte) event {
	var envelope struct {
		ID    string          `json:"id"`
		Event asaas.EventType `json:"event"`
	}
	if err := json.Unmarshal(body, &envelope); err != nil {
		panic("asaastest: the body is no event: " + err.Error())
	}
	if envelope.ID == "" || envelope.Event == "" {
		panic("asaastest: the body has no id or no event: make it with asaastest.Event or asaastest.Sparse")
	}
	return event{id: envelope.ID, kind: envelope.Event, body: slices.Clone(body)}
}

func (f *Fake) enqueue(e event) {
	for _, w := range f.webhooks {
		if w.Disabled || !w.subscribes(e.kind) {
			continue
		}
		f.queued++
		p := &pending{event: e, order: f.queued, queued: f.now, due: f.now}
		w.queue = append(w.queue, p)
		f.record(w, p, Entry{Kind: Queued})
	}
}
