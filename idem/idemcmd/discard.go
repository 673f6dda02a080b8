package idemcmd

import (
	"context"

	"github.com/paghooks/paghooks/idem/operator"
)

func (p *program) discard(ctx context.Context) error {
	return p.carryOut(ctx, act{
		verb: "discard", asks: "Discard", what: "They would not be processed, and their bodies would be deleted. This cannot be undone.",
		choose: p.choose,
		do: func(ctx context.Context, o *operator.Operator, c chosen) (done, error) {
			if p.dryRun {
				return done{}, nil
			}
			n, err := o.Discard(ctx, c.filter, p.reason)
			if err != nil {
				return done{}, p.brokenOff(ctx, err)
			}
			return p.changed(o, "discarded", n), p.sayLeft(ctx, o, c, n, otherState)
		},
	})
}
