package main

import (
	"context"
	"errors"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem"
)

// lookAround asks Asaas and the shop for their state.
func (w *weekend) lookAround(ctx context.Context, client *asaas.Client) error {
	penalized, err := client.Penalized(ctx)
	if err != nil {
		return err
	}
	for _, p := range penalized {
		w.say("on call: Asaas says of the webhook %q: stopped %t, %d failures", p.Webhook.Name.Or(""), p.Interrupted, p.PenalizedRequests)
	}
	failing := idem.Filter{States: []idem.State{idem.StateRetrying}}
	for e, err := range w.shop.version.Load().List(ctx, failing) {
		if err != nil {
			return err
		}
		w.say("on call: the shop says of %s: failed %d times: %s", e.Key, e.Attempts, e.LastError)
	}
	return nil
}

// recover gets the queue going again, if the shop is sound, and replays the events that the shop
// parked.
func (w *weekend) recover(ctx context.Context, client *asaas.Client) error {
	said := ""
	for progress, err := range asaas.Recover(ctx, client, w.webhook, asaas.DryRunProbe(token), w.shop.version.Load()) {
		if err != nil {
			return err
		}
		if now := progress.String(); now != said {
			w.say("on call: %s", now)
			said = now
		}
	}
	return nil
}

// recoverTooEarly does the same while the shop still fails.
func (w *weekend) recoverTooEarly(ctx context.Context, client *asaas.Client) error {
	err := w.recover(ctx, client)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil || !w.Webhook(w.webhook).Interrupted:
		return errors.New("the queue was started while the shop fails")
	}
	w.say("on call: %v", err)
	return nil
}
