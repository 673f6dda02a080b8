package asaastest

import (
	"fmt"
	"slices"
)

// maxWebhooks is the number of webhooks that an account can have.
const maxWebhooks = 10

// AddWebhook adds a webhook, like a person in Asaas's web interface, and returns
// its id. It panics without a receiver, and for the eleventh webhook. Only the
// API has rules for the token.
func (f *Fake) AddWebhook(w Webhook) (id string) {
	if w.URL == "" && w.Handler == nil {
		panic("asaastest: a webhook needs a URL or a Handler")
	}
	f.change(func() {
		if len(f.webhooks) >= maxWebhooks {
			panic(fmt.Sprintf("asaastest: an account has at most %d webhooks", maxWebhooks))
		}
		id = f.add(w).ID
	})
	return id
}

// add completes a webhook with the defaults.
func (f *Fake) add(c Webhook) *webhook {
	c.ID = fmt.Sprintf("00000000-0000-4000-8000-%012d", len(f.receivers)+1)
	c.Events = slices.Clone(c.Events)
	orElse(&c.Name, "fake")
	orElse(&c.URL, f.placeholderURL())
	orElse(&c.Email, "fake@example.com")
	orElse(&c.SendType, Sequentially)
	orElse(&c.APIVersion, 3)
	w := &webhook{Webhook: c, receiver: newReceiver(c.Handler, f.complaints())}
	f.webhooks, f.receivers = append(f.webhooks, w), append(f.receivers, w.receiver)
	return w
}

// placeholderURL is one for each webhook with a Handler.
func (f *Fake) placeholderURL() string {
	if n := len(f.receivers); n > 0 {
		return fmt.Sprintf("http://receiver%d.example/webhooks/asaas", n+1)
	}
	return "http://receiver.example/webhooks/asaas"
}

func orElse[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Webhook returns a webhook as it is now. It panics for an id that there is
// not.
func (f *Fake) Webhook(id string) Webhook {
	f.timeline.Lock()
	defer f.timeline.Unlock()
	w := f.mustFind(id)
	out := w.Webhook
	out.Events = slices.Clone(w.Events)
	out.Penalized, out.Pending = w.penalized(f.Counting), len(w.queue)
	return out
}

// Resume reactivates a paused queue, like a person in Asaas's web interface:
// all events in it are due, in the order in which they happened, and the count
// of failures begins anew. Settle delivers them.
func (f *Fake) Resume(webhookID string) {
	f.change(func() { f.setInterrupted(f.mustFind(webhookID), false) })
}

// RemoveBackoff removes the penalty, like the API's removeBackoff: the events that wait
// are due, and the count of failures begins anew. It does not resume a paused
// queue.
func (f *Fake) RemoveBackoff(webhookID string) {
	f.change(func() { f.removeBackoff(f.mustFind(webhookID)) })
}

func (f *Fake) find(id string) *webhook {
	i := slices.IndexFunc(f.webhooks, func(w *webhook) bool { return w.ID == id })
	if i < 0 {
		return nil
	}
	return f.webhooks[i]
}

func (f *Fake) mustFind(id string) *webhook {
	w := f.find(id)
	if w == nil {
		panic(fmt.Sprintf("asaastest: there is no webhook %q", id))
	}
	return w
}
