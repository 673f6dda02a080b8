package idemcmd

import (
	"context"
	"fmt"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
)

func (p *program) replay(ctx context.Context) error {
	a := act{
		verb: "replay", choose: p.choose, do: p.replayOf,
		what: "The handler of each would run here, the oldest first, one after the other, each in its own transaction.",
	}
	if p.dryRun {
		a.what = "The handler of each runs here now, and is rolled back."
	}
	return p.carryOut(ctx, a)
}

// replayOf replays events of a source, or tries to.
func (p *program) replayOf(ctx context.Context, o *operator.Operator, c chosen) (done, error) {
	doing, did, run := "replaying ", "replayed", o.Replay
	if p.dryRun {
		doing, did, run = "trying ", "tried, and rolled back", o.DryReplay
	}
	bar := p.newProgress(doing + o.SourceName())
	o.Progress, o.Failed = bar.show, bar.failure
	sum, err := run(ctx, c.filter, p.reason)
	bar.end()
	if err == nil {
		if err := p.sayLeft(ctx, o, c, int64(sum.Done+sum.Failed+sum.Unhandled)); err != nil {
			return done{}, err
		}
		return p.replayed(o, did, sum)
	}
	if !p.dryRun {
		handled := int64(sum.Done + sum.Failed + sum.Unhandled)
		p.say("idem: %s of %s were replayed (%s), the rest is as it was: run it again to go on\n", number(handled), events(c.n), sumText(sum))
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("stopped: %w", context.Cause(ctx))
	}
	return done{}, err
}

// replayed prints what a replay came to. It is an error if an event failed, or if
// none was done.
func (p *program) replayed(o *operator.Operator, did string, sum idem.Replayed) (done, error) {
	if !p.json {
		fmt.Fprintf(p.Stdout, "%s of %s: %s: %s\n", events(sum.Done+sum.Failed+sum.Unhandled), clean(o.SourceName()), did, sumText(sum))
	}
	if sum.Unhandled > 0 {
		p.say("idem: this program has no handler for %s, which stay as they are\n", events(sum.Unhandled))
	}
	d := done{Done: &sum.Done, Failed: &sum.Failed, Unhandled: &sum.Unhandled}
	if sum.Failed > 0 {
		p.say("idem: %s failed, and stay: idem list shows why\n", events(sum.Failed))
	}
	if sum.Failed > 0 || sum.Done == 0 {
		return d, errSaid
	}
	return d, nil
}

func sumText(r idem.Replayed) string {
	return fmt.Sprintf("%s done, %s failed, %s without a handler", number(r.Done), number(r.Failed), number(r.Unhandled))
}
