package idemcmd

import (
	"context"
	"fmt"

	"github.com/paghooks/paghooks/idem/operator"
)

// rescope moves what is stored of one account to another.
func (p *program) rescope(ctx context.Context) error {
	if len(p.operators) != 1 {
		return usage("say whose events to move with -source: there are several sources")
	}
	from, to := p.filter.Scopes[0], operator.Account{Source: p.operators[0].SourceName(), Scope: *p.toAccount}
	if p.toSource != "" {
		to.Source = p.toSource
	}
	return p.carryOut(ctx, act{
		verb: "rescope", what: fmt.Sprintf("All of account %q would be moved to %s. Every process that receives or processes events of the source\n"+
			"has to be stopped, and its spool or broker drained: what comes later under the old name is a new event.", clean(from), clean(to.String())),
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
			return p.changed(o, "moved to "+clean(to.String()), n), nil
		},
	})
}
