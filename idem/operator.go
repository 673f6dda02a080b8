package idem

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// Operator runs the operations of [Common] and [Inbox.Requeue] for a person, and
// records them in the audit trail: who did what to which events, why, and with what
// result. Its methods that take a reason are recorded; those that it has from Common
// are not.
//
// An action is recorded before it begins, and is not begun if that fails. Its result
// is recorded when it has ended: an action without an end is still running, or its
// process died. While a replay runs, its record says every second how far it is. A
// requeue and a discard record the events that they change in the transaction that
// changes them.
//
// What a person confirms must be what is acted upon: show the events of
// [Common.Choose], and act with the filter that it returns.
type Operator struct {
	*Common

	// Progress, when set, is called after each event of a replay or dry replay, with
	// the sum so far and the number of events that were chosen.
	Progress func(sum Replayed, of int)

	// Failed, when set, is called for each event that a replay or dry replay fails to
	// process, before Progress, with the reason.
	Failed func(e Event, err error)

	// RequeueWithoutWorkers has Requeue leave events to workers although none are alive:
	// set it where they run from time to time only, with [Inbox.Drain]. Default: false.
	RequeueWithoutWorkers bool

	name    string
	workers requeuer // nil if the receiver has none
}

// requeuer is an Inbox or an Outbox.
type requeuer interface {
	requeueAll(ctx context.Context, keys, states []string, record recordChange) (int64, error)
}

// NewOperator returns an operator for the events of a receiver. name is the person
// that it acts for, as the audit trail shows them; if it is "", what would be
// recorded returns an error instead.
func NewOperator(r Receiver, name string) *Operator {
	workers, _ := r.(requeuer)
	return &Operator{Common: r.common(), name: name, workers: workers}
}

// Action is an entry of the audit trail: see [Operator].
type Action struct {
	ID      int64
	At      time.Time
	Actor   string // who
	Action  string // "replay", "dry replay", "requeue", "discard"; others by [Operator.Record]
	Source  string
	Filter  string    // which events were chosen, as people read it; its first 2,000 bytes
	Reason  string    // the same
	Events  int64     // how many were chosen; of a requeue or discard that has ended, how many it changed
	Result  string    // of a replay that has not ended, how far it is
	EndedAt time.Time // zero while it runs, and if its process died
}

// Replay records and runs [Common.Replay].
func (o *Operator) Replay(ctx context.Context, f Filter, reason string) (Replayed, error) {
	return o.runRecorded(ctx, "replay", f, reason, o.replay, o.goThroughLanes)
}

// DryReplay records and runs [Common.DryReplay].
func (o *Operator) DryReplay(ctx context.Context, f Filter, reason string) (Replayed, error) {
	return o.runRecorded(ctx, "dry replay", f, reason, o.dryReplay, nil)
}

// runRecorded records and runs a replay or dry replay. Its result has the reason of the
// first failure.
func (o *Operator) runRecorded(
	ctx context.Context, action string, f Filter, reason string, run func(context.Context, StoredEvent) (Outcome, error),
	goOn func(context.Context, Replayed, func(Replayed, Event, error)) (Replayed, error), // nil if nothing follows
) (sum Replayed, err error) {
	err = o.act(ctx, action, f, reason, func(ctx context.Context, id int64, keys []string) (string, error) {
		var left, first string
		note := o.notes(ctx, id, len(keys))
		ran := func(sum Replayed, e Event, failure error) {
			if failure != nil && first == "" {
				first = fmt.Sprintf("; first failure: %s %s: %v", e.Type, e.ID, failure)
			}
			o.ran(sum, len(keys), e, failure)
			note(sum)
		}
		sum, err = o.runKeys(ctx, keys, Replayed{}, run, ran)
		if err == nil {
			left = leftAlone(f, keys, sum.Done+sum.Failed+sum.Unhandled)
		}
		if err == nil && goOn != nil {
			sum, err = goOn(ctx, sum, ran)
		}
		return sum.text() + left + first, err
	})
	return sum, err
}

