package idemcmd

import (
	"context"
	"fmt"

	"github.com/paghooks/paghooks/idem"
)

func (p *program) discard(ctx context.Context) error {
	return p.carryOut(ctx, act{
		verb: "discard", what: "They would not be processed, and their bodies would be deleted. This cannot be undone.",
		count: p.chosen, first: p.first,
		do: func(ctx context.Context, o *idem.Operator, asked int64) (done, error) {
			if p.dryRun {
				return done{}, nil
			}
			if now, err := o.Count(ctx, p.filter); err != nil {
				return done{}, err
			} else if now > asked { // what is discarded is gone
				return done{}, fmt.Errorf("nothing of %s was changed: %s match now, not %s: look again", clean(o.SourceName()), events(now), number(asked))
			}
			n, err := o.Discard(ctx, p.filter, p.reason)
			if err != nil {
				return done{}, err
			}
			return p.changed(o, "discarded", n), nil
		},
	})
}
