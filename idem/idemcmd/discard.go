package idemcmd

import (
	"context"

	"github.com/paghooks/paghooks/idem/operator"
)

func (p *program) discard(ctx context.Context) error {
	return p.carryOut(ctx, p.discarding((*operator.Operator).Discard))
}

func (p *program) discarding(discard changes) act {
	return act{
		verb: "discard", asks: "Discard", what: p.text("They would not be processed, and their bodies would be deleted. This cannot be undone."),
		choose: p.choose,
		do: func(ctx context.Context, o *operator.Operator, c chosen) (done, error) {
			if p.dryRun {
				return done{}, nil
			}
			n, err := discard(o, ctx, c.filter, p.reason)
			if err != nil {
				return done{}, err
			}
			return p.changed(o, p.text("discarded"), n), p.sayLeft(ctx, o, c, n, otherState)
		},
	}
}
