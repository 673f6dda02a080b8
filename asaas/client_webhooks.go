package asaas

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"reflect"
	"time"

	"github.com/paghooks/paghooks/idem/value"
)

// Webhooks lists the account's webhooks, with the states of their queues: Asaas has stopped one that is Interrupted, and
// pauses between attempts while PenalizedRequestsCount is not 0. An error ends the list.
//
// See https://docs.asaas.com/docs/create-new-webhook-via-api.
func (c *Client) Webhooks(ctx context.Context) iter.Seq2[*Webhook, error] {
	const name = "Webhooks"
	return func(yield func(*Webhook, error) bool) {
		seen := make(map[string]bool) // pages shift while webhooks come and go
		for offset, more := 0, true; more; {
			page, err := send[WebhookPage](ctx, c, operation{name: name, method: http.MethodGet, path: "/webhooks", query: pageOf(offset, nil)})
			if err != nil {
				yield(nil, err)
				return
			}
			before, data := len(seen), page.Data.Or(nil)
			for i := range data {
				if w := &data[i]; !seen[w.ID] {
					seen[w.ID] = true
					if !yield(w, nil) {
						return
					}
				}
			}
			offset, more = offset+len(data), page.HasMore.Or(false)
			if more && len(seen) == before {
				yield(nil, c.failed(operation{name: name}, CallUnknown, "the list has no end, its pages repeat: see what answers at the API's address", nil))
				return
			}
		}
	}
}

// check returns an error for JSON that is not a page of the list: it would be a list without
// webhooks.
func (p *WebhookPage) check() error { return checkEach(p.Data, (*Webhook).check) }

