package idemcmd

import (
	"context"

	"github.com/paghooks/paghooks/idem/operator"
)

func (p *program) requeue(ctx context.Context) error {
	return p.carryOut(ctx, p.requeueing((*operator.Operator).Requeue))
}

func (p *program) requeueing(requeue changes) act {
	return act{
		verb: "requeue", asks: "Requeue", what: p.text("The workers of the inbox would process them again, each in its place in the order of its entity."),
		choose: p.choose,
		do: func(ctx context.Context, o *operator.Operator, c chosen) (done, error) {
			if p.dryRun {
				return done{}, nil
			}
			o.RequeueWithoutWorkers = p.withoutWorkers
			n, err := requeue(o, ctx, c.filter, p.reason)
			if err != nil {
				return done{}, err
			}
			return p.changed(o, p.text("requeued for the workers; idem watch shows them go"), n), p.sayLeft(ctx, o, c, n, otherState)
		},
	}
}
