package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// PlanRerun plans to run the handler of a done event once more, on purpose: after a bug that a fix cannot find, say.
// It makes a dry run, and returns an error if that fails. What the handler writes and calls takes effect a second
// time; a handler of package charges books nothing, as the event is no newer than its charge.
//
// The event's body must be stored: see [idem.Inbox.KeepPayloads]. Do makes one attempt. The event stays done,
// whatever becomes of it. Do needs a reason.
func (o *Operator) PlanRerun(ctx context.Context, scope, id string) (*Plan, error) {
	l, ok, err := o.Lookup(ctx, scope, id)
	refused := ""
	switch {
	case err != nil:
		return nil, err
	case !ok:
		refused = "no such event is stored"
	case l.State != idem.StateDone:
		refused = fmt.Sprintf("it is %s: replay or requeue it", l.State)
	case l.Payload == nil:
		refused = "its body is not stored, as the receiver's KeepPayloads was not set when it was done"
	}
	if refused != "" {
		return nil, fmt.Errorf("operator: rerun of %s: %s", id, refused)
	}
	if outcome, err := o.Inbox.DryRun(ctx, l.Event); outcome != idem.Done {
		return nil, errors.Join(fmt.Errorf("operator: rerun of %s: a dry run comes to %s, and nothing was changed", id, outcome), err)
	}
	key := store.Event(l.Event).RowKey()
	p := &Plan{Action: "rerun", Did: "run once more", o: o, Count: 1, Filter: idem.Filter{Events: []string{key}}, Effect: []string{
		"It is done since " + l.DoneAt.UTC().Format(time.RFC3339) + ", and stays done. Its handler would run once more: what it writes and calls takes effect a second time.",
		"A handler of asaas/charges books nothing, as the event is no newer than its charge.",
		"A dry run of the handler has just passed.",
	}}
	p.do = func(ctx context.Context, reason string) (r Result, err error) {
		if reason == "" {
			return r, errors.New("operator: rerun: give a reason: it is all that says why the event took effect twice")
		}
		a := store.Action{Actor: o.name, Action: p.Action, Source: o.SourceName(), Filter: strings.TrimSpace(scope + " " + id), Reason: reason}
		err = o.record(ctx, a, p.Filter.Events, func(ctx context.Context, on *acting) (string, error) {
			outcome, err := o.in.Rerun(ctx, l.Event)
			switch outcome {
			case idem.Done:
				on.note(ctx, key, "done")
				r.Acted = 1
				return "1 done", nil
			case idem.Unknown:
				return "whether it took effect is unknown", fmt.Errorf("operator: rerun of %s: whether it took effect is unknown: look before you do it again: %w", id, err)
			}
			on.note(ctx, key, "failed")
			return "it failed, and changed nothing", fmt.Errorf("operator: rerun of %s: it failed, and changed nothing: %w", id, err)
		})
		return r, err
	}
	return p, nil
}