func checkEach[T any](list value.Optional[[]T], check func(*T) error) error {
	data, ok := list.Get()
	if !ok {
		return errNoList
	}
	for i := range data {
		if err := check(&data[i]); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error for JSON that is not a webhook.
func (w *Webhook) check() error {
	if w.ID == "" {
		return errors.New("it is no webhook, it has no id: see the API's address")
	}
	return nil
}

// Webhook returns a webhook, with the state of its queue. The status of the
// error is 404 where the account has none of this id.
//
// See https://docs.asaas.com/docs/create-new-webhook-via-api.
func (c *Client) Webhook(ctx context.Context, id string) (*Webhook, error) {
	return send[Webhook](ctx, c, operation{name: "Webhook", method: http.MethodGet, path: "/webhooks/{id}", id: id})
}

// CreateWebhook creates a webhook; an account may have 10. Asaas's defaults
// are not documented, so a field that is not set is sent as Enabled true,
// Interrupted false, APIVersion 3 and SendType SEQUENTIALLY.
//
// If AuthToken is not set Asaas makes a token, which is in this answer only.
//
// See https://docs.asaas.com/docs/create-new-webhook-via-api.
func (c *Client) CreateWebhook(ctx context.Context, w WebhookCreate) (*Webhook, error) {
	const name = "CreateWebhook"
	if len(w.Events) == 0 {
		return nil, c.refused(operation{name: name}, errNoEvents)
	}
	w.Enabled = value.Of(w.Enabled.Or(true))
	w.Interrupted = value.Of(w.Interrupted.Or(false))
	w.APIVersion = value.Of(w.APIVersion.Or(3))
	w.SendType = cmp.Or(w.SendType, WebhookSendTypeSequentially)
	return send[Webhook](ctx, c, operation{name: name, method: http.MethodPost, path: "/webhooks", body: w})
}

var (
	errNoEvents = errors.New("the list of Events is empty, and the webhook would get none: name them, or disable the webhook")
	errNoChange = errors.New("the update changes nothing: set a field")
)

// UpdateWebhook changes the fields that are set in the update, and leaves the rest as it is.
// To change the list of events, send all of them.
//
// See https://docs.asaas.com/docs/how-to-reactivate-an-interrupted-queue.
func (c *Client) UpdateWebhook(ctx context.Context, id string, u WebhookUpdate) (*Webhook, error) {
	return c.update(ctx, "UpdateWebhook", id, u)
}

func (c *Client) update(ctx context.Context, name, id string, u WebhookUpdate) (*Webhook, error) {
	if !u.Events.IsZero() && len(u.Events.Or(nil)) == 0 {
		return nil, c.refused(operation{name: name, id: id}, errNoEvents)
	}
	if isEmpty(u) {
		return nil, c.refused(operation{name: name, id: id}, errNoChange)
	}
	return send[Webhook](ctx, c, operation{name: name, method: http.MethodPut, path: "/webhooks/{id}", id: id, body: u})
}

// DeleteWebhook removes a webhook for good: its id never comes back, and nothing
// that waited in its queue is delivered.
//
// See https://docs.asaas.com/reference/remove-webhook.
func (c *Client) DeleteWebhook(ctx context.Context, id string) error {
	_, err := send[WebhookDeleted](ctx, c, operation{name: "DeleteWebhook", method: http.MethodDelete, path: "/webhooks/{id}", id: id})
	return err
}

func (d *WebhookDeleted) check() error {
	if !d.Deleted.Or(false) {
		return errors.New("it does not say that the webhook is deleted")
	}
	return nil
}

func isEmpty(u WebhookUpdate) bool { return reflect.ValueOf(u).IsZero() }

// RemoveBackoff has Asaas deliver at once, instead of after the pause that
// failed deliveries have led to. Do it once the cause of the failures is gone:
// the next failure leads to a pause again. For a queue that is stopped there is
// [Client.Resume].
//
// It is never repeated. Asaas limits it more strictly than other calls, without saying how: the
// status of the error is then 429.
//
// See https://docs.asaas.com/reference/remove-webhook-backoff.
func (c *Client) RemoveBackoff(ctx context.Context, id string) error {
	return c.call(ctx, operation{name: "RemoveBackoff", method: http.MethodPost, path: "/webhooks/{id}/removeBackoff", id: id, body: struct{}{}}, nil)
}

// Resume starts a queue again that Asaas stopped after 15 failures in a row.
// The events that have waited are delivered in their order. Nothing else about the webhook
// changes: one that is disabled stays so.
//
// See https://docs.asaas.com/docs/how-to-reactivate-an-interrupted-queue.
func (c *Client) Resume(ctx context.Context, id string) error {
	w, err := c.update(ctx, "Resume", id, WebhookUpdate{Interrupted: value.Of(false)})
	if err != nil {
		return err
	}
	if w.Interrupted.Or(false) {
		e := c.failed(operation{name: "Resume", id: id}, CallRejected, "the queue is still stopped: see the webhook at Asaas", nil)
		e.Status = http.StatusOK
		return e
	}
	return nil
}

// retention is the time for which Asaas keeps an event that it could not deliver.
const retention = 14 * 24 * time.Hour

// TimeLeft returns the time until Asaas may delete the first event that waits in a queue that is held up;
// 0 if Asaas may have deleted it. Asaas keeps an event for 14 days from its creation, and does not report
// the creation of the first that waits. So TimeLeft counts from lastCreated, the creation (OccurredAt of
// [idem.Event]) of the newest event that was acknowledged. Do not give the time of its arrival, which is
// later if the event has waited.
//
// With SEQUENTIALLY, the result is never too long: the events that wait were created later. With
// NON_SEQUENTIALLY an older event may wait beside newer ones that were
// delivered: give a time before which every event is known to be acknowledged.
func TimeLeft(lastCreated time.Time) time.Duration {
	return max(0, time.Until(lastCreated.Add(retention)))
}

// errNotTold is the error of an answer without the state of the queue.
var errNotTold = errors.New("the answer does not say whether the queue is held up: see the webhook at Asaas, and what answers at the API's address")

var errNoList = errors.New("it is no list: see the API's address")
