package idemcmd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem/operator"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// prune forgets old events, by the application's settings or the flags, and repairs
// the traces of rows that were changed by hand.
func (p *program) prune(ctx context.Context) error {
	for _, o := range p.operators {
		if p.retention > 0 {
			o.Retention, o.AllowProcessingTwice = p.retention, p.allowProcessingTwice
		}
		if p.parkedRetention > 0 {
			o.ParkedRetention = p.parkedRetention
		}
		if p.auditRetention > 0 || p.Receivers == nil { // the prebuilt command does not know the application's
			o.AuditRetention = p.auditRetention
		}
	}
	return p.carryOut(ctx, act{
		verb: "prune", asks: "Prune", what: command.Text("A forgotten event that is delivered again is processed again.\nThe ages: %s.", p.ages()), always: true,
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
		all = append(all, terminal.Clean(o.SourceName())+" "+command.Text("older than %s; parked ones: %s; the audit trail: %s", p.longAge(o.Retention), p.longAge(o.ParkedRetention), p.longAge(o.AuditRetention)))
	}
	return strings.Join(all, "; ")
}

func agesOf(o *operator.Operator) string {
	return fmt.Sprintf("older than %s; parked ones: %s; the audit trail: %s", longAge(o.Retention), longAge(o.ParkedRetention), longAge(o.AuditRetention))
}

// longAge is an age in the reader's language.
func (p *program) longAge(d time.Duration) string {
	if d <= 0 {
		return "never"
	}
	return age(d)
}

func longAge(d time.Duration) string {
	if d <= 0 {
		return "never"
	}
	return age(d)
}