// ran tells the application of an event that was replayed.
func (o *Operator) ran(sum Replayed, of int, e Event, failure error) {
	if o.Failed != nil && failure != nil {
		o.Failed(e, failure)
	}
	if o.Progress != nil {
		o.Progress(sum, of)
	}
}

// Requeue records and runs [Inbox.Requeue]. It returns an error for a [Processor],
// which has no workers, and where no workers of the source are alive in any process:
// what is requeued would wait, and the provider's next delivery of it would be a
// duplicate.
func (o *Operator) Requeue(ctx context.Context, f Filter, reason string) (n int64, err error) {
	if o.workers == nil {
		return 0, errors.New("idem: requeueing events: a Processor has no workers: replay them")
	}
	if err := o.findWorkers(ctx); err != nil {
		return 0, fmt.Errorf("idem: requeueing events: %w", err)
	}
	err = o.act(ctx, "requeue", f, reason, func(ctx context.Context, id int64, keys []string) (string, error) {
		n, err = o.workers.requeueAll(ctx, keys, f.states(), changed(id, f, keys, "requeued"))
		return "", err
	})
	return n, err
}

// findWorkers returns an error if nothing would process what is requeued.
func (o *Operator) findWorkers(ctx context.Context) error {
	if o.RequeueWithoutWorkers {
		return nil
	}
	yes, err := ask(ctx, o.pool, func(ctx context.Context, db store.DB) (bool, error) {
		return store.HasWorkers(ctx, db, o.source.Name())
	})
	switch {
	case err != nil:
		return explain(err)
	case !yes:
		return ErrNoWorkers
	}
	return nil
}

// ErrNoWorkers is the error of [Operator.Requeue] where no workers of the source have
// given a sign of life.
var ErrNoWorkers = errors.New("no workers of this source are alive, and what is requeued would wait for them: " +
	"replay the events, or start the program that runs the inbox; if it starts later, say that you requeue without workers")

// Discard records and runs [Common.Discard].
func (o *Operator) Discard(ctx context.Context, f Filter, reason string) (n int64, err error) {
	if f.isZero() {
		return 0, errDiscardAll
	}
	err = o.act(ctx, "discard", f, reason, func(ctx context.Context, id int64, keys []string) (string, error) {
		n, err = o.discardAll(ctx, keys, f.states(), reason, changed(id, f, keys, "discarded"))
		return "", err
	})
	return n, err
}

// changed returns what records the result of an action on the events that f chose.
func changed(id int64, f Filter, keys []string, did string) recordChange {
	return func(ctx context.Context, tx pgx.Tx, events []string) error {
		result := fmt.Sprintf("%d %s", len(events), did) + leftAlone(f, keys, len(events))
		return store.ChangedBy(ctx, tx, id, events, result)
	}
}

// leftAlone says how many events of those that were chosen an action has left.
func leftAlone(f Filter, keys []string, acted int) string {
	if n := max(len(f.Events), len(keys)) - acted; n > 0 {
		return fmt.Sprintf("; %d left alone: done, in another state by now, or being processed", n)
	}
	return ""
}

// Record runs do as an action of the application's own, and records it: that
// somebody looked at a body, say. what says which events it is about. The result is
// what do returns.
func (o *Operator) Record(ctx context.Context, action, what, reason string, do func(context.Context) (string, error)) error {
	a := store.Action{Actor: o.name, Action: action, Source: o.source.Name(), Filter: what, Reason: reason}
	return o.record(ctx, a, nil, func(ctx context.Context, _ int64) (string, error) { return do(ctx) })
}

// Actions returns up to n actions on the source's events from the audit trail, the
// latest first: those before the action whose ID is before, or the latest of all if
// before is 0.
func (c *Common) Actions(ctx context.Context, before int64, n int) ([]Action, error) {
	rows, err := timed(ctx, func(ctx context.Context) ([]store.Action, error) {
		return store.ListActions(ctx, c.pool, c.source.Name(), before, n)
	})
	if err != nil {
		return nil, fmt.Errorf("idem: listing actions: %w", explain(err))
	}
	all := make([]Action, len(rows))
	for n, r := range rows {
		all[n] = Action(r)
	}
	return all, nil
}

