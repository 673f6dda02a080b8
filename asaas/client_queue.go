package asaas

import (
	"context"
	"errors"
	"net/http"
	"os"
	"time"

	"github.com/paghooks/paghooks/idem/optional"
)

// RemoveBackoff has Asaas deliver at once, instead of after the pause that
// failed deliveries have led to. Do it once the cause of the failures is gone:
// the next failure leads to a pause again. For a queue that is stopped there is
// [Client.Resume].
//
// Asaas limits it more strictly than other calls, without saying how: it is
// never repeated, and for the same webhook refused with [ErrTooSoon] within
// MinRemoveBackoff, unless there was no connection before. Other Clients know of
// it only through a StateDir that they share.
//
// See https://docs.asaas.com/reference/remove-webhook-backoff.
func (c *Client) RemoveBackoff(ctx context.Context, id string) error {
	const name = "RemoveBackoff"
	if c.removals == nil { // not made by NewClient, which the call says
		return c.removeWebhookBackoff(ctx, name, id)
	}
	f := failure{operation{name: name, id: id}, c.key}
	switch wait, err := c.beginRemoval(ctx, id); {
	case err != nil:
		return f.refused(err)
	case wait > 0:
		e := f.made(CallNotDelivered, "nothing was sent: it was done a short while ago, and may be done again in "+wholeSeconds(wait), nil)
		e.RetryAfter, e.err = wait, ErrTooSoon
		return e
	}
	err := c.removeWebhookBackoff(ctx, name, id)
	if e, ok := errors.AsType[*APIError](err); ok && e.Outcome == CallNotDelivered && e.Status == 0 {
		c.forgetRemoval(ctx, id)
	}
	return err
}

// beginRemoval notes a removal here and for other processes, or returns how long
// it has to wait.
func (c *Client) beginRemoval(ctx context.Context, id string) (wait time.Duration, err error) {
	if wait := c.removals.begin(id, c.MinRemoveBackoff); wait > 0 || c.StateDir == "" || c.MinRemoveBackoff <= 0 {
		return wait, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	err = withFile(ctx, c.StateDir, removalFile(c.BaseURL, id), func(f *os.File) error {
		now := time.Now()
		if at, ok := readTime(f); ok && !at.After(now) && now.Sub(at) < c.MinRemoveBackoff {
			wait = c.MinRemoveBackoff - now.Sub(at)
			return nil
		}
		return writeTime(f, now)
	})
	if err != nil || wait > 0 {
		c.removals.forget(id)
	}
	return wait, err
}

// forgetRemoval takes a note back.
func (c *Client) forgetRemoval(ctx context.Context, id string) {
	c.removals.forget(id)
	if c.StateDir != "" {
		_ = withFile(ctx, c.StateDir, removalFile(c.BaseURL, id), func(f *os.File) error { return f.Truncate(0) }) // or it is refused for a while, which does no harm
	}
}

// Resume starts a queue again that Asaas stopped after 15 failures in a row.
// The events that have waited are delivered in their order. Nothing else about the webhook
// changes: one that is disabled stays so.
//
// See https://docs.asaas.com/docs/how-to-reactivate-an-interrupted-queue.
func (c *Client) Resume(ctx context.Context, id string) error {
	w, err := c.update(ctx, "Resume", id, WebhookUpdate{Interrupted: optional.Of(false)})
	if err != nil {
		return err
	}
	if w.Interrupted.Or(false) {
		e := failure{operation{name: "Resume", id: id}, c.key}.made(CallRejected, "the queue is still stopped: see the webhook at Asaas", nil)
		e.Status = http.StatusOK
		return e
	}
	return nil
}

// retention is the time for which Asaas keeps an event that it could not deliver.
const retention = 14 * 24 * time.Hour

// Penalty is the state of a webhook with events that are held up.
type Penalty struct {
	Webhook *Webhook
	// Interrupted reports that the queue is stopped: nothing is delivered until
	// [Client.Resume].
	Interrupted bool
	// PenalizedRequests is Asaas's count of the requests that it could not deliver. While it
	// is not 0 Asaas pauses between attempts, up to 3 hours:
	// [Client.RemoveBackoff] ends the pause.
	PenalizedRequests int
}

// Penalized lists the webhooks with events that are held up: Asaas pauses between
// attempts, or has stopped the queue. A webhook that is disabled is not listed
// for that: Asaas makes no events for it, so that none waits, and none comes
// later; see Enabled of the webhooks that [Client.Webhooks] lists.
//
// See https://docs.asaas.com/docs/queue-penalty.
func (c *Client) Penalized(ctx context.Context) ([]Penalty, error) {
	var out []Penalty
	for w, err := range c.list(ctx, "Penalized") {
		if err != nil {
			return nil, err
		}
		isCounted := !w.PenalizedRequestsCount.IsZero() || !w.Enabled.Or(true)
		if w.Interrupted.IsZero() || !isCounted { // a field that is missing must not pass for all is well
			return nil, failure{operation{name: "Penalized", id: w.ID}, c.key}.made(CallUnknown, errNotTold.Error(), nil)
		}
		p := Penalty{Webhook: w, Interrupted: w.Interrupted.Or(false), PenalizedRequests: int(w.PenalizedRequestsCount.Or(0))}
		if p.Interrupted || p.PenalizedRequests > 0 {
			out = append(out, p)
		}
	}
	return out, nil
}

// TimeLeft returns how long it takes until Asaas may delete the first of the
// events that wait; 0 if it may have. Asaas keeps them for 14 days from their
// creation, and does not say since when there are some, so it is computed from
// lastCreated: the creation (OccurredAt of [idem.Event]) of the newest event
// that was acknowledged. When it was received is too late, if it had waited.
//
// With SEQUENTIALLY, that is safe: the events that wait were created later. With
// NON_SEQUENTIALLY an older event may wait beside newer ones that were
// delivered: give a time before which every event is known to be acknowledged.
func (p Penalty) TimeLeft(lastCreated time.Time) time.Duration {
	return max(0, time.Until(lastCreated.Add(retention)))
}

// errNotTold is for an answer that lacks the fields to decide by.
var errNotTold = errors.New("the answer does not say whether the queue is held up: see the webhook at Asaas, and what answers at the API's address")
