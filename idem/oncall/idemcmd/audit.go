package idemcmd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/oncall/operator"
	"github.com/paghooks/paghooks/internal/command"
	"github.com/paghooks/paghooks/internal/terminal"
)

func (p *program) audit(ctx context.Context) error {
	if len(p.words) > 0 {
		return p.auditEvents(ctx)
	}
	t := p.table("ACTION", "AT @", "SOURCE", "WHO", "WHAT", "EVENTS", "WHICH", "WHY", "RESULT")
	printed := 0
	for _, o := range p.operators {
		all, err := o.Actions(ctx, 0, p.most())
		if err != nil {
			return err
		}
		printed += len(all)
		for _, a := range all {
			if err := p.auditOne(o, a, t); err != nil {
				return err
			}
		}
	}
	if printed == 0 {
		return command.Error(command.Nothing, errors.New("nobody has done anything by hand"))
	}
	return p.printTable(t)
}

func (p *program) auditOne(o *operator.Operator, a operator.Action, t *terminal.Table) error {
	result := a.Result
	switch {
	case a.Alive:
		result = strings.TrimSuffix("running: "+result, ": ")
	case a.EndedAt.IsZero():
		result = strings.TrimSuffix("its process died: "+result, ": ")
	}
	chosen := ""
	if a.Events > 0 {
		chosen = command.Number(a.Events)
	}
	return p.row(t, a, strconv.FormatInt(a.ID, 10), p.at(a.At), p.sourceOf(o), a.Actor, a.Action, chosen, short(a.Filter), short(a.Reason), result)
}

// auditEvents prints the events of an action, as source/scope/id.
func (p *program) auditEvents(ctx context.Context) error {
	id, err := p.actionID()
	if err != nil {
		return err
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
			if terminal.Clean(key) != key { // which would be another event
				key = quote(key)
			}
			_, err = fmt.Fprintln(p.Stdout, key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// actionID returns the number of an action that was given.
func (p *program) actionID() (int64, error) {
	if len(p.words) == 1 {
		if id, err := strconv.ParseInt(p.words[0], 10, 64); err == nil {
			return id, nil
		}
	}
	return 0, command.Usage("give the number of one action: idem audit prints them")
}

// stop asks an action to end, whichever process runs it.
func (p *program) stop(ctx context.Context) error {
	o, a, err := p.findAction(ctx)
	if err != nil {
		return err
	}
	if err := o.Stop(ctx, a.ID, p.reason); err != nil {
		return err
	}
	if p.json {
		if a, _, err = o.GetAction(ctx, a.ID); err != nil {
			return err
		}
		return p.printLine(a)
	}
	_, err = fmt.Fprintln(p.Stdout, command.Text("action %s, the %s of %s, is asked to end: idem audit shows when it has", strconv.FormatInt(a.ID, 10), a.Action, terminal.Clean(a.Actor)))
	return err
}

// findAction returns the action whose number was given, and the operator of its source.
func (p *program) findAction(ctx context.Context) (*operator.Operator, operator.Action, error) {
	id, err := p.actionID()
	if err != nil {
		return nil, operator.Action{}, err
	}
	for _, o := range p.operators {
		if a, ok, err := o.GetAction(ctx, id); err != nil || ok {
			return o, a, err
		}
	}
	return nil, operator.Action{}, fmt.Errorf("%w: there is no action %d", errNothing, id)
}
