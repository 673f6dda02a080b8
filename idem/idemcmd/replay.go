package idemcmd

import (
	"context"
	"fmt"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

func (p *program) replay(ctx context.Context) error {
	a := act{
		verb: "replay", asks: "Replay", choose: p.choose, do: p.replayOf,
		what: "The handler of each would run here, the oldest first, one after the other, each in its own transaction.",
	}
	if p.dryRun {
		a.what = "The handler of each runs here now, and is rolled back."
	}
	return p.carryOut(ctx, a)
}

// replayOf replays events of a source, or tries to.
func (p *program) replayOf(ctx context.Context, o *operator.Operator, c chosen) (done, error) {
	doing, did, run := command.Text("replaying %s", o.SourceName()), "replayed", o.Replay
	if p.dryRun {
		doing, did, run = command.Text("trying %s", o.SourceName()), "tried, and rolled back", o.DryReplay
	}
	bar := p.newProgress(doing)
	o.Progress, o.Failed = bar.show, bar.failure
	sum, err := run(ctx, c.filter, p.reason)
	bar.end()
	if err == nil {
		if err := p.sayLeft(ctx, o, c, int64(sum.Done+sum.Failed+sum.Unhandled), otherState); err != nil {
			return done{}, err
		}
		return p.replayed(o, did, sum)
	}
	if !p.dryRun {
		handled := int64(sum.Done + sum.Failed + sum.Unhandled)
		p.tell("%s of %s were replayed (%s), the rest is as it was: run it again to go on", handled, p.events(c.n), p.sum(sum))
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("stopped: %w", context.Cause(ctx))
	}
	return done{}, err
}

// replayed prints the result of a replay. It is an error if an event failed, or if
// none was done.
func (p *program) replayed(o *operator.Operator, did string, sum idem.Replayed) (done, error) {
	if !p.json {
		fmt.Fprintln(p.Stdout, command.Text("%s of %s: %s", p.events(int64(sum.Done+sum.Failed+sum.Unhandled)), terminal.Clean(o.SourceName()), did)+": "+p.sum(sum))
	}
	if sum.Unhandled > 0 {
		p.tell("this program has no handler for %s, which stay as they are", p.events(int64(sum.Unhandled)))
	}
	p.sayOvertaken(sum)
	d := done{Done: &sum.Done, Failed: &sum.Failed, Unhandled: &sum.Unhandled}
	for _, o := range sum.Overtaken {
		d.Overtaken = append(d.Overtaken, overtaken{o.Event.Scope, o.Event.ID, o.Event.Type, o.By.ID, o.By.Type})
	}
	if sum.Failed > 0 {
		p.tell("%s failed, and stay: idem list shows why", p.events(int64(sum.Failed)))
	}
	if sum.Failed > 0 || sum.Done == 0 {
		return d, errSaid
	}
	return d, nil
}

// shownOvertaken is the number of names that are printed of events that ran behind later ones.
const shownOvertaken = 20

// sayOvertaken names the events that ran, or would run, behind later ones of their entities.
func (p *program) sayOvertaken(sum idem.Replayed) {
	if len(sum.Overtaken) == 0 {
		return
	}
	p.tell("%s behind later ones of the same entity, which were done before: see that what the handler did is right", p.events(int64(len(sum.Overtaken))))
	for n, o := range sum.Overtaken {
		if n == shownOvertaken {
			p.say("  %s\n", command.Text("and %s more", len(sum.Overtaken)-n))
			return
		}
		p.say("  %s\n", terminal.Clean(command.Text("%s (%s) behind %s (%s)", o.Event.ID, o.Event.Type, o.By.ID, o.By.Type)))
	}
}

func (p *program) sum(r idem.Replayed) string {
	return command.Text("%s done, %s failed, %s without a handler", r.Done, r.Failed, r.Unhandled)
}
