package idemcmd

import (
	"context"
	"slices"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
	"github.com/paghooks/paghooks/internal/terminal"
)

// erase deletes all that is stored of events beyond the fact that they came.
func (p *program) erase(ctx context.Context) error {
	what := "Their bodies, errors and traces would be deleted. This cannot be undone."
	if p.eraseOpen {
		what = "Their bodies, errors and traces would be deleted, and those that are not done would not be processed. This cannot be undone."
	}
	return p.carryOut(ctx, act{
		verb: "erase", asks: "Erase",
		what:   what + "\n" + "Not reached: brokers, an outbox's messages under other names, logs, backups: see docs/private-data.md.",
		choose: p.chooseToErase,
		do: func(ctx context.Context, o *operator.Operator, c chosen) (done, error) {
			if p.dryRun {
				return done{}, p.sayNotDone(c.events)
			}
			o.EraseNotDone = p.eraseOpen
			erased, err := o.Erase(ctx, c.events, p.reason)
			if err != nil {
				return done{}, p.brokenOff(ctx, err)
			}
			return p.changed(o, "erased", erased.Events), p.sayKept(o, erased)
		},
	})
}

// chooseToErase returns the events that are named, or that are about an entity, in any of
// their states.
func (p *program) chooseToErase(ctx context.Context, o *operator.Operator) (c chosen, err error) {
	add := func(s idem.StoredEvent) {
		if !slices.ContainsFunc(c.events, func(other idem.StoredEvent) bool { return other.Scope == s.Scope && other.ID == s.ID }) {
			c.events = append(c.events, s)
		}
	}
	for _, id := range p.filter.IDs {
		all, err := find(ctx, o, p.filter.Scopes, id)
		if err != nil {
			return c, err
		}
		for _, s := range all {
			p.matched = append(p.matched, id)
			add(s)
		}
	}
	for _, key := range p.filter.Keys {
		all, err := o.OfKey(ctx, p.filter.Scopes, key, p.most())
		if err != nil {
			return c, err
		}
		for _, s := range all {
			add(s)
		}
	}
	c.n = int64(len(c.events))
	return c, nil
}

// sayNotDone names the events that would be left alone.
func (p *program) sayNotDone(all []idem.StoredEvent) error {
	open := int64(0)
	for _, s := range all {
		if isOpen(s) {
			open++
		}
	}
	if open == 0 || p.eraseOpen {
		return nil
	}
	p.tell("%s would be left alone: not done; -discard gives them up and erases them", p.events(open))
	return errSaid
}

// sayKept names the events that were left alone.
func (p *program) sayKept(o *operator.Operator, e operator.Erased) error {
	if e.NotDone > 0 {
		p.tell("%s of %s left alone: not done; process them, or give -discard, which gives them up and erases them", p.events(e.NotDone), terminal.Clean(o.SourceName()))
	}
	if e.Busy > 0 {
		p.tell("%s of %s left alone: being processed or changed; run it again in a moment", p.events(e.Busy), terminal.Clean(o.SourceName()))
	}
	if e.NotDone+e.Busy > 0 {
		return errSaid
	}
	return nil
}
