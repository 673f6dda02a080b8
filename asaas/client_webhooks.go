package asaas

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"reflect"

	"github.com/paghooks/paghooks/idem/optional"
)

const pageSize = 100 // the most that Asaas gives

// Webhooks lists the account's webhooks. An error ends the list.
//
// See https://docs.asaas.com/docs/create-new-webhook-via-api.
func (c *Client) Webhooks(ctx context.Context) iter.Seq2[*Webhook, error] {
	return c.list(ctx, "Webhooks")
}

func (c *Client) list(ctx context.Context, name string) iter.Seq2[*Webhook, error] {
	return func(yield func(*Webhook, error) bool) {
		seen := make(map[string]bool) // pages shift while webhooks come and go
		for offset, more := 0, true; more; {
			page, err := c.listWebhooks(ctx, name, offset, pageSize)
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
				yield(nil, failure{operation{name: name}, c.key}.made(CallUnknown, "the list has no end, its pages repeat: see what answers at the API's address", nil))
				return
			}
		}
	}
}

// check returns an error for JSON that is not a page of the list: it would be a list without
// webhooks.
func (p *WebhookPage) check() error {
	data, ok := p.Data.Get()
	if !ok {
		return errors.New("it is no list: see the API's address")
	}
	for i := range data {
		if err := data[i].check(); err != nil {
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
	return c.getWebhook(ctx, "Webhook", id)
}

// CreateWebhook creates a webhook; an account may have 10. Asaas's defaults
// are not documented, so a field that is not set is sent as Enabled true,
// Interrupted false, APIVersion 3 and SendType SEQUENTIALLY.
//
// If AuthToken is not set Asaas makes a token, and tells it in this answer only.
//
// See https://docs.asaas.com/docs/create-new-webhook-via-api.
func (c *Client) CreateWebhook(ctx context.Context, w WebhookCreate) (*Webhook, error) {
	const name = "CreateWebhook"
	if len(w.Events) == 0 {
		return nil, failure{operation{name: name}, c.key}.refused(errNoEvents)
	}
	w.Enabled = optional.Of(w.Enabled.Or(true))
	w.Interrupted = optional.Of(w.Interrupted.Or(false))
	w.APIVersion = optional.Of(w.APIVersion.Or(3))
	w.SendType = cmp.Or(w.SendType, WebhookSendTypeSequentially)
	return c.createWebhook(ctx, name, w)
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
	refused := failure{operation{name: name, id: id}, c.key}.refused
	if !u.Events.IsZero() && len(u.Events.Or(nil)) == 0 {
		return nil, refused(errNoEvents)
	}
	if isEmpty(u) {
		return nil, refused(errNoChange)
	}
	return c.updateWebhook(ctx, name, id, u)
}

// DeleteWebhook removes a webhook for good: its id never comes back, and nothing
// that waited in its queue is delivered.
//
// See https://docs.asaas.com/reference/remove-webhook.
func (c *Client) DeleteWebhook(ctx context.Context, id string) error {
	_, err := c.deleteWebhook(ctx, "DeleteWebhook", id)
	return err
}

func (d *WebhookDeleted) check() error {
	if !d.Deleted.Or(false) {
		return errors.New("it does not say that the webhook is deleted")
	}
	return nil
}

func isEmpty(u WebhookUpdate) bool { return reflect.ValueOf(u).IsZero() }
