package idemcmd

import (
	"context"
	"fmt"
	"time"

	"github.com/paghooks/paghooks/idem"
)

// prune forgets old events, by the application's settings or the flags, and repairs
// what changing rows by hand left.
func (p *program) prune(ctx context.Context) error {
	for _, o := range p.operators {
		if p.retention > 0 {
			o.Retention = p.retention
		}
		if p.parkedRetention > 0 {
			o.ParkedRetention = p.parkedRetention
		}
	}
	return p.carryOut(ctx, act{
		verb: "prune", what: "They would be forgotten: one that is delivered again would be processed again.", always: true,
		choose: func(ctx context.Context, o *idem.Operator) (chosen, error) {
			n, err := o.DryPrune(ctx)
			return chosen{n: n}, err
		},
		do: func(ctx context.Context, o *idem.Operator, _ chosen) (result done, err error) {
			if p.dryRun {
				return done{}, nil
			}
			what := fmt.Sprintf("older than %s; parked ones: %s", longAge(o.Retention), longAge(o.ParkedRetention))
			err = o.Record(ctx, "prune", what, p.reason, func(ctx context.Context) (string, error) {
				n, err := o.Prune(ctx)
				if err == nil {
					result = p.changed(o, "forgotten", n)
				}
				return fmt.Sprintf("%d forgotten", n), err
			})
			return result, err
		},
	})
}

func longAge(d time.Duration) string {
	if d <= 0 {
		return "never"
	}
	return age(d)
}
