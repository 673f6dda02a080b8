package operator

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Stop records, and asks the action with this ID to end, whichever process runs it. A replay ends
// after the event that is being processed. A dry replay gives that one up; a requeue, a discard
// and an erase change nothing, unless they are committed by then. The action's record names the person that
// stopped it.
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

// Errors of [Operator.Stop].
var (
	ErrNoAction   = errors.New("there is no such action on the events of this source")
	ErrNotRunning = errors.New("the action does not run: it has ended, or its process is dead")
)
