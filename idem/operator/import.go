package operator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paghooks/paghooks/idem"
	"github.com/paghooks/paghooks/idem/internal/pgtx"
	"github.com/paghooks/paghooks/idem/internal/store"
)

// OldEvent is an event in the table of another program, the receiver that this one replaces: see
// [Operator.Import].
type OldEvent struct {
	ID string // the provider's event id

	// Type and Key are its type and the id of its entity, as [idem.Event] has them; "" where
	// they are not known. Arrivals of package idem, and so asaas.Reconcile, find an event by them. A
	// provider's Identify reads both from the body.
	Type, Key string

	// Done is whether the other program has processed it. A row that is there is not enough: a
	// program that answers first has rows that are to be processed yet.
	Done bool

	// ReceivedAt is when it came; zero is now. [idem.Common.Prune] forgets it by that.
	ReceivedAt time.Time
}

// Imported counts the results of events that were to be imported.
type Imported struct {
	Stored    int64 // were not known here, and are stored as done
	Completed int64 // waited here to be processed, and are done now
	Known     int64 // are done here, too, or were given twice
	Busy      int64 // left alone: they are being processed here; import them again in a moment
	Discarded int64 // left alone: somebody gave them up here
	NotDone   int64 // left alone: the other program has not done them
}

// String returns the counts as people read them.
func (i Imported) String() string {
	return fmt.Sprintf("%d stored, %d that waited are done, %d known; left alone: %d being processed, %d discarded, %d not done by the other program",
		i.Stored, i.Completed, i.Known, i.Busy, i.Discarded, i.NotDone)
}

func (i *Imported) add(other Imported) {
	i.Stored += other.Stored
	i.Completed += other.Completed
	i.Known += other.Known
	i.Busy += other.Busy
	i.Discarded += other.Discarded
	i.NotDone += other.NotDone
}

// importBatch is the number of events that one statement stores.
const importBatch = 1000

// Import records, and takes over the events that another program has processed, the receiver that
// this one replaces: when one of them comes again it is a duplicate, and no handler runs.
//
//	sum, err := operator.New(inbox, "ana").Import(ctx, "", old, "from our own receiver")
//
// scope is the account that the events will be stored under, "" if it has none: with
// another one they are not recognized, and are done again.
//
// An event that is stored here and waits, because it had no handler, has failed, or waits
// behind another one, becomes done: the other program has its effect. Later events of
// its entity go on. One that is being processed is left, and so is one that was discarded, and
// one whose Done is false: it is to be processed yet, by the other program or by this
// one. So Import may be called again, and while the other program still runs: call it last when
// that has stopped. For the time in which both run, see docs/import.md.
//
// Import from the table of the other program, not from the provider's API: that an event
// exists does not say that it was processed. Its body is not known here, so a redelivery with
// another body is no conflict.
//
// An error of events, and an event without an id, end it; what was imported until then stays.
func (o *Operator) Import(ctx context.Context, scope string, events iter.Seq2[OldEvent, error], reason string) (sum Imported, err error) {
	switch {
	case !nameable(scope):
		return sum, fmt.Errorf("operator: importing events: the scope has %d bytes, or is no text: give the one of the account's Credentials, of at most %d", len(scope), maxName)
	case scope == "" && o.AlwaysScoped():
		return sum, errors.New("operator: importing events: the scope is empty, and the receiver gives every event one: give that of the account's Credentials")
	}
	into := Account{o.SourceName(), scope}
	err = o.record(ctx, store.Action{
		Actor: o.name, Action: "import", Source: into.Source, Filter: "into " + into.String(), Reason: reason,
	}, nil, func(ctx context.Context, on *acting) (string, error) {
		sum, err = o.importAll(ctx, on, scope, events)
		if err != nil {
			err = fmt.Errorf("operator: importing events: %w", store.Explain(err))
		}
		return sum.String(), err
	})
	return sum, err
}

// importAll imports events in batches.
func (o *Operator) importAll(ctx context.Context, on *acting, scope string, events iter.Seq2[OldEvent, error]) (sum Imported, err error) {
	var batch []OldEvent
	flush := func() error {
		did, err := o.importSome(ctx, on, scope, batch)
		sum.add(did)
		batch = batch[:0]
		return err
	}
	for e, err := range events {
		if err == nil && e.ID == "" {
			err = errors.New("an event has no id: leave it out, nothing recognizes it when it comes again")
		}
		if err != nil {
			return sum, errors.Join(err, flush())
		}
		if batch = append(batch, e); len(batch) == importBatch {
			if err := flush(); err != nil {
				return sum, err
			}
		}
	}
	return sum, flush()
}

// importSome stores the events that are new, and then completes those that wait.
func (o *Operator) importSome(ctx context.Context, on *acting, scope string, batch []OldEvent) (sum Imported, err error) {
	var done []store.Event
	var times []time.Time
	var keys []string
	for _, e := range batch {
		if !e.Done {
			sum.NotDone++
			continue
		}
		named := o.named(scope, e)
		done, times, keys = append(done, named), append(times, e.ReceivedAt), append(keys, named.RowKey())
	}
	if len(done) == 0 {
		return sum, nil
	}
	sum.Stored, err = timed(ctx, func(ctx context.Context) (int64, error) { return store.Import(ctx, o.Pool(), done, times) })
	if err != nil {
		return sum, err
	}
	slices.Sort(keys)
	if err := o.complete(ctx, on, slices.Compact(keys), &sum); err != nil {
		return sum, err
	}
	sum.Known = int64(len(done)) - sum.Stored - sum.Completed - sum.Busy - sum.Discarded
	return sum, nil
}

// complete makes the events done that wait, and counts those that it leaves.
func (o *Operator) complete(ctx context.Context, on *acting, keys []string, sum *Imported) error {
	var completed, lanes []string
	change := func(do func(context.Context, pgx.Tx) error) (err error) {
		for range 3 { // it may meet handlers that promote events of the same entities
			_, err = timed(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, pgtx.Change(ctx, o.Pool(), do) })
			if !pgtx.Retryable(err) {
				break
			}
		}
		return err
	}
	err := change(func(ctx context.Context, tx pgx.Tx) (err error) {
		completed, lanes, err = store.Complete(ctx, tx, on.id, keys, o.KeepPayloads)
		if err != nil {
			return err
		}
		if sum.Discarded, sum.Busy, err = store.CountLeft(ctx, tx, keys); err != nil {
			return err
		}
		return store.PromoteHeld(ctx, tx, lanes)
	})
	if err != nil || len(completed) == 0 {
		return err
	}
	sum.Completed = int64(len(completed))
	// Again, as after a discard: for events that were held back meanwhile. If this fails, the workers find them.
	_ = change(func(ctx context.Context, tx pgx.Tx) error { return store.PromoteHeld(ctx, tx, lanes) })
	return nil
}

// named returns the event as [idem.Endpoint] names it.
func (o *Operator) named(scope string, e OldEvent) store.Event {
	named := store.Event{Source: o.SourceName(), Scope: scope, ID: e.ID, Type: e.Type, Key: e.Key}
	if !nameable(named.ID) {
		named.ID = idem.BodyID([]byte(named.ID))
	}
	if !nameable(named.Type) {
		named.Type = ""
	}
	if !nameable(named.Key) {
		named.Key = idem.BodyID([]byte(named.Key))
	}
	return named
}
