package asaas

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// PlanWebhook compares the webhook at Asaas with the types that the application handles:
// whether it exists, is enabled and not stopped, its URL, order, apiVersion and
// token, and its event types against the handlers of d. It changes nothing.
//
//	plan, err := asaas.PlanWebhook(ctx, client, want, events)
//	fmt.Println(plan)
//	applied, err := plan.Apply(ctx)
//
// The webhook is found by its name and by its URL, in the list of all. Asaas
// promises that neither is unique: if several match, that is the difference, and
// nothing is applied until a person has left one.
//
// An event type that d ignores is neither subscribed to nor removed. One that is
// neither handled nor ignored nor in want.Types is a difference, and its removal
// is for good: events of it are not made any more. A type that this version of the
// module does not know is kept. d may be nil; then want.Types count alone.
//
// The error is an [*APIError] if a call failed. Otherwise it names the mistake in
// the settings.
//
// See https://docs.asaas.com/docs/create-new-webhook-via-api.
func PlanWebhook(ctx context.Context, client *Client, want WebhookSettings, d *Dispatcher) (*WebhookPlan, error) {
	var all []*Webhook
	for w, err := range client.list(ctx, "PlanWebhook") {
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	p, err := planFor(client, all, want, d)
	if err != nil {
		return nil, fmt.Errorf("asaas: PlanWebhook: %w", err)
	}
	return p, nil
}

// planFor makes the plan for all webhooks of an account.
func planFor(client *Client, all []*Webhook, want WebhookSettings, d *Dispatcher) (*WebhookPlan, error) {
	if err := want.check(); err != nil {
		return nil, err
	}
	p := &WebhookPlan{client: client, want: func() WebhookSettings { return want }, dispatcher: d, types: wantedTypes(want, d)}
	if len(p.types) == 0 {
		return nil, errors.New("the application handles no event type, so that the webhook would get none: register the handlers first, or name Types")
	}
	switch found := matching(all, want); len(found) {
	case 0:
		p.add("webhook", false, fmt.Sprintf("the account has no webhook of the name %q or the URL %s: no event comes", p.shown(want.Name), placeOfText(want.URL)))
		p.Differences[0].Repairable = true
	case 1:
		p.take(found[0])
	default:
		p.add("webhook", false, fmt.Sprintf("%d webhooks have this name or this URL: %s: each event may come several times; "+
			"leave one at Asaas, the others' queues go with them", len(found), p.listed(found)))
	}
	return p, nil
}

// wantedTypes are those that the webhook is to get, sorted.
func wantedTypes(want WebhookSettings, d *Dispatcher) []EventType {
	types := make([]EventType, 0, len(want.Types))
	for _, t := range want.Types {
		types = append(types, canonical(t))
	}
	if d != nil {
		for _, t := range d.Types() {
			types = append(types, canonical(EventType(t)))
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// matching are the webhooks of this name or this URL.
func matching(all []*Webhook, want WebhookSettings) (found []*Webhook) {
	for _, w := range all {
		if w.Name.Or("") == want.Name || sameAddress(w.URL.Or(""), want.URL) {
			found = append(found, w)
		}
	}
	return found
}
