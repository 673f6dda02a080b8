package operator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Action is an entry of the audit trail: see [Operator].
type Action struct {
	ID      int64     `json:"id"`
	At      time.Time `json:"at"`
	Actor   string    `json:"actor"`  // the person
	Action  string    `json:"action"` // "replay", "dry replay", "requeue", "discard", "acknowledge", "unacknowledge", "rerun", "pause", "resume", "erase", "rescope", "import", "stop"; others by [Operator.Record]
	Source  string    `json:"source"`
	Filter  string    `json:"filter"`            // which events were chosen, as people read it; its first 2,000 bytes
	Reason  string    `json:"reason"`            // the same
	Events  int64     `json:"events"`            // how many were chosen; of a requeue, discard or erase that has ended, how many it changed
	Result  string    `json:"result"`            // of a replay that has not ended, how far it is
	EndedAt time.Time `json:"ended_at,omitzero"` // zero while it runs, and if its process died

	Alive     bool   `json:"alive,omitempty"`      // it has not ended, and its process has given a sign of life within 12 seconds
	StoppedBy string `json:"stopped_by,omitempty"` // the person that asked it to end: see [Operator.Stop]; "" for none
}

// Actions returns up to n actions on the source's events from the audit trail, the
// latest first: those before the action whose ID is before, or the latest of all if
// before is 0.
func (o *Operator) Actions(ctx context.Context, before int64, n int) ([]Action, error) {
	rows, err := query(ctx, o, "listing actions", func(ctx context.Context, db *pgxpool.Pool) ([]store.Action, error) {
		return store.ListActions(ctx, db, o.SourceName(), before, n)
	})
	return each(rows, func(a store.Action) Action { return Action(a) }), err
}

// GetAction returns the action with this ID. ok is false if there is none on the source's events.
func (o *Operator) GetAction(ctx context.Context, id int64) (a Action, ok bool, err error) {
	row, err := query(ctx, o, fmt.Sprintf("reading action %d", id), func(ctx context.Context, db *pgxpool.Pool) (store.Action, error) {
		return store.GetAction(ctx, db, o.SourceName(), id)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return a, false, nil
	}
	return Action(row), err == nil, err
}

// LastAction returns the latest entry of an action on what, as [Operator.Record] and [Operator.RecordOnce] were given
// them. ok is false if there is none.
func (o *Operator) LastAction(ctx context.Context, action, what string) (a Action, ok bool, err error) {
	row, err := query(ctx, o, "reading the last "+action, func(ctx context.Context, db *pgxpool.Pool) (store.Action, error) {
		return store.LastAction(ctx, db, store.Action{Action: action, Source: o.SourceName(), Filter: store.Storable(what, maxRecorded)})
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return a, false, nil
	}
	return Action(row), err == nil, err
}

// ActionEvents returns the row keys of the events that the action with this ID chose or, if it is
// a requeue or discard that has ended, changed: source/scope/id with the scope
// percent-encoded.
func (o *Operator) ActionEvents(ctx context.Context, id int64) ([]string, error) {
	return query(ctx, o, fmt.Sprintf("listing the events of action %d", id), func(ctx context.Context, db *pgxpool.Pool) ([]string, error) {
		return store.ActionEvents(ctx, db, id)
	})
}

// Outcome is the result of an action on one event.
type Outcome struct {
	Event  string    // its row key
	Result string    // "done", "failed", "unhandled" or "left" (alone) of a replay; "requeued", "discarded", "erased", "acknowledged", "unacknowledged", "imported"; "" for nothing yet
	At     time.Time // zero for nothing yet
}

// Outcomes returns up to n events of the action with this ID, and of the events that a replay processed behind
// them, each with its outcome. Failed events come first, then those without an outcome, then the others.
//
// If a process dies between the commit of an event and that of its outcome, the event is done and has no
// outcome.
func (o *Operator) Outcomes(ctx context.Context, id int64, n int) ([]Outcome, error) {
	rows, err := query(ctx, o, fmt.Sprintf("listing the events of action %d", id), func(ctx context.Context, db *pgxpool.Pool) ([]store.Outcome, error) {
		return store.ListOutcomes(ctx, db, id, n)
	})
	return each(rows, func(r store.Outcome) Outcome { return Outcome(r) }), err
}

// ActionOn is an action with its outcome for one event.
type ActionOn struct {
	Action
	Outcome string    // see [Outcome.Result]
	DoneAt  time.Time // when
}

// ActionsOn returns the last n actions that have done something to an event, the latest first.
func (o *Operator) ActionsOn(ctx context.Context, scope, id string, n int) ([]ActionOn, error) {
	key := store.Event{Source: o.SourceName(), Scope: scope, ID: id}.RowKey()
	rows, err := query(ctx, o, "listing the actions on an event", func(ctx context.Context, db *pgxpool.Pool) ([]store.Touched, error) {
		return store.ListTouched(ctx, db, key, n)
	})
	return each(rows, func(r store.Touched) ActionOn {
		return ActionOn{Action: Action(r.Action), Outcome: r.Outcome.Result, DoneAt: r.Outcome.At}
	}), err
}

// Stop records, and asks the action with this ID to end, whichever process runs it. A replay ends after the
// event that is being processed. A dry replay gives that event up. A requeue, a discard and an erase change
// nothing, unless they are committed by then. The action's entry names the person that stopped it.
//
// Stop does not wait for the end, which takes until the event is processed, or two seconds. It returns an
// error if the action has ended, if its process is dead, or if it was stopped before.
func (o *Operator) Stop(ctx context.Context, id int64, reason string) error {
	if o.name == "" {
		return errors.New("operator: stop: the operator has no name: give New who it acts for")
	}
	_, err := query(ctx, o, fmt.Sprintf("stopping action %d", id), func(ctx context.Context, db *pgxpool.Pool) (struct{}, error) {
		return struct{}{}, pgtx.Change(ctx, db, func(ctx context.Context, tx pgx.Tx) error {
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
	return err
}

// Errors of [Operator.Stop].
var (
	ErrNoAction   = errors.New("there is no such action on the events of this source")
	ErrNotRunning = errors.New("the action does not run: it has ended, or its process is dead")
)
