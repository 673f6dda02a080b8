package idemcmd

import (
	"context"
	"fmt"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
	"github.com/paghooks/paghooks/internal/command"
)

// resume goes on with an action that has not reached all of its events.
func (p *program) resume(ctx context.Context) error {
	o, of, err := p.findAction(ctx)
	switch {
	case err != nil:
		return err
	case of.Alive:
		return fmt.Errorf("action %d is running: wait for its end, or end it with idem stop %[1]d", of.ID)
	case of.ContinuedBy != 0:
		return fmt.Errorf("somebody has gone on with action %d: see action %d of idem audit", of.ID, of.ContinuedBy)
	}
	onlyLooks := p.dryRun
	p.dryRun = of.Action == "dry replay" && !onlyLooks
	a, err := p.resuming(of)
	if err != nil {
		return err
	}
	if p.filter, err = o.NotReached(ctx, of.ID); err != nil {
		return err
	}
	a.verb, a.choose = "resume", func(ctx context.Context, o *operator.Operator) (chosen, error) {
		c, err := p.choose(ctx, o)
		if err == nil && c.n == 0 {
			err = fmt.Errorf("%w: action %d has left no event that is not done", errNothing, of.ID)
		}
		return c, err
	}
	if onlyLooks {
		p.dryRun, a.do = true, func(context.Context, *operator.Operator, chosen) (done, error) { return done{}, nil }
	}
	p.operators = []*operator.Operator{o}
	return p.carryOut(ctx, a)
}

// resuming returns the act of the verb that an action was begun with, which goes on with it.
func (p *program) resuming(of operator.Action) (act, error) {
	changes := func(o *operator.Operator, ctx context.Context, f idem.Filter, reason string) (int64, error) {
		if err := o.Resume(ctx, of.ID, f, reason); err != nil {
			return 0, err
		}
		old, _, err := o.GetAction(ctx, of.ID)
		if err != nil {
			return 0, err
		}
		again, _, err := o.GetAction(ctx, old.ContinuedBy)
		return again.Events, err
	}
	switch of.Action {
	case "replay", "dry replay":
		if p.Receivers == nil {
			return act{}, noHandlers()
		}
		return p.replaying(func(o *operator.Operator, ctx context.Context, f idem.Filter, reason string) (sum idem.Replayed, err error) {
			show := o.Progress
			o.Progress = func(until idem.Replayed, of int) {
				sum = until
				show(until, of)
			}
			err = o.Resume(ctx, of.ID, f, reason)
			return sum, err
		}), nil
	case "requeue":
		return p.requeueing(changes), nil
	case "discard":
		return p.discarding(changes), nil
	}
	return act{}, fmt.Errorf("action %d is %q, which nobody can go on with: do it again", of.ID, of.Action)
}

// noHandlers is the error of a program that cannot replay.
func noHandlers() error {
	return command.Usage("this program has no handlers, so it cannot replay events. Where an inbox runs: idem requeue, and its workers process them. " +
		"Else build the ten-line program with your handlers: see https://pkg.go.dev/github.com/paghooks/paghooks/idem/idemcmd")
}
