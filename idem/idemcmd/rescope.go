package idemcmd

import (
	"context"
	"strconv"

	"github.com/paghooks/paghooks/idem/operator"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// rescope moves the rows of one account to another.
func (p *program) rescope(ctx context.Context) error {
	if len(p.operators) != 1 {
		return command.Usage("say whose events to move with -source: there are several sources")
	}
	from, to := p.filter.Scopes[0], operator.Account{Source: p.operators[0].SourceName(), Scope: *p.toAccount}
	if p.toSource != "" {
		to.Source = p.toSource
	}
	return p.carryOut(ctx, act{
		verb: "rescope", asks: "Rescope", what: command.Text("All of account %s would be moved to %s. Every process that receives or processes events of the source\n"+
			"has to be stopped, and its broker drained: what comes later under the old name is a new event.", strconv.Quote(terminal.Clean(from)), terminal.Clean(to.String())),
		choose: func(ctx context.Context, o *operator.Operator) (chosen, error) {
			n, err := o.CountScope(ctx, from)
			return chosen{n: n}, err
		},
		do: func(ctx context.Context, o *operator.Operator, _ chosen) (done, error) {
			if p.dryRun {
				return done{}, nil
			}
			n, err := o.Rescope(ctx, from, to, p.reason)
			if err != nil {
				return done{}, err
			}
			return p.changed(o, command.Text("moved to %s", terminal.Clean(to.String())), n), nil
		},
	})
}
