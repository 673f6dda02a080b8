package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/paghooks/paghooks/asaas"
	"github.com/paghooks/paghooks/asaas/charges"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// find prints the charges of a person, an order or a plan.
func (p *program) find(ctx context.Context) error {
	pool, err := p.charges(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	found, err := charges.Find(ctx, pool, p.id, p.most())
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return command.Error(command.Nothing, errors.New("no charge has this customer, reference, installment plan, subscription or Checkout: if it is a charge's own id, see idem show -entity"))
	}
	p.printCharges(found)
	if p.json {
		return nil
	}
	var next strings.Builder
	next.WriteString("\nthe events of these:\n  idem show")
	for _, c := range found[:min(len(found), 5)] {
		next.WriteString(" -entity " + terminal.Clean(c.ID))
	}
	p.print(next.String())
	return nil
}

// unmatched prints the paid charges that match nothing of the application's.
func (p *program) unmatched(ctx context.Context) error {
	u := p.Unmatched
	if p.known != "" || u == nil {
		if p.known == "" {
			return command.Usage("-known is not given: give the SQL condition of charges.Unmatched that is true for a charge c that the application has a place for")
		}
		pool, err := p.charges(ctx)
		if err != nil {
			return err
		}
		defer pool.Close()
		u = &charges.Unmatched{DB: pool, Known: p.known}
	}
	n, err := u.Count(ctx)
	if err != nil {
		return err
	}
	if n == 0 {
		return command.Error(command.Nothing, errors.New("each paid charge matches something of the application's"))
	}
	found, err := u.List(ctx, p.most())
	if err != nil {
		return err
	}
	p.printCharges(found)
	if more := n - int64(len(found)); more > 0 {
		fmt.Fprintln(p.complaints, command.Text("and %s more: -limit 0 prints all", more))
	}
	return errAttention
}

// filled records that no other program has ever booked a charge of the account.
func (p *program) filled(ctx context.Context) error {
	if err := p.attended(); err != nil {
		return err
	}
	pool, err := p.charges(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	if !p.yes {
		if err := p.command.Confirm(ctx, fmt.Sprintf("Is it certain that no other program has booked a charge of the account %q? What one has booked is booked again.", p.scope)); err != nil {
			return err
		}
	}
	if err := charges.Filled(ctx, pool, p.scope, time.Time{}); err != nil {
		return err
	}
	p.tell(advice{Next: "the events that were parked for it: idem requeue -source asaas -state parked"})
	return nil
}

// most returns -limit, or a number that is larger than any limit.
func (p *program) most() int {
	if p.limit == 0 {
		return 1 << 30
	}
	return p.limit
}

// charge is a row of the charge table, as JSON.
type charge struct {
	Account   string              `json:"account"`
	Charge    string              `json:"charge"`
	Customer  string              `json:"customer"` // "" once it is erased
	Reference string              `json:"external_reference"`
	Created   asaas.Date          `json:"created"`
	Status    asaas.PaymentStatus `json:"status"`
	Deleted   bool                `json:"deleted"`
	Value     asaas.Money         `json:"value"`
	Paid      asaas.Money         `json:"paid"`
	Received  asaas.Money         `json:"received"`
}

func (p *program) printCharges(all []charges.Charge) {
	t := &terminal.Table{Heads: []string{"CREATED", "ACCOUNT", "CHARGE", "STATUS", "VALUE", "PAID", "RECEIVED", "CUSTOMER", "REFERENCE"}}
	for _, c := range all {
		row := charge{c.Scope, c.ID, c.Customer, c.ExternalReference.Or(""), c.Created, c.Status, c.Deleted, c.Value, c.Paid, c.Received}
		if p.json {
			p.printJSON(row)
			continue
		}
		status := strings.ToLower(string(c.Status))
		if c.Deleted {
			status += ", removed"
		}
		t.Add(cmp.Or(string(c.Created), "-"), terminal.Clean(c.Scope), terminal.Clean(c.ID), status, c.Value.String(), c.Paid.String(), c.Received.String(),
			cmp.Or(terminal.Clean(c.Customer), "-"), cmp.Or(terminal.Clean(row.Reference), "-"))
	}
	if !p.json {
		p.printTable(t)
	}
}
