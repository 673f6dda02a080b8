package idemcmd

import (
	"context"
	"fmt"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/operator"
	"github.com/paghooks/paghooks/internal/terminal"
)

// manyEvents is the number of rows from which a search by entity is announced.
const manyEvents = 1_000_000

// showEntities prints the events of entities, and why those are not done that are not.
func (p *program) showEntities(ctx context.Context) error {
	t := &terminal.Table{Heads: []string{p.head("RECEIVED"), "SOURCE", "ACCOUNT", "ENTITY", "STATE", "TYPE", "ID", p.head("DONE"), "FAILED", "ERROR"}}
	var open []stuck
	shown := 0
	for _, o := range p.operators {
		if n, err := o.ScanOfKey(ctx); err != nil {
			return err
		} else if n >= manyEvents {
			p.tell("reading about %s, as there is no index by entity: idem help show says how to make one", p.events(n))
		}
		for _, key := range p.filter.Keys {
			all, err := o.OfKey(ctx, p.filter.Scopes, key, p.most())
			if err != nil {
				return err
			}
			if len(all) == p.limit {
				p.tell("these are the latest %s of %s: -limit 0 prints all", p.events(int64(p.limit)), terminal.Clean(key))
			}
			if err := p.addOfEntity(t, o, all); err != nil {
				return err
			}
			shown += len(all)
			open = append(open, firstOpen(o, all)...)
		}
	}
	switch {
	case shown == 0:
		return fmt.Errorf("%w: none ever came, or they were forgotten after the retention, or they are of another -source or -account", errNothing)
	case p.json:
		return nil
	}
	if err := p.printTable(t); err != nil {
		return err
	}
	return p.printStuck(ctx, open)
}

// most is -limit as a number that no entity has.
func (p *program) most() int {
	if p.limit == 0 {
		return 1 << 30
	}
	return p.limit
}

func (p *program) addOfEntity(t *terminal.Table, o *operator.Operator, all []idem.StoredEvent) error {
	for _, s := range all {
		if p.json {
			if err := p.printLine(newEvent(s)); err != nil {
				return err
			}
		}
		entity := ""
		if len(p.filter.Keys) > 1 {
			entity = terminal.Clean(s.Key)
		}
		t.Add(p.at(s.ReceivedAt), p.sourceOf(o), terminal.Clean(s.Scope), entity, string(s.State), terminal.Clean(s.Type), terminal.Clean(s.ID), p.at(s.DoneAt), positive(s.Attempts), terminal.Clean(s.LastError))
	}
	return nil
}

// stuck is an event that is not done.
type stuck struct {
	idem.StoredEvent
	of *operator.Operator
}

// firstOpen returns the first event of each account that is not done: others may wait for it.
func firstOpen(o *operator.Operator, all []idem.StoredEvent) (open []stuck) {
	seen := map[string]bool{}
	for _, s := range all {
		if isOpen(s) && !seen[s.Scope] {
			seen[s.Scope] = true
			open = append(open, stuck{s, o})
		}
	}
	return open
}

// printStuck says why events are not done.
func (p *program) printStuck(ctx context.Context, all []stuck) error {
	for _, s := range all {
		l, ok, err := s.of.Lookup(ctx, s.Scope, s.ID)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		why := terminal.Clean(s.ID) + ": " + terminal.Clean(l.Says("en", p.moment))
		if _, err := fmt.Fprintln(p.Stdout, "\n"+terminal.Wrap(why, p.width, 0)); err != nil {
			return err
		}
	}
	return nil
}
