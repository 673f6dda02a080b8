package queue

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/internal/command"
)

// wanted is the webhook as the program and the command line want it.
func (p *program) wanted() (asaas.WebhookSettings, error) {
	want := p.Webhook
	want.Name, want.URL, want.Email = cmp.Or(p.webhook, want.Name), cmp.Or(p.url, want.URL), cmp.Or(p.email, want.Email)
	want.Token = cmp.Or(strings.TrimSpace(p.getenv("ASAAS_WEBHOOK_TOKEN")), want.Token)
	types, err := p.readHandled()
	for _, t := range types {
		want.Types = append(want.Types, asaas.EventType(t))
	}
	switch {
	case err != nil:
		return want, err
	case want.Name == "":
		return want, command.Usage("-name is not given: give the webhook's name at Asaas")
	case want.URL == "":
		return want, command.Usage("-url is not given: give the address that Asaas delivers to")
	case p.Dispatcher == nil && len(want.Types) == 0:
		return want, command.Usage("-handled is not given: give a file with the event types that the application handles, one per line")
	}
	return want, nil
}

// plan prints how the webhook at Asaas differs.
func (p *program) plan(ctx context.Context) error {
	plan, err := p.makePlan(ctx)
	if err != nil {
		return err
	}
	if err := p.printPlan(plan); err != nil || !plan.Differs() {
		return err
	}
	return errAttention
}

func (p *program) makePlan(ctx context.Context) (*asaas.WebhookPlan, error) {
	want, err := p.wanted()
	if err != nil {
		return nil, err
	}
	return asaas.PlanWebhook(ctx, p.client, want, p.Dispatcher)
}

// planned is a plan as JSON.
type planned struct {
	ID          string                    `json:"id,omitempty"` // absent if there is no webhook, or more than one
	Differences []asaas.WebhookDifference `json:"differences"`
	Kept        []asaas.EventType         `json:"kept,omitempty"`
}

func (p *program) printPlan(plan *asaas.WebhookPlan) error {
	if !p.json {
		_, err := fmt.Fprintln(p.out, plan)
		return err
	}
	out := planned{Differences: plan.Differences, Kept: plan.Kept}
	if plan.Webhook != nil {
		out.ID = plan.Webhook.ID
	}
	if out.Differences == nil {
		out.Differences = []asaas.WebhookDifference{}
	}
	return p.printLine(out)
}

// apply repairs the differences of the plan, once a person has confirmed it.
func (p *program) apply(ctx context.Context) error {
	if err := p.attended(); err != nil {
		return err
	}
	plan, err := p.makePlan(ctx)
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	if err := p.printPlan(plan); err != nil || !plan.Differs() {
		return err
	}
	if err := p.confirmPlan(ctx); err != nil {
		return err
	}
	applied, err := plan.Apply(ctx)
	if err != nil {
		if len(applied.Did) > 0 {
			fmt.Fprintln(p.complaints, strings.Join(applied.Did, "\n"))
		}
		return err
	}
	if err := p.printApplied(applied); err != nil || len(applied.Left) == 0 {
		return err
	}
	return errAttention
}

func (p *program) confirmPlan(ctx context.Context) error {
	if p.yes {
		return nil
	}
	return p.command.Confirm(ctx, "Repair what apply repairs? Event types that are removed are not made any more.")
}

func (p *program) printApplied(applied asaas.WebhookApplied) error {
	if !p.json {
		_, err := fmt.Fprintln(p.out, applied)
		return err
	}
	return p.printLine(struct {
		Did  []string                  `json:"did"`
		Next []string                  `json:"next"`
		Left []asaas.WebhookDifference `json:"left"`
	}{append([]string{}, applied.Did...), append([]string{}, applied.Next...), append([]asaas.WebhookDifference{}, applied.Left...)})
}
