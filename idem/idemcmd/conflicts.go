package idemcmd

import (
	"context"
	"errors"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// conflict is an idem.Conflict as JSON.
type conflict struct {
	Source     string     `json:"source"`
	Scope      string     `json:"scope"`
	ID         string     `json:"id"`
	Type       string     `json:"type"`
	Key        string     `json:"key"`
	State      idem.State `json:"state"`
	ConflictAt time.Time  `json:"conflict_at"`
}

// conflicts prints the events that came again with another body.
func (p *program) conflicts(ctx context.Context) error {
	t := &terminal.Table{Heads: []string{p.head("ANOTHER BODY CAME"), "SOURCE", "ACCOUNT", "STATE", "TYPE", "ENTITY", "ID"}}
	found := int64(0)
	for _, o := range p.operators {
		latest, all, err := o.Conflicts(ctx, p.most())
		if err != nil {
			return err
		}
		found += all
		if n := int64(len(latest)); n < all {
			p.tell("these are the latest %s of %s of %s: -limit 0 prints all", n, p.events(all), o.SourceName())
		}
		for _, c := range latest {
			if p.json {
				err = p.printLine(conflict{c.Source, c.Scope, c.ID, c.Type, c.Key, c.State, c.At.UTC()})
			}
			if err != nil {
				return err
			}
			t.Add(p.at(c.At), p.sourceOf(o), terminal.Clean(c.Scope), string(c.State), terminal.Clean(c.Type), terminal.Clean(c.Key), terminal.Clean(c.ID))
		}
	}
	switch {
	case found == 0:
		return command.Error(command.Nothing, errors.New("no event came again with another body"))
	case p.json:
		return nil
	}
	return p.printTable(t)
}
