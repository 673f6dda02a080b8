package idemcmd

import (
	"context"
	"fmt"
	"time"

	"github.com/paghooks/paghooks/idem"
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
	t := &table{heads: []string{"AGE", "SOURCE", "ACCOUNT", "ENTITY", "WAITING", "FIRST EVENT", "TYPE", "STATE", p.head("NEXT ATTEMPT"), "ERROR"}}
	n := 0
	for _, o := range p.operators {
		all, err := o.Blocked(ctx)
		if err != nil {
			return err
		}
		for _, b := range all {
			n++
			if p.json {
				err = p.printLine(entity{o.SourceName(), b.Scope, b.Key, b.ID, b.Type, b.State, b.LastError, int64(b.Age / time.Second), b.DueAt.UTC(), b.Waiting})
			}
			if err != nil {
				return err
			}
			t.add(age(b.Age), p.sourceOf(o), clean(b.Scope), clean(b.Key), number(b.Waiting), clean(b.ID), clean(b.Type), string(b.State), p.at(b.DueAt), short(b.LastError))
		}
	}
	switch {
	case n == 0:
		return fmt.Errorf("%w: no entity is blocked", errNothing)
	case p.json:
		return nil
	}
	return t.print(p.Stdout)
}
