package idemcmd

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// ofPause are the flags that say what is paused.
func ofPause(o *options, f *flag.FlagSet) {
	f.StringVar(&o.paused.Type, "type", "", "only events of this `type`")
	f.StringVar(&o.paused.Key, "entity", "", "only events about this `entity`, a payment's id for example")
}

func forTime(o *options, f *flag.FlagSet) {
	f.Func("for", "for this `time`, such as 2h, at most 7d", command.Duration(&o.pauseFor))
}

// pause has no event begin for a time.
func (p *program) pause(ctx context.Context) error {
	o, err := p.oneSource()
	if err != nil {
		return err
	}
	plan, err := o.PlanPause(ctx, p.paused, p.pauseFor)
	if err != nil {
		return err
	}
	return p.decide(ctx, o, plan, "Pause them?", p.pendingNow(o, plan))
}

// resume ends a pause.
func (p *program) resume(ctx context.Context) error {
	o, err := p.oneSource()
	if err != nil {
		return err
	}
	plan, err := o.PlanResume(ctx, p.paused)
	if err != nil {
		return err
	}
	if err = p.decide(ctx, o, plan, "Resume them?", p.pendingNow(o, plan)); !errors.Is(err, operator.ErrNotPaused) {
		return err
	}
	all, fault := o.Pauses(ctx)
	for _, one := range all {
		p.tell("paused are events %s, until %s, by %s: %s", terminal.Clean(one.String()), p.at(one.Until), terminal.Clean(one.Actor), terminal.Clean(one.Reason))
	}
	return errors.Join(command.Error(command.Nothing, err), fault)
}

// oneSource returns the operator of the source that is meant.
func (p *program) oneSource() (*operator.Operator, error) {
	switch len(p.operators) {
	case 0:
		return nil, fmt.Errorf("%w: no event of it is stored", errNothing)
	case 1:
		return p.operators[0], nil
	}
	return nil, command.Usage("say of which source with -source: there are several")
}

func (p *program) pendingNow(o *operator.Operator, plan *operator.Plan) string {
	return command.Text("%s of %s are pending now.", p.events(plan.Count), terminal.Clean(o.SourceName()))
}

// rerun runs the handler of a done event once more.
func (p *program) rerun(ctx context.Context) error {
	for _, o := range p.operators {
		all, err := find(ctx, o, p.filter.Scopes, p.words[0])
		switch {
		case err != nil:
			return err
		case len(all) > 1:
			return command.Usage("several accounts have such an event: say which one with -account")
		case len(all) == 0:
			continue
		}
		e := all[0].Event
		plan, err := o.PlanRerun(ctx, e.Scope, e.ID)
		if err != nil {
			return err
		}
		return p.decide(ctx, o, plan, "Run it once more?", terminal.Clean(command.Text("%s %s of %s.", e.Type, e.ID, e.Key)))
	}
	return p.nothingOf(ctx, p.words)
}

// decide shows a plan, asks, and carries it out.
func (p *program) decide(ctx context.Context, o *operator.Operator, plan *operator.Plan, question, about string) error {
	if p.dryRun || !p.yes {
		out := p.Stderr
		if p.dryRun {
			out = p.Stdout
		}
		for _, line := range append([]string{about}, plan.Effect...) {
			fmt.Fprintln(out, terminal.Clean(line))
		}
	}
	if p.dryRun {
		return nil
	}
	if !p.yes {
		if err := p.command.Confirm(ctx, question); err != nil {
			return err
		}
	}
	return p.do(ctx, o, plan)
}

// checkPause refuses flags of pause that make no sense.
func (p *program) checkPause() error {
	switch {
	case p.pauseFor <= 0 || p.pauseFor > operator.MaxPause:
		return command.Usage("say with -for how long, 2h for example: 7d at most")
	case p.reason == "":
		return command.Usage("give a -reason: it stays in the audit trail, for the next person")
	}
	return nil
}
