package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Stop records, and asks the action with this ID to end, whichever process runs it. A replay ends
// after the event that is being processed. A dry replay gives that one up; a requeue, a discard
// and an erase change nothing, unless they are committed by then. The action's record names the person that
// stopped it, and [Operator.Resume] goes on with it.
//
// Stop does not wait for the end: that takes until the event is processed, or two seconds. It
// returns an error if the action has ended, if its process is dead, or if somebody has stopped it.
func (o *Operator) Stop(ctx context.Context, id int64, reason string) error {
	if o.name == "" {
		return errors.New("operator: stop: the operator has no name: give New who it acts for")
	}
	_, err := timed(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, pgtx.Change(ctx, o.Pool(), func(ctx context.Context, tx pgx.Tx) error {
			of, err := store.LockAction(ctx, tx, o.SourceName(), id)
			switch {
			case errors.Is(err, pgx.ErrNoRows):
				return ErrNoAction
			case err != nil:
				return err
			case !of.EndedAt.IsZero() || !of.Alive:
				return ErrNotRunning
			case of.StoppedBy != "":
				return fmt.Errorf("%w: %s has asked for it, and it ends after the event that it is at", ErrStopped, of.StoppedBy)
			}
			if err := store.AskToStop(ctx, tx, id, o.name); err != nil {
				return err
			}
			a := store.Action{Actor: o.name, Action: "stop", Source: o.SourceName(), Filter: fmt.Sprintf("action %d", id), Reason: store.Storable(reason, maxRecorded)}
			own, err := store.BeginAction(ctx, tx, a, nil)
			if err != nil {
				return err
			}
			return store.EndAction(ctx, tx, own, "asked to end")
		})
	})
	if err != nil {
		return fmt.Errorf("operator: stopping action %d: %w", id, store.Explain(err))
	}
	return nil
}

// Errors of [Operator.Stop] and [Operator.Resume].
var (
	ErrNoAction   = errors.New("there is no such action on the events of this source")
	ErrNotRunning = errors.New("the action does not run: it has ended, or its process is dead")
)

// NotReached returns the filter that names the events which the action with this ID chose, and has
// done nothing to, for [Operator.Resume]. Of those that are done by now, it does not choose any.
func (o *Operator) NotReached(ctx context.Context, id int64) (idem.Filter, error) {
	keys, err := timed(ctx, func(ctx context.Context) ([]string, error) {
		return store.NotReached(ctx, o.Pool(), o.SourceName(), id)
	})
	if err != nil {
		return idem.Filter{}, fmt.Errorf("operator: listing the events of action %d: %w", id, store.Explain(err))
	}
	open := []idem.State{idem.StatePending, idem.StateRetrying, idem.StateUnhandled, idem.StateParked}
	return idem.Filter{States: open, Events: append([]string{}, keys...)}, nil
}

// Resume records, and goes on with a replay, dry replay, requeue or discard that was stopped, that
// failed or that a dead process has left: it does the same to the events of f, as a new action. Show the
// events of [Operator.NotReached], and act with the filter that [idem.Common.Choose] returns for that: an event that is done is not
// done again.
//
// The record of the former action is ended, if it is not, in the transaction that begins the new
// one. If its process lives after all, it ends after the event that it is at. The error is
// [ErrRunning] while it gives signs of life, and [ErrContinued] if somebody has gone on with it: of
// two that do it at once, one does.
func (o *Operator) Resume(ctx context.Context, id int64, f idem.Filter, reason string) error {
	of, ok, err := o.GetAction(ctx, id)
	switch {
	case err != nil:
		return err
	case !ok:
		return fmt.Errorf("operator: going on with action %d: %w", id, ErrNoAction)
	}
	again := *o
	again.continues = id
	switch of.Action {
	case "replay":
		_, err = again.Replay(ctx, f, reason)
	case "dry replay":
		_, err = again.DryReplay(ctx, f, reason)
	case "requeue":
		_, err = again.Requeue(ctx, f, reason)
	case "discard":
		_, err = again.Discard(ctx, f, reason)
	default:
		return fmt.Errorf("operator: going on with action %d: it is %q, which nobody can go on with: do it again", id, of.Action)
	}
	return err
}
