package idemcmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem/operator"
)

// prune forgets old events, by the application's settings or the flags, and repairs
// what changing rows by hand left.
func (p *program) prune(ctx context.Context) error {
	for _, o := range p.operators {
		if p.retention > 0 {
			o.Retention, o.AllowProcessingTwice = p.retention, p.allowProcessingTwice
		}
		if p.parkedRetention > 0 {
			o.ParkedRetention = p.parkedRetention
		}
	}
	return p.carryOut(ctx, act{
		verb: "prune", what: "They would be forgotten: one that is delivered again would be processed again.\nThe ages: " + p.ages() + ".", always: true,
		choose: func(ctx context.Context, o *operator.Operator) (chosen, error) {
			n, err := o.DryPrune(ctx)
			return chosen{n: n}, err
		},
		do: func(ctx context.Context, o *operator.Operator, _ chosen) (result done, err error) {
			if p.dryRun {
				return done{}, nil
			}
			err = o.Record(ctx, "prune", agesOf(o), p.reason, func(ctx context.Context) (string, error) {
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

// ages are those from which events are forgotten, by the source.
func (p *program) ages() string {
	var all []string
	for _, o := range p.operators {
		all = append(all, clean(o.SourceName())+" "+agesOf(o))
	}
	return strings.Join(all, "; ")
}

func agesOf(o *operator.Operator) string {
	return fmt.Sprintf("older than %s; parked ones: %s", longAge(o.Retention), longAge(o.ParkedRetention))
}

func longAge(d time.Duration) string {
	if d <= 0 {
		return "never"
	}
	return age(d)
}