// ActionEvents returns the row keys of the events that the action with this ID chose or, if it is
// a requeue or discard that has ended, changed: source/scope/id with the scope
// percent-encoded.
func (c *Common) ActionEvents(ctx context.Context, id int64) ([]string, error) {
	keys, err := timed(ctx, func(ctx context.Context) ([]string, error) { return store.ActionEvents(ctx, c.pool, id) })
	if err != nil {
		return nil, fmt.Errorf("idem: listing the events of action %d: %w", id, explain(err))
	}
	return keys, nil
}

// act finds the events that f chooses, and records what is done to them.
func (o *Operator) act(ctx context.Context, action string, f Filter, reason string, do func(context.Context, int64, []string) (string, error)) error {
	keys, err := o.find(ctx, f)
	if err != nil {
		return fmt.Errorf("idem: %s: listing events: %w", action, explain(err))
	}
	a := store.Action{Actor: o.name, Action: action, Source: o.source.Name(), Filter: f.String(), Reason: reason}
	return o.record(ctx, a, keys, func(ctx context.Context, id int64) (string, error) { return do(ctx, id, keys) })
}

// record records an action, does it by the id of the record, and records how it ended.
func (o *Operator) record(ctx context.Context, a store.Action, keys []string, do func(context.Context, int64) (string, error)) error {
	if o.name == "" {
		return fmt.Errorf("idem: %s: the operator has no name: give NewOperator who it acts for", a.Action)
	}
	a.Filter, a.Reason = storable(a.Filter, maxRecorded), storable(a.Reason, maxRecorded)
	id, err := timed(ctx, func(ctx context.Context) (int64, error) { return store.BeginAction(ctx, o.pool, a, keys) })
	if err != nil {
		return fmt.Errorf("idem: %s could not be recorded, and was not begun: %w", a.Action, explain(err))
	}
	result, err := o.protect(ctx, a, func() (string, error) { return do(ctx, id) })
	if err != nil {
		result = strings.TrimPrefix(result+"; failed: "+err.Error(), "; ")
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTime)
	defer cancel()
	if ended := store.EndAction(ending, o.pool, id, storable(result, maxErrorText)); ended != nil {
		err = errors.Join(err, fmt.Errorf("idem: the end of %s could not be recorded: %w", a.Action, explain(ended)))
	}
	return err
}

// protect makes an error of a panic, of an application's Progress for example, so
// that the action has an end in the trail. The log has where it was.
func (o *Operator) protect(ctx context.Context, a store.Action, do func() (string, error)) (result string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
			o.logError(ctx, "webhook "+a.Action+" failed", Event{}, fmt.Errorf("%w\n%s", err, debug.Stack()))
		}
	}()
	return do()
}

// maxRecorded is how many bytes of a filter or a reason the trail shows: lists of
// ids may be long, and the events that were chosen are recorded anyway.
const maxRecorded = 2000

// recordTime is how long the record of an action's end may take.
const recordTime = 5 * time.Second

// noteEvery is how often the record of a replay says how far it has come.
const noteEvery = time.Second

// notes returns what is called after each of some events: after the first, and
// then every second, it notes in the record how far the replay has come.
func (o *Operator) notes(ctx context.Context, id int64, of int) func(Replayed) {
	var noted time.Time
	return func(sum Replayed) {
		if of < 2 || time.Since(noted) < noteEvery {
			return
		}
		note := fmt.Sprintf("%d of %d: %s", sum.Done+sum.Failed+sum.Unhandled, of, sum.text())
		_ = pgtx.Ask(ctx, o.pool, func(ctx context.Context, conn *pgxpool.Conn) error {
			return store.NoteAction(ctx, conn, id, note)
		}) // a replay goes on without it
		noted = time.Now()
	}
}

// text is the sum as people read it.
func (r Replayed) text() string {
	return fmt.Sprintf("%d done, %d failed, %d without a handler", r.Done, r.Failed, r.Unhandled)
}
