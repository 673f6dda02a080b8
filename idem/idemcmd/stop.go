package idemcmd

import (
	"context"
	"fmt"
	"strconv"

	"github.com/paghooks/paghooks/idem/operator"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// stop asks an action to end, whichever process runs it.
func (p *program) stop(ctx context.Context) error {
	o, a, err := p.findAction(ctx)
	if err != nil {
		return err
	}
	if err := o.Stop(ctx, a.ID, p.reason); err != nil {
		return err
	}
	if p.json {
		if a, _, err = o.GetAction(ctx, a.ID); err != nil {
			return err
		}
		return p.printAction(a)
	}
	_, err = fmt.Fprintln(p.Stdout, command.Text("action %s, the %s of %s, is asked to end: idem audit shows when it has", strconv.FormatInt(a.ID, 10), a.Action, terminal.Clean(a.Actor)))
	return err
}

// findAction returns the action whose number was given, and the operator of its source.
func (p *program) findAction(ctx context.Context) (*operator.Operator, operator.Action, error) {
	id, err := p.actionID()
	if err != nil {
		return nil, operator.Action{}, err
	}
	for _, o := range p.operators {
		if a, ok, err := o.GetAction(ctx, id); err != nil || ok {
			return o, a, err
		}
	}
	return nil, operator.Action{}, fmt.Errorf("%w: there is no action %d", errNothing, id)
}
