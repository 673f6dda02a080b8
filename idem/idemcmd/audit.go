package idemcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/operator"
)

// action is an operator.Action as JSON.
type action struct {
	ID      int64     `json:"id"`
	At      time.Time `json:"at"`
	Actor   string    `json:"actor"`
	Action  string    `json:"action"`
	Source  string    `json:"source"`
	Filter  string    `json:"filter"`
	Reason  string    `json:"reason"`
	Events  int64     `json:"events"`
	Result  string    `json:"result"`
	EndedAt time.Time `json:"ended_at,omitzero"`
}

func (p *program) audit(ctx context.Context) error {
	if len(p.words) > 0 {
		return p.auditEvents(ctx)
	}
	t := &table{heads: []string{"ACTION", p.head("AT"), "SOURCE", "WHO", "WHAT", "EVENTS", "WHICH", "WHY", "RESULT"}}
	for _, o := range p.operators {
		for before, printed := int64(0), 0; p.limit == 0 || printed < p.limit; {
			size := perPage
			if p.limit > 0 {
				size = min(size, p.limit-printed)
			}
			all, err := o.Actions(ctx, before, size)
			if err != nil {
				return err
			}
			for _, a := range all {
				if err := p.auditOne(o, a, t); err != nil {
					return err
				}
				before = a.ID
			}
			if printed += len(all); len(all) < size {
				break
			}
		}
	}
	switch {
	case p.json:
		return nil
	case len(t.rows) == 0:
		_, err := fmt.Fprintln(p.Stdout, "Nobody has done anything by hand.")
		return err
	}
	return t.print(p.Stdout)
}

func (p *program) auditOne(o *operator.Operator, a operator.Action, t *table) error {
	if p.json {
		a.At, a.EndedAt = a.At.UTC(), a.EndedAt.UTC()
		return p.printLine(action(a))
	}
	result := a.Result
	if a.EndedAt.IsZero() {
		result = strings.TrimSuffix("running, or its process died: "+result, ": ")
	}
	chosen := ""
	if a.Events > 0 {
		chosen = number(a.Events)
	}
	t.add(strconv.FormatInt(a.ID, 10), p.at(a.At), p.sourceOf(o), clean(a.Actor), clean(a.Action), chosen, short(a.Filter), short(a.Reason), short(result))
	return nil
}

// auditEvents prints the events of an action, as source/scope/id.
func (p *program) auditEvents(ctx context.Context) error {
	id, err := strconv.ParseInt(p.words[0], 10, 64)
	if err != nil || len(p.words) > 1 {
		return usage("give the number of one action: idem audit prints them")
	}
	if len(p.operators) == 0 {
		return errNothing
	}
	keys, err := p.operators[0].ActionEvents(ctx, id)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("%w: there is no action %d", errNothing, id)
	case err != nil:
		return err
	case len(keys) == 0:
		return fmt.Errorf("%w: action %d chose none", errNothing, id)
	}
	for _, key := range keys {
		if p.json {
			err = p.printLine(struct {
				Event string `json:"event"`
			}{key})
		} else {
			_, err = fmt.Fprintln(p.Stdout, cmp.Or(clean(key), key))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
