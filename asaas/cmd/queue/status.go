package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/internal/terminal"
)

// overview is the output of status as JSON.
type overview struct {
	Webhooks []row  `json:"webhooks"`
	Owed     []debt `json:"owed"` // null if that is not known

	// The differences that keep events away from the application's webhook; absent where that is not named.
	Differences []asaas.WebhookDifference `json:"differences,omitempty"`
}

// status prints all webhooks, and the events that the application owes.
func (p *program) status(ctx context.Context) error {
	rows := []row{}
	attention := false
	for w, err := range p.client.Webhooks(ctx) {
		if err != nil {
			return err
		}
		r := newRow(w, p.lastEvent)
		rows, attention = append(rows, r), attention || r.State.isHeldUp() || !r.Enabled
	}
	debts, known, err := p.debts(ctx)
	if err != nil {
		return err
	}
	lost, err := p.losses(ctx)
	if err != nil {
		return err
	}
	if p.json {
		err = p.printLine(overview{rows, debts, lost})
	} else {
		err = errors.Join(p.printTable(rows), p.printLosses(lost), p.printOwed(debts, known))
	}
	if err == nil && (attention || len(debts) > 0 || len(lost) > 0) {
		return errAttention
	}
	return err
}

// losses returns the differences that keep events away from the application's webhook, where a
// flag or the program names it.
func (p *program) losses(ctx context.Context) (lost []asaas.WebhookDifference, err error) {
	flags := p.webhook != "" || p.url != "" || p.handled != ""
	if !flags && (p.Dispatcher == nil || p.Webhook.Name == "" || p.Webhook.URL == "") {
		return nil, nil
	}
	plan, err := p.makePlan(ctx)
	if err != nil {
		return nil, err
	}
	for _, d := range plan.Differences {
		if d.LosesEvents {
			lost = append(lost, d)
		}
	}
	return lost, nil
}

func (p *program) printLosses(lost []asaas.WebhookDifference) error {
	for _, d := range lost {
		if _, err := fmt.Fprintf(p.out, "%s\n", terminal.Clean(d.Text)); err != nil {
			return err
		}
	}
	return nil
}

func (p *program) printTable(rows []row) error {
	t := &terminal.Table{Heads: []string{"ID", "NAME", "URL", "STATE", "PENALIZED", "TIME LEFT"}}
	for _, r := range rows {
		t.Add(terminal.Clean(r.ID), terminal.Clean(r.Name), terminal.Clean(r.URL), p.words(r), strconv.Itoa(r.Penalized), p.timeLeft(r))
	}
	if len(rows) > 0 {
		return t.Print(p.out, p.width, 0)
	}
	_, err := fmt.Fprintln(p.out, "The account has no webhooks.")
	return err
}

// timeLeft is in days and hours, rounded down.
func (p *program) timeLeft(r row) string {
	switch {
	case !r.State.isHeldUp():
		return "-"
	case r.SecondsLeft == nil:
		return "give -last-event"
	case *r.SecondsLeft == 0:
		return "none, events may be deleted"
	}
	hours := *r.SecondsLeft / 3600
	return fmt.Sprintf("%dd %dh", hours/24, hours%24)
}
