package idemcmd

import (
	"context"
	"errors"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

// entity is an idem.Blocked as JSON.
type entity struct {
	Source     string     `json:"source"`
	Scope      string     `json:"scope"`
	Key        string     `json:"key"`
	ID         string     `json:"id"`
	Type       string     `json:"type"`
	State      idem.State `json:"state"`
	LastError  string     `json:"last_error"`
	AgeSeconds int64      `json:"age_seconds"`
	DueAt      time.Time  `json:"due_at,omitzero"`
	Waiting    int64      `json:"waiting"`
}

func (p *program) blocked(ctx context.Context) error {
	t := &terminal.Table{Heads: []string{"AGE", "SOURCE", "ACCOUNT", "ENTITY", "WAITING", "FIRST EVENT", "TYPE", "STATE", p.head("NEXT ATTEMPT"), "ERROR"}}
	found := int64(0)
	for _, o := range p.operators {
		oldest, all, err := o.Blocked(ctx, p.most())
		if err != nil {
			return err
		}
		found += all
		if n := int64(len(oldest)); n < all {
			p.tell("these are the oldest %s of %s blocked entities of %s: -limit 0 prints all", n, all, o.SourceName())
		}
		for _, b := range oldest {
			if p.json {
				err = p.printLine(entity{o.SourceName(), b.Scope, b.Key, b.ID, b.Type, b.State, b.LastError, int64(b.Age / time.Second), b.DueAt.UTC(), b.Waiting})
			}
			if err != nil {
				return err
			}
			t.Add(age(b.Age), p.sourceOf(o), terminal.Clean(b.Scope), terminal.Clean(b.Key), command.Number(b.Waiting), terminal.Clean(b.ID), terminal.Clean(b.Type), string(b.State), p.at(b.DueAt), terminal.Clean(b.LastError))
		}
	}
	switch {
	case found == 0:
		return command.Error(command.Nothing, errors.New("no entity is blocked"))
	case p.json:
		return nil
	}
	return p.printTable(t)
}
