package queue

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/idem/value"
)

// enable has Asaas make events for a webhook again.
func (p *program) enable(ctx context.Context) error {
	if err := p.attended(); err != nil {
		return err
	}
	w, err := p.client.Webhook(ctx, p.id)
	if e, ok := errors.AsType[*asaas.APIError](err); ok && e.Status == http.StatusNotFound {
		return fmt.Errorf("nothing was changed: %w: if it was deleted, make it again, with ASAAS_WEBHOOK_TOKEN set to its token: "+
			"asaas-queue apply -name NAME -url URL -email ADDRESS -handled FILE, where the file has a line for each event type that has a handler; status lists the webhooks that are left", err)
	}
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if !w.Enabled.Or(true) {
		if err := p.confirm(ctx, w); err != nil {
			return err
		}
		if w, err = p.client.UpdateWebhook(ctx, p.id, asaas.WebhookUpdate{Enabled: value.Of(true)}); err != nil {
			return err
		}
	}
	if err := p.printEnabled(); err != nil {
		return err
	}
	next := "what happened while it was disabled never comes as events: asaas-queue reconcile -since TIME prints it, and charges.Reconcile books it"
	if verb := remedies[stateOf(w)]; verb != "" {
		next = fmt.Sprintf("its queue is %s: asaas-queue recover %s; then %s", stateOf(w), p.id, next)
	}
	if err := p.advise(next); err != nil {
		return err
	}
	return p.owed(ctx)
}

func (p *program) printEnabled() error {
	if p.json {
		return p.printLine(struct {
			ID   string `json:"id"`
			Step string `json:"step"`
		}{p.id, "enabled"})
	}
	_, err := fmt.Fprintln(p.out, "the webhook is enabled")
	return err
}
