package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/webhook"
	"github.com/paghooks/paghooks/internal/command"
)

// wanted is the webhook as the program and the command line want it.
func (p *program) wanted() (webhook.Settings, error) {
	want := p.settings()
	want.Name, want.URL, want.Email = cmp.Or(p.webhook, want.Name), cmp.Or(p.url, want.URL), cmp.Or(p.email, want.Email)
	want.URL = p.listed.in(want.URL)
	want.Token = cmp.Or(p.token(), want.Token)
	want.NoPixAutomatic = want.NoPixAutomatic || p.noPix
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
	p.tell(planOf(plan))
	if plan.Differs() {
		return errAttention
	}
	return nil
}

func (p *program) makePlan(ctx context.Context) (*webhook.Plan, error) {
	want, err := p.wanted()
	if err != nil {
		return nil, err
	}
	return webhook.NewPlan(ctx, p.client, want, p.Dispatcher)
}

// planned is a plan as it is printed.
type planned struct {
	ID string `json:"id,omitempty"` // absent if there is no webhook, or more than one
	*webhook.Plan
}

func planOf(plan *webhook.Plan) planned {
	if plan.Webhook == nil {
		return planned{"", plan}
	}
	return planned{plan.Webhook.ID, plan}
}

// apply repairs the differences of the plan, once a person has confirmed it.
func (p *program) apply(ctx context.Context) error {
	if err := p.attended(); err != nil {
		return err
	}
	plan, err := p.propose(ctx, "Repair what apply repairs? Event types that are removed are not made any more.")
	if err != nil || !plan.Differs() {
		return err
	}
	applied, err := plan.Apply(ctx)
	if refused, ok := errors.AsType[*webhook.TypesError](err); ok && !p.yes {
		fmt.Fprintln(p.complaints, p.explain(refused))
		p.noPix = true
		plan, err = p.propose(ctx, "Apply it without these types? Their events never come.")
		if err != nil || !plan.Differs() {
			return err
		}
		applied, err = plan.Apply(ctx)
	}
	if err != nil {
		for _, did := range applied.Did {
			fmt.Fprintln(p.complaints, did)
		}
		return err
	}
	p.tell(applied)
	if len(applied.Left) > 0 {
		return errAttention
	}
	return nil
}

// propose makes a plan, prints it, and asks whether to apply it if it differs.
func (p *program) propose(ctx context.Context, question string) (*webhook.Plan, error) {
	plan, err := p.makePlan(ctx)
	if err != nil {
		return nil, fmt.Errorf("nothing was changed: %w", err)
	}
	p.tell(planOf(plan))
	if plan.Differs() && !p.yes {
		err = p.command.Confirm(ctx, question)
	}
	return plan, err
}

// readHandled reads the event types that the application handles; nil if
// -handled was not given.
func (p *program) readHandled() ([]string, error) {
	if p.handled == "" || p.types != nil {
		return p.types, nil
	}
	if strings.Contains(p.handled, "_") && !strings.ContainsFunc(p.handled, func(r rune) bool { return r != ',' && isNotOfAType(r) }) {
		p.types, _ = typesIn(p.handled) // it has one
		return p.types, nil
	}
	in := p.in
	if p.handled != "-" {
		f, err := os.Open(p.handled)
		if err != nil {
			return nil, command.Usage("-handled: %w", err)
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, 1<<20))
	if err != nil {
		return nil, command.Usage("-handled: %w", err)
	}
	p.types, err = typesIn(string(text))
	return p.types, err
}

// typesIn reads event types, one per line, as fmt prints a slice, or as JSON.
func typesIn(text string) ([]string, error) {
	types := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n,[]\"", r) })
	for _, t := range types {
		if strings.ContainsFunc(t, isNotOfAType) {
			return nil, command.Usage("-handled: %q is no event type such as PAYMENT_RECEIVED: give one per line", t)
		}
	}
	if len(types) == 0 {
		return nil, command.Usage("-handled: there is no event type in it: write those that the application handles, one per line")
	}
	slices.Sort(types)
	return slices.Compact(types), nil
}

func isNotOfAType(r rune) bool {
	return r != '_' && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
}
