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
	"github.com/paghooks/paghooks/internal/terminal"
)

// wanted is the webhook as the program and the command line want it.
func (p *program) wanted() (webhook.Settings, error) {
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

func (p *program) makePlan(ctx context.Context) (*webhook.Plan, error) {
	want, err := p.wanted()
	if err != nil {
		return nil, err
	}
	return webhook.NewPlan(ctx, p.client, want, p.Dispatcher)
}

// planned is a plan as JSON.
type planned struct {
	ID          string               `json:"id,omitempty"` // absent if there is no webhook, or more than one
	Differences []webhook.Difference `json:"differences"`
	Kept        []asaas.EventType    `json:"kept,omitempty"`
}

func (p *program) printPlan(plan *webhook.Plan) error {
	if !p.json {
		_, err := fmt.Fprintln(p.out, plan)
		return err
	}
	out := planned{Differences: plan.Differences, Kept: plan.Kept}
	if plan.Webhook != nil {
		out.ID = plan.Webhook.ID
	}
	if out.Differences == nil {
		out.Differences = []webhook.Difference{}
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

func (p *program) printApplied(applied webhook.Applied) error {
	if !p.json {
		_, err := fmt.Fprintln(p.out, applied)
		return err
	}
	return p.printLine(struct {
		Did  []string             `json:"did"`
		Next []string             `json:"next"`
		Left []webhook.Difference `json:"left"`
	}{append([]string{}, applied.Did...), append([]string{}, applied.Next...), append([]webhook.Difference{}, applied.Left...)})
}

// subscription is an event type, and whether it comes and is handled.
type subscription struct {
	Type       string `json:"type"`
	Subscribed bool   `json:"subscribed"`
	Handled    *bool  `json:"handled,omitempty"` // nil if it was not asked
}

// events prints the event types of a webhook.
func (p *program) events(ctx context.Context) error {
	handled, err := p.readHandled()
	if err != nil {
		return err
	}
	w, err := p.client.Webhook(ctx, p.id)
	if err != nil {
		return err
	}
	list := compare(w.Events.Or(nil), handled)
	if p.json {
		for _, s := range list {
			err = errors.Join(err, p.printLine(s))
		}
	} else {
		err = p.printEvents(list)
	}
	if err == nil && slices.ContainsFunc(list, subscription.isMissing) {
		return errAttention
	}
	return err
}

// isMissing returns true if the application waits for events that never come.
func (s subscription) isMissing() bool { return !s.Subscribed }

// compare lists the subscribed types, and then the other handled ones. handled is
// nil if that was not asked.
func compare(subscribed []asaas.EventType, handled []string) []subscription {
	out := []subscription{}
	for _, t := range subscribed {
		s := subscription{Type: string(t), Subscribed: true}
		if handled != nil {
			s.Handled = new(slices.Contains(handled, s.Type))
		}
		out = append(out, s)
	}
	for _, t := range handled {
		if !slices.Contains(subscribed, asaas.EventType(t)) {
			out = append(out, subscription{Type: t, Handled: new(true)})
		}
	}
	return out
}

func (p *program) printEvents(list []subscription) error {
	t := &terminal.Table{Heads: []string{"TYPE", "STATE"}}
	for _, s := range list {
		if s.Handled == nil {
			if _, err := fmt.Fprintln(p.out, terminal.Clean(s.Type)); err != nil {
				return err
			}
			continue
		}
		says := ""
		switch {
		case s.isMissing():
			says = "NOT SUBSCRIBED, though handled"
		case *s.Handled:
			says = "subscribed and handled"
		default:
			says = "subscribed, not handled"
		}
		t.Add(terminal.Clean(s.Type), says)
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return t.Print(p.out, p.width, 0)
}

// readHandled reads the event types that the application handles; nil if
// -handled was not given.
func (p *program) readHandled() ([]string, error) {
	if p.handled == "" {
		return nil, nil
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
	return typesIn(string(text))
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
