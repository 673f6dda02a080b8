package idemcmd

import (
	"context"

	"github.com/paghooks/paghooks/idem/operator"
)

func (p *program) requeue(ctx context.Context) error {
	return p.carryOut(ctx, act{
		verb: "requeue", asks: "Requeue", what: "The workers of the inbox would process them again, each in its place in the order of its entity.",
		choose: p.choose,
		do: func(ctx context.Context, o *operator.Operator, c chosen) (done, error) {
			if p.dryRun {
				return done{}, nil
			}
			o.RequeueWithoutWorkers = p.withoutWorkers
			n, err := o.Requeue(ctx, c.filter, p.reason)
			if err != nil {
				return done{}, p.brokenOff(ctx, err)
			}
			return p.changed(o, "requeued for the workers; idem watch shows them go", n), p.sayLeft(ctx, o, c, n, otherState)
		},
	})
}
