package idemcmd

import (
	"context"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
)

func (p *program) acknowledge(ctx context.Context) error {
	p.filter.States = []idem.State{idem.StateParked}
	return p.carryOut(ctx, act{
		verb: "acknowledge", asks: "Acknowledge", what: "They would stay parked, and would not make health red any more.",
		choose: p.choose,
		do: func(ctx context.Context, o *operator.Operator, c chosen) (done, error) {
			if p.dryRun {
				return done{}, nil
			}
			n, err := o.Acknowledge(ctx, c.filter, p.reason)
			if err != nil {
				return done{}, err
			}
			return p.changed(o, "acknowledged, still parked", n), p.sayLeft(ctx, o, c, n, notFailed)
		},
	})
}
